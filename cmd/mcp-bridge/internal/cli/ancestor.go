package cli

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// serversConfig names one more file of server definitions. It is the ancestor's
// variable, and has no flag.
const serversConfig = "MCP_SERVERS_CONFIG"

// moreFiles are files of server definitions besides those in folders.
func moreFiles() []string {
	if file := os.Getenv(serversConfig); file != "" {
		return []string{file}
	}
	return nil
}

// inOurWords is a value of a variable as its flag takes it, where the ancestor
// took other words, too: those of Python's logging, and yes and no.
func inOurWords(flag *pflag.Flag, value string) string {
	words := map[string]string{}
	switch {
	case flag.Name == "log-level":
		words = map[string]string{"warning": "warn", "critical": "error", "fatal": "error"}
	case flag.Value.Type() == "bool":
		words = map[string]string{"yes": "true", "on": "true", "no": "false", "off": "false"}
	}
	if ours, ok := words[strings.ToLower(value)]; ok {
		return ours
	}
	return value
}
