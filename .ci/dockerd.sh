# shellcheck shell=bash
# A dockerd of our own, for machines on which none runs. Sourced by provision,
# never run.
#
# It has nothing to do with a dockerd of the system: images and state are in the
# cache, the socket and what lives as long as the machine in a directory below
# /run, and it touches neither the firewall nor the network's interfaces. It
# outlives the make that started it, the next one finds it, and `.ci/provision
# docker-stop` ends it.

dockerd_run=/run/mcp-bridge-dev
dockerd_host=unix://$dockerd_run/docker.sock

# docker_answers HOST: an empty one is docker's own default.
docker_answers() {
	DOCKER_HOST=$1 DOCKER_CONFIG=$dockerd_run/none timeout 10 docker version --format '{{.Server.Version}}' 2>/dev/null
}

# docker_host prints where a daemon is that answers: the one the caller named,
# ours, or, as an empty line, the default.
docker_host() {
	local host
	for host in "${DOCKER_HOST:-}" "$dockerd_host" ""; do
		if docker_answers "$host" >/dev/null; then
			say "$host"
			return
		fi
	done
	return 1
}

# dockerd_start starts ours and waits until it answers.
dockerd_start() {
	local log=$cache/dockerd.log tries limits=()
	can_root || die "no dockerd answers, and this user can neither be root nor sudo without a password" \
		"start docker, or set DOCKER_HOST to a daemon that runs"
	as_root mkdir -p -m 0711 "$dockerd_run"
	echo '{}' >"$cache/dockerd.json" # not the system's
	# Without CAP_SYS_RESOURCE neither its own OOM score nor the usual rlimits
	# of containers can be set.
	limits=(--oom-score-adjust 0 --default-ulimit nofile=1024:1024 --default-ulimit nproc=512:512)
	dockerd --help 2>/dev/null | grep -q -- --oom-score-adjust || limits=("${limits[@]:2}")
	# The environment is its own, for a daemon hands proxies on to builds; 8 is
	# provision's lock, which a daemon would hold forever.
	as_root env -i PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root setsid --fork dockerd \
		--config-file "$cache/dockerd.json" --host "$dockerd_host" --group "$(id -g)" --pidfile "$dockerd_run/docker.pid" \
		--data-root "$cache/docker" --exec-root "$dockerd_run/exec" \
		--iptables=false --ip6tables=false --bridge=none "${limits[@]}" >"$log" 2>&1 </dev/null 8>&-
	for ((tries = 0; tries < 300; tries++)); do
		! docker_answers "$dockerd_host" >/dev/null || return 0
		sleep 0.1
		[ "$tries" -lt 20 ] || [ -n "$(dockerd_pid)" ] || break
	done
	tail -n 5 "$log" >&2
	die "dockerd does not answer at $dockerd_host" "see $log"
}

# dockerd_pid prints the process id of ours, if it runs.
dockerd_pid() {
	local pid
	pid=$(cat "$dockerd_run/docker.pid" 2>/dev/null) || return 0
	! tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF -- "$dockerd_host" || say "$pid"
}

# dockerd_stop ends ours by its own pid, and waits until it has gone.
dockerd_stop() {
	local pid tries
	pid=$(dockerd_pid)
	if [ -z "$pid" ]; then
		say "ok    no dockerd of ours runs"
		return
	fi
	as_root kill "$pid"
	for ((tries = 0; tries < 200; tries++)); do
		if [ ! -d "/proc/$pid" ]; then
			say "ok    dockerd $pid stopped"
			return
		fi
		sleep 0.1
	done
	die "dockerd $pid does not end" "run: kill -KILL $pid"
}

# docker_image gives docker the sandbox's image that podman has.
docker_image() {
	local image=localhost/mcp-bridge-sandbox:latest version have_version started
	have podman || return 0
	started=$(now)
	version=$(podman image inspect --format '{{index .Labels "org.opencontainers.image.version"}}' "$image" 2>/dev/null) ||
		die "podman has no $image to give to docker" "run: .ci/provision image"
	have_version=$(docker image inspect --format '{{index .Config.Labels "org.opencontainers.image.version"}}' "$image" 2>/dev/null) || have_version=
	if [ "$version" = "$have_version" ]; then
		done_line ok "sandbox image in docker" "$started"
	else
		step "sandbox image from podman to docker" docker_load "$image"
	fi
}

docker_load() { podman save --format docker-archive "$1" | docker load; }
