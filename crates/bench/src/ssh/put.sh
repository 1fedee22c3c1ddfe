# Takes the target from standard input. Arguments: the directory; the target's name there.
umask 077
cd "$1" || exit 3
# What a copy that was cut short has left: the board lost its power.
find . ! -name . -prune -name 'new.*' -mtime +0 -exec rm -f {} + 2>/dev/null
if cat >"new.$$" && chmod 700 "new.$$"; then
    # What other versions have left is needed only where jobs are.
    rmdir jobs 2>/dev/null
    [ -d jobs ] || rm -f target-*
    # The board may lose its power: what has the name is to be whole, and to stay.
    sync
    mv "new.$$" "$2" && { sync; exit 0; }
fi
rm -f "new.$$"
exit 3
