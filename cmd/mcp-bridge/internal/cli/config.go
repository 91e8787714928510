package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// keepSelf is how to keep the bridge among its own servers.
const keepSelf = "MCP_BRIDGE_ALLOW_SELF_SERVER=1 to keep it"

// underBridge is set for every server: one that starts the bridge in a way that
// its definition does not show would start itself again, without end.
const underBridge = "MCP_BRIDGE_IS_ABOVE"

// refuseUnderBridge keeps run from being a server of another bridge.
func (r *root) refuseUnderBridge() error {
	if r.settings.allowSelf || os.Getenv(underBridge) == "" {
		return nil
	}
	return configError("set "+keepSelf, "mcp-bridge is started by one of its own servers, and would start itself again without end")
}

// config reads the server definitions. What is wrong with one of them is told
// and keeps none of the others away.
func (r *root) config() *discovery.Config {
	config := r.loadConfig()
	r.warn(config.Problems)
	return config
}

// warn tells of folders that are not there, and of problems.
func (r *root) warn(problems []discovery.Problem) {
	for _, dir := range r.missingDirs() {
		fmt.Fprintf(r.io.Err, "mcp-bridge: warning: %s: there is no folder %s\n", r.settings.nameOf("config-dir"), dir)
	}
	for _, problem := range problems {
		fmt.Fprintf(r.io.Err, "mcp-bridge: warning: %s\n", problemText(problem))
	}
}

func (r *root) loadConfig() *discovery.Config {
	return discovery.Load(r.loadOptions())
}

// loadOptions says where the definitions are.
func (r *root) loadOptions() discovery.LoadOptions {
	executable, err := os.Executable()
	if err != nil {
		executable = "" // then the bridge knows itself by name only
	}
	var project string
	if r.settings.project {
		if project, err = os.Getwd(); err != nil {
			project = "."
		}
	}
	var inputFiles []string
	if store, err := r.inputStore(); err == nil {
		inputFiles = store.Files()
	}
	return discovery.LoadOptions{
		InputFiles: inputFiles,
		Project:    project,
		Dirs:       r.settings.configDirs,
		Files:      moreFiles(),
		Executable: executable,
		AllowSelf:  r.settings.allowSelf,
		Input:      r.input,
	}
}

// missingDirs are the folders that were asked for, unlike ~/MCPs, and are not there.
func (r *root) missingDirs() []string {
	var missing []string
	for _, dir := range r.settings.configDirs {
		if _, err := os.Stat(dir); err != nil && !strings.HasPrefix(dir, "~") {
			missing = append(missing, dir)
		}
	}
	return missing
}

func problemText(problem discovery.Problem) string {
	if errors.Is(problem.Err, discovery.ErrSelf) {
		return oneLined(fmt.Sprintf("%s: server %q is mcp-bridge itself and is left out (%s)", problem.File, problem.Server, keepSelf))
	}
	return problem.String()
}

// importHint is for who has none yet.
const importHint = "; `mcp-bridge servers import` copies those of other clients"

// noServers says why there is no server, of a configuration that has none.
func (r *root) noServers(config *discovery.Config) string {
	dirs := r.settings.configDirs
	if len(dirs) == 0 {
		dirs = []string{"~/MCPs"}
	}
	where := strings.Join(dirs, ", ")
	missing := r.missingDirs()
	switch {
	case len(config.Problems) == 1:
		return "no servers are configured: what is in " + where + " was left out; the warning above says why"
	case len(config.Problems) > 1:
		return fmt.Sprintf("no servers are configured: %d definitions or files in %s were left out; the warnings above say why", len(config.Problems), where)
	case len(missing) == len(dirs):
		return "no servers are configured: there is no folder " + where + importHint
	}
	return "no servers are configured: put their definitions into " + strings.Join(dirs, "/*.json or ") + "/*.json (or .jsonc, .toml, .yaml)" + importHint
}

// diagnoseServers looks at the definitions; it starts no server.
func (r *root) diagnoseServers() []runtime.Finding {
	config := r.loadConfig()
	f := runtime.Finding{Name: "definitions", Level: runtime.LevelOK, Detail: fmt.Sprintf("%d servers", len(config.Servers))}
	if len(config.Servers) == 1 {
		f.Detail = "1 server"
	}
	if off := len(config.Servers) - len(enabled(config)); off > 0 {
		f.Detail += fmt.Sprintf(", %d of them disabled", off)
	}
	switch {
	case len(config.Servers) == 0 && len(config.Problems) == 0:
		f.Level, f.Fix = runtime.LevelWarn, "move the definitions of your servers there, as the README shows"
		f.Detail = r.noServers(config)
	case len(config.Servers) == 0:
		f.Level = runtime.LevelWarn
	}
	found := []runtime.Finding{f}
	for _, dir := range r.missingDirs() {
		found = append(found, runtime.Finding{
			Name: "folder", Level: runtime.LevelWarn, Detail: "there is no folder " + dir, Fix: "make it, or mend " + r.settings.nameOf("config-dir"),
		})
	}
	for _, problem := range config.Problems {
		left := runtime.Finding{Name: "left out", Level: runtime.LevelWarn, Detail: problem.String(), Fix: "mend or remove the definition"}
		if errors.Is(problem.Err, discovery.ErrSelf) {
			left.Fix = "remove it, or set " + keepSelf
		}
		found = append(found, left)
	}
	return found
}
