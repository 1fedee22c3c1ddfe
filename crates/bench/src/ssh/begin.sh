# Begins a conversation in which a job is begun. Arguments: the target, and its own.
# The last is the directory. What jobs write there is to be on the disk at once: the board may
# lose its power. Where that cannot be set, the kernel writes it back later.
mkdir -p "$3/jobs" && chattr +S "$3/jobs" 2>/dev/null
exec "$@"
