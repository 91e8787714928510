# shellcheck shell=bash
# An ordinary user, to run rootless podman as. Sourced, never run.

rootless_user=mcp-bridge-test

# rootless_podman ARGUMENT… runs podman as the user, in a clean environment and without
# provision's lock (8), which podman's own helper would hold forever. The
# tests do the same, see runtime/runtimetest/rootless.
rootless_podman() {
	local home uid
	home=$(getent passwd "$rootless_user" | cut -d: -f6)
	uid=$(id -u "$rootless_user")
	(
		cd /
		as_root runuser -u "$rootless_user" -- env -i HOME="$home" USER="$rootless_user" PATH="$PATH" \
			XDG_RUNTIME_DIR="/run/user/$uid" podman --runtime "$(rootless_oci_runtime)" "$@" 8>&-
	)
}

# rootless_oci_runtime prints a runtime that starts containers here: crun
# refuses mixed control groups.
rootless_oci_runtime() {
	if [ -s /sys/fs/cgroup/unified/cgroup.controllers ] && have runc; then echo runc; else echo crun; fi
}

# rootless_create makes what is missing: the user, its subordinate ids, its
# runtime directory, and a storage driver that shares layers.
rootless_create() {
	local home uid
	id "$rootless_user" >/dev/null 2>&1 ||
		as_root useradd --create-home --shell /usr/sbin/nologin --comment 'runs tests of rootless podman' "$rootless_user"
	grep -qs "^$rootless_user:" /etc/subuid ||
		as_root usermod --add-subuids "$(free_subids /etc/subuid)" "$rootless_user"
	grep -qs "^$rootless_user:" /etc/subgid ||
		as_root usermod --add-subgids "$(free_subids /etc/subgid)" "$rootless_user"
	home=$(getent passwd "$rootless_user" | cut -d: -f6)
	uid=$(id -u "$rootless_user")
	as_root install -d -m 755 /run/user
	as_root install -d -m 700 -o "$rootless_user" -g "$rootless_user" "/run/user/$uid"
	if ! as_root test -e "$home/.config/containers/storage.conf"; then
		as_root install -d -m 755 -o "$rootless_user" -g "$rootless_user" "$home/.config" "$home/.config/containers"
		# Without it podman 4.3 may copy every layer for every container (vfs).
		printf '[storage]\ndriver = "overlay"\n' | as_root tee "$home/.config/containers/storage.conf" >/dev/null
	fi
}

# free_subids FILE prints 65536 ids behind all that FILE gives away.
free_subids() {
	awk -F: 'BEGIN { first = 100000 } $2 + $3 > first { first = $2 + $3 } END { print first "-" first + 65535 }' "$1" 2>/dev/null ||
		echo 100000-165535
}

# rootless_image copies the sandbox's image into the user's storage.
rootless_image() {
	local image=localhost/mcp-bridge-sandbox:latest want
	want=$(podman image inspect --format '{{.Id}}' "$image" 2>/dev/null) ||
		die "the sandbox's image is missing" "run: .ci/provision image"
	[ "$(rootless_podman image inspect --format '{{.Id}}' "$image" 2>/dev/null)" != "$want" ] || return 0
	podman save --quiet "$image" | rootless_podman load --quiet
	rootless_podman image prune --force # the one that had the name before
}
