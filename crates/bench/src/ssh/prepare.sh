# Whether the board has the target, and where: for any POSIX shell.
# Arguments: the directory, or nothing for the usual one; the target's name there.
umask 077
directory=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/punctual}
mkdir -p "$directory" || exit 3
cd "$directory" || exit 3
[ -f "$2" ] && there=yes || there=no
printf "punctual-board %s %s\n" "$there" "$(pwd)"
