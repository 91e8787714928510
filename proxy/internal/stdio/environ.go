package stdio

import (
	"maps"
	"slices"
	"strings"
)

// inherited lists the variables that a server gets from our own environment:
// what programs need to find themselves, their files, the network and the
// screen. Everything else stays here, above all tokens and keys: a server gets
// those that its own definition names.
var inherited = map[string]bool{
	// Where programs are and who runs them.
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true,
	// How they talk.
	"TERM": true, "COLORTERM": true, "NO_COLOR": true, "LANG": true, "LANGUAGE": true, "TZ": true,
	"TMPDIR": true, "TMP": true, "TEMP": true,
	// How they reach the network, in either case.
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "ALL_PROXY": true, "NO_PROXY": true,
	"SSL_CERT_FILE": true, "SSL_CERT_DIR": true, "NODE_EXTRA_CA_CERTS": true, "NODE_USE_SYSTEM_CA": true,
	"REQUESTS_CA_BUNDLE": true, "CURL_CA_BUNDLE": true, "GIT_SSL_CAINFO": true,
	// Where npx, uvx and their relatives keep programs and packages.
	"NPM_CONFIG_REGISTRY": true, "NPM_CONFIG_CACHE": true, "NPM_CONFIG_PREFIX": true, "NPM_CONFIG_USERCONFIG": true,
	"NVM_DIR": true, "NVM_BIN": true, "FNM_DIR": true, "VOLTA_HOME": true, "COREPACK_HOME": true,
	"PNPM_HOME": true, "BUN_INSTALL": true, "DENO_DIR": true,
	"UV_CACHE_DIR": true, "UV_TOOL_DIR": true, "UV_TOOL_BIN_DIR": true, "UV_PYTHON_INSTALL_DIR": true,
	"UV_DEFAULT_INDEX": true, "UV_INDEX_URL": true, "UV_NATIVE_TLS": true, "UV_SYSTEM_CERTS": true,
	"PIP_INDEX_URL": true, "PIP_CACHE_DIR": true, "PIPX_HOME": true, "PYENV_ROOT": true,
	"ASDF_DIR": true, "ASDF_DATA_DIR": true, "MISE_DATA_DIR": true,
	"GOPATH": true, "GOROOT": true, "GOPROXY": true, "CARGO_HOME": true, "RUSTUP_HOME": true, "JAVA_HOME": true,
	// The screen, for servers that drive a browser.
	"DISPLAY": true, "WAYLAND_DISPLAY": true, "XAUTHORITY": true, "DBUS_SESSION_BUS_ADDRESS": true,
	// The container engine, for servers that are images.
	"DOCKER_HOST": true, "DOCKER_CONTEXT": true, "DOCKER_CONFIG": true, "CONTAINER_HOST": true,
	// What Windows programs cannot start without.
	"APPDATA": true, "LOCALAPPDATA": true, "PROGRAMDATA": true, "USERPROFILE": true, "USERNAME": true,
	"HOMEDRIVE": true, "HOMEPATH": true, "SYSTEMDRIVE": true, "SYSTEMROOT": true, "WINDIR": true,
	"COMSPEC": true, "PATHEXT": true, "PROGRAMFILES": true, "PROGRAMFILES(X86)": true,
	"COMMONPROGRAMFILES": true, "PROCESSOR_ARCHITECTURE": true, "NUMBER_OF_PROCESSORS": true,
}

var inheritedPrefixes = []string{"LC_", "XDG_"}

// Environ returns the environment of a server: the harmless part of host, which
// is in the form of os.Environ, and the variables its definition sets, which
// win. The order is fixed.
func Environ(host []string, own map[string]string) []string {
	env := make(map[string]string, len(own)+32)
	for _, entry := range host {
		name, value, ok := strings.Cut(entry, "=")
		// A value that begins like this is a function exported by a shell.
		if ok && isInherited(name) && !strings.HasPrefix(value, "()") {
			env[name] = value
		}
	}
	maps.Copy(env, own)
	entries := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		entries = append(entries, name+"="+env[name])
	}
	return entries
}

func isInherited(name string) bool {
	upper := strings.ToUpper(name)
	if inherited[upper] {
		return true
	}
	return slices.ContainsFunc(inheritedPrefixes, func(prefix string) bool {
		return strings.HasPrefix(upper, prefix)
	})
}
