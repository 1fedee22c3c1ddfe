#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Preprocesses a piece of a kernel's source, lib/, with that kernel's configuration and flags.
#
# Usage: tree.sh HEADERS PACKAGE=VERSION OUTDIR
#
# HEADERS is the directory of the kernel's headers, PACKAGE Debian's package of its source.
set -eu

headers=$1 package=$2 out=$3
files='assoc_array bitmap idr iov_iter klist kobject radix-tree scatterlist'

work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

# Root's apt-get would otherwise warn that its own user cannot write here.
apt-get -q -o APT::Sandbox::User=root download "$package" >&2
mkdir source lib
dpkg-deb --fsys-tarfile ./*.deb | tar -xO --wildcards './usr/src/*.tar.xz' |
	tar -xJ -C source --strip-components=1 --wildcards '*/lib/*.[ch]'
cp source/lib/*.h lib
objects=
for file in $files; do
	cp "source/lib/$file.c" lib
	objects="$objects $file.o"
done
echo "obj-m :=$objects" >lib/Kbuild
# shellcheck disable=SC2046 # one word per file
make -s -C "$headers" M="$work/lib" $(printf '%s.i ' $files) >&2

# The same bytes wherever this is done: without the paths of this machine.
mkdir result
for file in $files; do
	sed -e '/^# [0-9]/d' -e "s|$work/||g" "lib/$file.i" >"result/$file.i"
done
if grep -l "$work\|$headers" result/*; then
	echo "tree.sh: paths of this machine are left in these files" >&2
	exit 1
fi
mv -T result "$out"
