#!/bin/sh
# Runs in the base image (see Dockerfile.sandbox) and puts the locked packages for
# its Python below the folder $1, at the path where that Python looks for them.
# Wheels beside this script, with the pip that is to install them, make it work
# without a network; otherwise the base's own pip fetches them.
set -eu
root=$1
here=$(dirname "$0")
version=$(python3 -I -c 'import sys; print("%d.%d" % sys.version_info[:2])')
site=$(python3 -I -c 'import site; print(site.getsitepackages()[0])')
lock=$here/requirements/data-$version.txt
[ -s "$lock" ] || { echo "data: there is no list of packages for Python $version" >&2; exit 1; }

set -- install --target "$root$site" --require-hashes --only-binary :all: --no-deps --no-compile \
	--no-cache-dir --disable-pip-version-check --root-user-action ignore -r "$lock"
if [ -d "$here/wheels" ]; then
	pip=$(echo "$here"/wheels/pip-*.whl) # it runs from its own wheel
	python3 "$pip/pip" "$@" --no-index --find-links "$here/wheels"
else
	python3 -m pip "$@"
fi

cd "$root$site"
rm -rf bin share # commands and manuals
# Nobody runs their tests here. Those of numpy stay: its testing module imports them.
find pandas scipy matplotlib openpyxl -type d -name tests -prune -exec rm -rf {} +
# As in trim.sh: what is not compiled now is compiled again at every start.
python3 -I -m compileall -q --invalidation-mode unchecked-hash .
