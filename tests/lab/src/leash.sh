# leash.sh SIGNAL LOG HOME PROGRAM ARGUMENT...
# Prints the program's pid, then waits on stdin. The line "stop" ends the program with SIGNAL. The end of stdin means that
# the owner has died: the program is ended, HOME and the files that HOME/outside names are removed, and last this process's group is
# killed with all that the program has left.
signal=$1 log=$2 home=$3
shift 3
"$@" </dev/null >>"$log" 2>&1 &
child=$!
echo "$child"
exec >/dev/null 2>&1
word=
read -r word
kill -s "$signal" "$child"
if [ "$word" = stop ]; then
    wait "$child"
    exit 0
fi
{ sleep 20; kill -s KILL "$child"; } &
guard=$!
wait "$child"
kill "$guard"
[ -f "$home/outside" ] && while read -r path; do rm -f -- "$path"; done <"$home/outside"
rm -rf -- "$home"
kill -s KILL 0
