# Builds kernel modules for the kernel that runs, and says of each what is with it. Arguments:
# the directory; the name of that with the modules; their names. Standard input is a script that
# writes their sources; without it nothing is built, and is said to be wanted.
umask 077
# The compiler's complaints are looked for in English.
export LC_ALL=C
cd "$1" || exit 3
place=$2
work=$place/work
shift 2
trap '' HUP PIPE
trap 'rm -rf "$work"' EXIT
say() {
    printf 'punctual-board %s\n' "$*"
}
lacks() {
    say "lacks $1"
    exit 0
}

[ -f /proc/modules ] || lacks modules
# One workstation at a time; where the directory cannot be locked, there is hardly another.
exec 9<.
flock 9 2>/dev/null
# The release may be that of another kernel, which was built again since.
kernel=$(uname -v)
[ "$(cat "$place/kernel" 2>/dev/null)" = "$kernel" ] || rm -rf "$place"
others=
for name; do
    # One that is loaded for a job is unloaded with it.
    if grep -q "^$name " /proc/modules && ! grep -qx "$name" /run/punctual/modules 2>/dev/null; then
        say "loaded $name"
    else
        others="$others $name"
    fi
done
[ -n "$others" ] || exit 0
[ "$(id -u)" = 0 ] || lacks root
missing=
for name in $others; do
    if [ -f "$place/$name.ko" ]; then
        say "built $name"
    else
        missing="$missing $name"
    fi
done
if [ -n "$missing" ]; then
    headers=/lib/modules/$(uname -r)/build
    [ -f "$headers/Makefile" ] || lacks headers
    command -v make >/dev/null || lacks make
    # The compiler that built the kernel, as Debian's headers name it, if it is here.
    compiler=$(sed -n 's/.*[^a-z]\(gcc-[0-9]*\)$/\1/p' "$headers/.kernelvariables" 2>/dev/null)
    command -v "${compiler:-none}" >/dev/null || compiler=gcc
    command -v "$compiler" >/dev/null || lacks compiler
fi
command -v flock >/dev/null || lacks flock
[ -n "$missing" ] || exit 0

failed() {
    said=$(sed -n '/[Ee]rror\|not found/{s/^[[:space:]]*//;p;q;}' "$place/$1.log")
    say "failed $1 ${said:-$(tail -n 1 "$place/$1.log")}"
}
# A compiler would be a load of whoever measures here.
if grep -q '@punctual-host$' /proc/net/unix; then
    for name in $missing; do
        [ -f "$place/$name.log" ] || lacks quiet
        failed "$name"
    done
    exit 0
fi
if [ ! -d "$place" ]; then
    # What other versions have left is needed only where jobs are.
    rmdir jobs 2>/dev/null
    [ -d jobs ] || rm -rf modules-*
    mkdir "$place" && echo "$kernel" >"$place/kernel" || exit 3
fi
rm -rf "$work"
mkdir "$work" && (cd "$work" && sh) || exit 3
for name in $missing; do
    if [ ! -f "$work/whole" ]; then
        say "wanted $name"
        continue
    fi
    grep -v '^obj-m' "$work/Kbuild" >"$work/Kbuild.new"
    echo "obj-m += $name/" >>"$work/Kbuild.new"
    mv "$work/Kbuild.new" "$work/Kbuild"
    make -C "$headers" M="$PWD/$work" CC="$compiler" KCFLAGS=-g0 CONFIG_DEBUG_INFO_BTF_MODULES= \
        modules </dev/null >"$place/$name.log" 2>&1 9<&-
    if [ ! -f "$work/$name/$name.ko" ]; then
        failed "$name"
        continue
    fi
    # The board may lose its power: what has the name is to be whole.
    sync
    mv "$work/$name/$name.ko" "$place/" && rm "$place/$name.log" && say "built $name"
done
