#!/bin/sh
# Called by ipmi_sim as: chassis.sh NAME get|set|check WHAT [VALUE] ...
# Files beside this script: `power` holds the real power (1 or 0) of a host without a machine; `button` leads to a host's machine. `fault`
# names the fault, `seems-off` makes a power that is on read as off, `chassis.log` has the calls.
here=$(dirname "$0")
fault=$(cat "$here/fault" 2>/dev/null)
echo "$(date +%s.%N) $*" >>"$here/chassis.log"
verb=$2
shift 2
[ "$fault" = slow ] && sleep 8
[ "$fault" = late ] && [ "$verb" = set ] && sleep 8
[ "$fault" = fail ] && [ "$verb" = set ] && exit 1

# Passes the verb to the machine, and prints whether the machine is on afterwards.
machine() {
    answer=$here/answer.$$
    echo "$1 $$" >"$here/button"
    until [ -f "$answer" ]; do sleep 0.01; done
    cat "$answer"
    rm "$answer"
}

is_on() {
    if [ -p "$here/button" ]; then machine read; else cat "$here/power"; fi
}

set_power() {
    case $fault in
    lie) ;;
    ghost) [ "$1" = 1 ] || echo yes >"$here/seems-off" ;;
    *) if [ -p "$here/button" ]; then [ "$(machine "$1")" = "$1" ]; else echo "$1" >"$here/power"; fi ;;
    esac
}

# A process that hangs does not hear SIGTERM.
shut_down() {
    [ -p "$here/button" ] || set_power 0
}

reset() {
    [ "$(is_on)" = 1 ] || return 1
    [ ! -p "$here/button" ] || machine reset
}

while [ $# -gt 0 ]; do
    case $verb:$1 in
    get:power) if [ -s "$here/seems-off" ]; then echo power:0; else echo "power:$(is_on)"; fi ;;
    get:boot) echo "boot:default" ;;
    set:power) set_power "$2" || exit 1 ;;
    set:shutdown) shut_down ;;
    set:reset) reset >/dev/null || exit 1 ;;
    set:boot | set:identify | check:*) ;;
    *) exit 1 ;;
    esac
    [ "$verb" = set ] && shift
    shift
done
exit 0
