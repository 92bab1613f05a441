#!/bin/sh
# Called by ipmi_sim as: chassis.sh NAME get|set|check WHAT [VALUE] ...
# Beside it: `power` holds the truth (1 or 0), `fault` how to misbehave, `chassis.log` what was asked.
here=$(dirname "$0")
fault=$(cat "$here/fault" 2>/dev/null)
echo "$(date +%s.%N) $*" >>"$here/chassis.log"
verb=$2
shift 2
[ "$fault" = slow ] && sleep 8
[ "$fault" = fail ] && [ "$verb" = set ] && exit 1

set_power() {
    [ "$fault" = lie ] || echo "$1" >"$here/power"
}

while [ $# -gt 0 ]; do
    case $verb:$1 in
    get:power) echo "power:$(cat "$here/power")" ;;
    get:boot) echo "boot:default" ;;
    set:power) set_power "$2" ;;
    set:shutdown) set_power 0 ;;
    set:reset) [ "$(cat "$here/power")" = 1 ] || exit 1 ;;
    set:boot | set:identify | check:*) ;;
    *) exit 1 ;;
    esac
    [ "$verb" = set ] && shift
    shift
done
exit 0
