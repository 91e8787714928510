#!/usr/bin/env bash
# Builds an image for sandboxes and tags it :latest and :3.14: the plain one,
# localhost/mcp-bridge-sandbox, or with packages for data work, localhost/mcp-bridge-sandbox-data.
#
#   sandbox-image/build/image.sh [--force] [sandbox|data]
#
# Does nothing if this month's image is there, made from these very files; --force
# builds it anew. The base comes from a registry if one answers within a few
# seconds, and is otherwise put together from Debian's packages, fetched from the
# mirror this machine's own apt uses. The packages of the data image are fetched
# with this machine's pip, from wherever it gets its packages, and their hashes are
# checked; without pip the build fetches them, with the base's.
#
#   MCP_BRIDGE_IMAGE_FROM=registry|debian   no probing, this base only
#   MCP_BRIDGE_IMAGE_FROM=keep              use the image that is there, however old
#   MCP_BRIDGE_DEBIAN_MIRROR=URL            another mirror than apt's
#   MCP_BRIDGE_DEBIAN_SUITE=forky           a suite with Python 3.14
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.ci/lib.sh
. .ci/lib.sh

self=sandbox-image/build/image.sh
force=
target=sandbox
for arg in "$@"; do
	case $arg in
	--force) force=--force ;;
	sandbox | data) target=$arg ;;
	*) die "$arg: want --force, sandbox or data" ;;
	esac
