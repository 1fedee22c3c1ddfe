# Runs a program as long as somebody holds this connection: for any POSIX shell.
# Arguments: the silence, in seconds, after which the other side is lost; the list of the machine's
# local sockets; the program, and its own.
# Each line from the other side is answered. The program ends with the connection, and after that
# silence: a connection may be lost without a sign of it here.
patience=$1
# A program at a real-time priority would be measured with whatever is measured here.
if grep -q '@punctual-host$' "$2" 2>/dev/null; then
    echo 'another run is measuring there'
    exit 1
fi
shift 2
exec 3<&0 </dev/null
"$@" 2>&1 3<&- &
program=$!
(
    # A line has come: the silence begins anew.
    trap : USR1
    trap 'kill $nap; exit' TERM
    while :; do
        sleep "$patience" &
        nap=$!
        wait $nap && break
        kill $nap
    done
    kill $program
) >/dev/null 2>&1 3<&- &
guard=$!
# A word that nobody takes any more, also the shell's own about a killed program, must not end this:
# the guard would go on, and end whatever has the program's number by then.
trap '' PIPE
(
    while read -r line; do
        kill -USR1 $guard
        echo alive
    done
    kill $program
) <&3 2>/dev/null &
reader=$!
exec 3<&-
wait $program
status=$?
kill $guard $reader 2>/dev/null
exit $status
