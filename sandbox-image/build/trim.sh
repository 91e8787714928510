#!/bin/sh
# Runs as root inside the base image (see Dockerfile.sandbox) and takes away what
# a cell has no use for: package managers, account and mount tools, set-id bits,
# documentation. Works on any Debian-based image that has python3, and needs no
# network. What it removes is gone from the final image, which is one layer.
set -eu

remove_packages() {
	command -v dpkg >/dev/null || return 0
	for package in apt login login.defs passwd mount util-linux util-linux-extra bsdutils \
		e2fsprogs logsave init-system-helpers sysvinit-utils libpam-runtime libpam-modules \
		libpam-modules-bin libpam0g adduser gpgv debian-archive-keyring; do
		if dpkg-query -W "$package" >/dev/null 2>&1; then
			DEBIAN_FRONTEND=noninteractive dpkg --purge --force-all "$package" >/dev/null 2>&1 ||
				echo "trim: $package stays" >&2
		fi
	done
	# dpkg, debconf and perl cannot remove themselves: delete the files they own,
	# and keep dpkg's status so that scanners still know what is installed.
	for package in debconf perl-base dpkg; do
		dpkg-query -L "$package" 2>/dev/null || true
	done >/tmp/trim.list
	while read -r path; do
		if [ ! -d "$path" ] || [ -L "$path" ]; then rm -f "$path"; fi
	done </tmp/trim.list
	rm -rf /tmp/trim.list /usr/share/perl* /usr/lib/*/perl-base /etc/apt /etc/dpkg \
		/var/lib/apt /var/lib/pam /var/cache/* /var/log/*
	find /var/lib/dpkg -mindepth 1 ! -path /var/lib/dpkg/status -delete
}

remove_python_extras() {
	prefix=$(python3 -I -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
	for extra in ensurepip idlelib tkinter turtledemo test lib2to3; do
		rm -rf "${prefix:?}/$extra"
	done
	rm -rf "$prefix"/site-packages/pip "$prefix"/site-packages/pip-* /usr/local/bin/pip* \
		/usr/local/bin/idle* /usr/local/bin/*-config /usr/local/include /root/.cache
	# The root file system is read-only in use, so what is not compiled now is
	# compiled again at every start.
	python3 -I -m compileall -q --invalidation-mode unchecked-hash "$prefix"
}

remove_documents() {
	rm -rf /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale /usr/share/lintian \
		/usr/share/bug /usr/share/pixmaps /usr/share/bash-completion
	rm -rf /usr/lib/*/gconv/[!Ug]* # other charsets are Python's business
}

remove_set_id_bits() {
	find / -xdev -type f -perm /6000 -exec chmod a-s {} +
	find / -xdev -type d -perm /6000 -exec chmod a-s {} +
}

remove_python_extras
remove_packages
remove_documents
remove_set_id_bits
rm -rf /tmp/* /var/tmp/* /run/* 2>/dev/null || true