done
name=localhost/mcp-bridge-sandbox
[ "$target" = sandbox ] || name=$name-$target
from=${MCP_BRIDGE_IMAGE_FROM:-auto}
suite=${MCP_BRIDGE_DEBIAN_SUITE:-forky}
debian_base=localhost/mcp-bridge-base:$suite
inputs=(Dockerfile.sandbox sandbox-image/build/{image,trim}.sh)
[ "$target" = sandbox ] || inputs+=(sandbox-image/build/data.sh sandbox-image/build/requirements/*)
sources=$(cat "${inputs[@]}" | cksum | cut -d' ' -f1)
version=$(date +%Y-%m)-$suite-$sources

main() {
	have podman || die "podman is missing" "run: .ci/provision engine"
	up_to_date && return
	exec 9>"$cache/image.lock"
	! have flock || flock 9 # another make may be at it
	up_to_date && return

	local base old python network=none
	base=$(pick_base)
	if [ "$base" = "$debian_base" ]; then
		import_debian
	else
		step "pull base image" podman pull -q "$base"
	fi
	pick_engine "$base"
	python=$("${engine[@]}" run --rm --network none "${limits[@]}" "$base" \
		python3 -I -c 'import sys; print(sys.version.split()[0])')
	old=$(inspect .Id)
	context=$(mktemp -d "$cache/context.XXXXXX")
	trap 'rm -rf "$context"' EXIT
	mkdir "$context/sandbox-image"
	cp -r sandbox-image/build "$context/sandbox-image/"
	if [ "$target" = data ]; then
		if python3 -m pip --version >/dev/null 2>&1; then add_wheels "${python%.*}"; else network=; fi
	fi
	step "build image $target from Dockerfile.sandbox" "${engine[@]}" build ${network:+--network "$network"} --layers=false \
		--build-arg BASE="$base" --build-arg VERSION="$version" --build-arg PYTHON="$python" --target "$target" \
		-t "$name:candidate" -f Dockerfile.sandbox "$context"
	step "check Python in the image" "check_$target" "$name:candidate"
	podman tag "$name:candidate" "$name:3.14" "$name:latest"
	podman untag "$name:latest" "$name:candidate"
	discard "$base" "$old"
	say "ok    sandbox image $name:latest ($version)"
}

# add_wheels PYTHON puts into the build's context what pip is to install, for
# that Python, and the pip for that.
add_wheels() {
	local python=$1 wheels
	wheels=$cache/wheels-$python-$(cat sandbox-image/build/requirements/{pip,data-"$python"}.txt | cksum | cut -d' ' -f1)
	[ -d "$wheels" ] || step "download packages for Python $python" download_wheels "$python" "$wheels"
	cp -rl "$wheels" "$context/sandbox-image/build/wheels"
}

# download_wheels PYTHON FOLDER fills the folder, or leaves nothing.
download_wheels() {
	local part=$2.part machine lock platforms=()
	machine=$(uname -m)
	for lock in manylinux_2_{28,27,26,24,17,12,5} manylinux{2014,2010,1}; do platforms+=(--platform "${lock}_$machine"); done
	rm -rf "$part" && mkdir "$part"
	for lock in pip "data-$1"; do
		python3 -m pip download --quiet --require-hashes --only-binary :all: --no-deps --disable-pip-version-check \
			--implementation cp --python-version "$1" --abi "cp${1/./}" --abi abi3 --abi none "${platforms[@]}" \
			--dest "$part" -r "sandbox-image/build/requirements/$lock.txt"
	done
	find "$cache" -maxdepth 1 -name "wheels-$1-*" ! -path "$part" -exec rm -rf {} +
	mv "$part" "$2"
}

# inspect FIELD prints a field of the image in use, or nothing.
inspect() { podman image inspect --format "{{$1}}" "$name:latest" 2>/dev/null || true; }

up_to_date() {
	local built
	[ "$force" != --force ] || return 1
	built=$(inspect 'index .Labels "org.opencontainers.image.version"')
	[ "$built" = "$version" ] || { [ "$from" = keep ] && [ -n "$built" ]; } || return 1
	say "ok    sandbox image $name:latest ($built)"
}

# pick_base prints the image to build on.
pick_base() {
	local pinned
	pinned=$(sed -n 's/^ARG BASE=//p' Dockerfile.sandbox)
	case $from in
	registry) say "$pinned" ;;
	debian | keep) say "$debian_base" ;;
	auto)
		if timeout 8 podman manifest inspect "docker://$pinned" >/dev/null 2>&1; then
			say "$pinned"
		else
			say "$debian_base"
		fi
		;;
	*) die "MCP_BRIDGE_IMAGE_FROM=$from: want auto, registry, debian or keep" ;;
	esac
}

# import_debian makes $debian_base, from the cached tarball if that is this month's.
import_debian() {
	local tarball
	tarball=$cache/base-$(date +%Y-%m)-$suite-$(cksum <"$self" | cut -d' ' -f1).tar
	[ "$force" != --force ] || rm -f "$tarball"
	[ -s "$tarball" ] || step "base system from Debian $suite" debian_rootfs "$tarball"
	step "import base system" podman import -q "$tarball" "$debian_base"
	find "$cache" -maxdepth 1 -name 'base-*.tar*' ! -path "$tarball" -delete
}

# debian_rootfs TARBALL writes the smallest Debian that has Python, its whole
# standard library, and what compiled packages take for granted (libstdc++).
debian_rootfs() {
	local mirror log=$1.log
	have mmdebstrap || die "no registry answers, and mmdebstrap is missing" "run: .ci/provision engine"
	mirror=$(debian_mirror)
	if bootstrap "$1" "$mirror" 2>&1 | tee "$log"; then return; fi
	# A mirror that stands still is no reason to have no image: its signatures
	# are checked all the same.
	grep -q 'is expired' "$log" || return 1
	say "warning: the mirror's index of $suite has expired; its signature is checked, its age is not"
	bootstrap "$1" "$mirror" --aptopt='Acquire::Check-Valid-Until "false"'
}

bootstrap() {
	local tarball=$1 part=$1.part mirror=$2
	shift 2
	# mmdebstrap leaves the host's name and resolver in the new system: take them out.
	# shellcheck disable=SC2016 # "$1" is for the hook's shell
	mmdebstrap --variant=essential --format=tar "$@" \
		--include=python3-minimal,libpython3-stdlib,libstdc++6 --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--customize-hook='rm -f "$1/etc/hostname" "$1/etc/resolv.conf"' \
		"$suite" "$part" "deb $mirror $suite main" && mv "$part" "$tarball"
}

# debian_mirror prints where this machine's apt gets Debian from, in whatever
# form it is configured.
debian_mirror() {
	local mirror=${MCP_BRIDGE_DEBIAN_MIRROR:-}
	if [ -z "$mirror" ] && have apt-get; then
		# shellcheck disable=SC2016 # $(…) is apt's own notation
		mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
	fi
	[ -n "$mirror" ] || die "no registry answers, and apt knows no Debian mirror" \
		"run apt-get update as root, or set MCP_BRIDGE_DEBIAN_MIRROR to a Debian mirror's URL"
	say "$mirror"
}

# check IMAGE CODE runs Python as a sandbox does: nobody, nothing writable, no network.
check() {
	"${engine[@]}" run --rm --network none --read-only --cap-drop all --security-opt no-new-privileges \
		--user 65534:65534 "${limits[@]}" "$1" python3 -I -c "$2"
}

check_sandbox() {
	check "$1" '
import sys
import asyncio, bz2, ctypes, decimal, lzma, multiprocessing, sqlite3, ssl, uuid, zlib, zoneinfo
sqlite3.connect(":memory:").execute("select 1")
ssl.create_default_context()
zoneinfo.ZoneInfo("Europe/Berlin")
assert sys.version_info >= (3, 10), sys.version
print("python", sys.version.split()[0])'
}

check_data() {
	check_sandbox "$1" &&
		check "$1" 'import matplotlib, numpy, openpyxl, pandas, PIL.Image, scipy.optimize, scipy.stats'
}

# discard IMAGE… removes the images that nothing names or uses any more.
discard() {
	podman rmi "$debian_base" >/dev/null 2>&1 || true
	local image
	for image in "$@"; do
		[ "$(podman image inspect --format '{{len .RepoTags}}' "$image" 2>/dev/null)" != 0 ] ||
			podman rmi "$image" >/dev/null 2>&1 || true
	done
}

main
