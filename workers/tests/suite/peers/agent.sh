#!/bin/bash
# A fence agent with a fault.
input=$(cat)
while IFS='=' read -r name value; do
  case $name in
    action) action=$value ;;
    folder) folder=$value ;;
  esac
done <<< "$input"
if [ "$action" = metadata ]; then
  cat <<'XML'
<?xml version="1.0" ?>
<resource-agent name="fence_own" shortdesc="Own">
<parameters>
  <parameter name="folder" required="0"><content type="string" /></parameter>
  <parameter name="password" required="0"><content type="string" /></parameter>
</parameters>
<actions>
  <action name="on" automatic="0"/><action name="off"/><action name="reboot"/><action name="status"/>
</actions>
</resource-agent>
XML
  exit 0
fi
@BODY@
