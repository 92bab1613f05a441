#!/bin/bash
# Called by ipmi_sim as: NAME get|set|check WHAT [VALUE] ...; the file "fault" names a fault.
state=@DIR@/power
fault=$(cat @DIR@/fault 2>/dev/null)
echo "$*" >> @DIR@/chassis.log
what=$2
shift 2
[ "$fault" = slow ] && sleep 8
[ "$fault" = fail ] && [ "$what" = set ] && exit 1
get() {
  case $1 in
    power) echo "power:$(cat "$state")" ;;
    boot) echo "boot:default" ;;
    *) exit 1 ;;
  esac
}
set_to() {
  case $1 in
    power) [ "$fault" = lie ] || echo "$2" > "$state" ;;
    boot | identify) ;;
    *) exit 1 ;;
  esac
}
while [ $# -gt 0 ]; do
  case $what in
    get) get "$1"; shift ;;
    set) set_to "$1" "$2"; shift 2 ;;
    *) break ;;
  esac
done
exit 0
