package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"
)

// maxConfigFile bounds the configuration file in bytes.
const maxConfigFile = 1 << 20

// complete sets the flags that were not given: from the environment, as
// MCP_BRIDGE_ and the flag's name in capitals, or else from config.toml, where a
// key is the flag's name. Both write underscores for hyphens.
func (s *settings) complete(flags *pflag.FlagSet) error {
	file, err := readConfigFile()
	if err != nil {
		return err
	}
	path, _ := configFile() // there is none if it is not known
	known := knownSettings()
	s.sources = map[string]string{}
	var errs []error
	flags.VisitAll(func(flag *pflag.Flag) {
		if known.Lookup(flag.Name) == nil {
			return
		}
		if flag.Changed {
			s.sources[flag.Name] = "--" + flag.Name
			return
		}
		name := "MCP_BRIDGE_" + strings.ToUpper(underscored(flag.Name))
		if value := os.Getenv(name); value != "" {
			s.sources[flag.Name] = name
			if err := set(flag, inOurWords(flag, value)); err != nil {
				errs = append(errs, configError("unset it, or see --"+flag.Name+" in mcp-bridge run --help", "environment variable %s: %v", name, err))
			}
			return
		}
		if value, ok := file[underscored(flag.Name)]; ok {
			s.sources[flag.Name] = underscored(flag.Name) + " in " + path
			errs = append(errs, set(flag, value)) // known to be good
		} else {
			s.sources[flag.Name] = "the default --" + flag.Name
		}
	})
	return errors.Join(errs...)
}

// knownSettings are the flags that are settings, of whatever command.
func knownSettings() *pflag.FlagSet {
	var s settings
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	s.addCommon(flags)
	s.addSandbox(flags)
	s.addRun(flags)
	flags.StringVar(&s.pager, "pager", "", "") // without --no-pager, which is for the moment
	return flags
}

func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// configFile is where settings are kept: $XDG_CONFIG_HOME/mcp-bridge/config.toml.
func configFile() (string, error) {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "mcp-bridge", "config.toml"), nil
}

// readConfigFile returns the settings of the configuration file, in the form
// that flags take. Whatever is wrong in it is an error, also in settings that
// the command at hand does not use.
func readConfigFile() (map[string]string, error) {
	path, err := configFile()
	if err != nil {
		return nil, nil //nolint:nilerr // without a home there is no file
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err == nil && info.Size() > maxConfigFile {
		err = fmt.Errorf("it is larger than %d bytes", maxConfigFile)
	}
	var keys map[string]any
	if err == nil {
		_, err = toml.DecodeFile(path, &keys)
	}
	if err != nil {
		return nil, configError("mend the file or move it away", "%s: %v", path, err)
	}
	return checkConfig(path, keys)
}

// checkConfig turns what a file says into what flags take.
func checkConfig(path string, keys map[string]any) (map[string]string, error) {
	known := knownSettings()
	var names []string
	known.VisitAll(func(flag *pflag.Flag) { names = append(names, underscored(flag.Name)) })
	values := map[string]string{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(names, key) {
			errs = append(errs, fmt.Errorf("unknown key %q%s", key, didYouMean(similar(key, names)...)))
			continue
		}
		text, err := flagText(keys[key])
		if err == nil {
			err = set(known.Lookup(strings.ReplaceAll(key, "_", "-")), text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
		values[key] = text
	}
	if len(errs) > 0 {
		return nil, configError("mcp-bridge run --help shows the settings; a key is a flag's name with underscores", "%s: %v", path, errors.Join(errs...))
	}
	return values, nil
}

// flagText returns a value of a file as one would write it after a flag.
func flagText(value any) (string, error) {
	switch v := value.(type) {
	case string, bool, int64, float64:
		return fmt.Sprint(v), nil
	case []any:
		fields := make([]string, len(v))
		for i, element := range v {
			text, ok := element.(string)
			if !ok {
				return "", fmt.Errorf("%v is not a string", element)
			}
			fields[i] = text
		}
		var line strings.Builder
		w := csv.NewWriter(&line)
		err := w.Write(fields)
		w.Flush()
		return strings.TrimSuffix(line.String(), "\n"), err
	}
	return "", errors.New("want a string, a number, true or false, or a list of strings")
}
