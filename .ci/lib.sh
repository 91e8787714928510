# shellcheck shell=bash
# What the shell scripts of this repository share. Sourced, never run.

# cache is where downloads, images and stamps are kept, outside the tree.
cache=${MCP_BRIDGE_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mcp-bridge-dev}
mkdir -p "$cache"

say() { printf '%s\n' "$*"; }
note() { printf '      %s\n' "$*"; }
die() {
	printf 'error: %s\n' "$1" >&2
	shift
	for line in "$@"; do printf 'hint:  %s\n' "$line" >&2; done
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# now prints a clock in milliseconds; since prints the seconds passed after it.
now() {
	local us=${EPOCHREALTIME:-${SECONDS}000000} # bash before 5 has whole seconds only
	printf '%s' "$((${us/[.,]/} / 1000))"
}
since() {
	local ms=$(($(now) - $1))
	printf '%d.%d s' $((ms / 1000)) $((ms % 1000 / 100))
}

# as_root runs a command as root, or fails at once if that needs a password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}
can_root() { [ "$(id -u)" -eq 0 ] || { have sudo && sudo -n true 2>/dev/null; }; }

# done_line prints how a step ended: done_line ok NAME STARTED
done_line() { printf '%-5s %-44s %9s\n' "$1" "$2" "$(since "$3")"; }

# step NAME COMMAND… runs a step quietly: one line when it ends, a sign of life
# every ten seconds while it lasts, and its whole output if it fails.
step() {
	local name=$1 started log pid rc=0 beats=0
	shift
	started=$(now)
	log=$(mktemp "${TMPDIR:-/tmp}/mcp-bridge-step.XXXXXX")
	set -m # a process group of its own, so that an interrupt can end all of it
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	set +m
	trap 'kill -- "-$pid" 2>/dev/null; rm -f "$log"; exit 130' INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.1
		beats=$((beats + 1))
		if [ $((beats % 100)) -eq 0 ]; then
			printf '…     %-44s %9s  %.70s\n' "$name" "$(since "$started")" "$(tail -n 1 "$log" | tr -d '\r')"
		fi
	done
	wait "$pid" || rc=$?
	trap - INT TERM
	if [ "$rc" -eq 0 ]; then
		done_line ok "$name" "$started"
	else
		done_line FAIL "$name" "$started"
		sed -e '/^go: downloading /d' -e 's/^/      /' "$log"
	fi
	rm -f "$log"
	return "$rc"
}

# Without CAP_SYS_RESOURCE the engine's default rlimits cannot be set.
limits=(--ulimit nofile=1024:1024 --ulimit nproc=512:512)

# pick_engine IMAGE sets engine to a podman command that can start a container
# here: crun, the usual default, refuses hybrid cgroups.
pick_engine() {
	local runtime
	for runtime in "" runc crun; do
		engine=(podman ${runtime:+--runtime "$runtime"})
		if "${engine[@]}" run --rm --network none "${limits[@]}" "$1" true >/dev/null 2>&1; then return; fi
	done
	podman run --rm --network none "${limits[@]}" "$1" true >&2 || true # to show why
	die "podman cannot start a container here" "run: .ci/provision engine"
}
