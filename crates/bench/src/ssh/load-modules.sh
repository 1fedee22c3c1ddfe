# Loads kernel modules for a command, and has them unloaded when all that it began has ended,
# whoever is connected then. Arguments: the directory with the modules; their names; --; the
# command. Those that are loaded already are left alone. What the kernel refuses is said on
# standard error.
from=$1
shift
loaded=/run/punctual/modules
mkdir -p /run/punctual
# What the command begins inherits the lock, and the kernel takes it back when the last of it
# has ended, however. In the file are the names of those that were loaded by this.
# A shell ends with a status of its own if a bare exec fails.
command exec 9>>"$loaded" && flock -s 9 || exit 3
(
    trap '' HUP
    PATH=$PATH:/usr/sbin:/sbin
    flock -x 9 || exit
    for name in $(cat "$loaded"); do
        rmmod "$name"
    done
    : >"$loaded"
) 9<"$loaded" </dev/null >/dev/null 2>&1 &
while [ "$1" != -- ]; do
    if ! grep -q "^$1 " /proc/modules; then
        if said=$(PATH=$PATH:/usr/sbin:/sbin && insmod "$from/$1.ko" 2>&1); then
            echo "$1" >&9
        elif ! grep -q "^$1 " /proc/modules; then
            printf 'punctual-board refused %s %s\n' "$1" "$said" >&2
        fi
    fi
    shift
done
shift
exec "$@" 9>&9
