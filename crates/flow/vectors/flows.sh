#!/bin/sh
# Regenerates the results (">" lines) in flows.txt with Open vSwitch itself: each flow ("<" line)
# is added to a new switch with a dummy data path, and dumped.
# Needs the Debian packages openvswitch-switch and openvswitch-common; no privileges.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
export OVS_RUNDIR="$dir" OVS_LOGDIR="$dir" OVS_DBDIR="$dir" OVS_SYSCONFDIR="$dir"
finish() {
    for file in "$dir"/*.pid; do
        [ -e "$file" ] && kill "$(cat "$file")" || true
    done
    rm -rf "$dir"
}
trap finish EXIT INT TERM
db="unix:$dir/db.sock"
ovsdb-tool create "$dir/conf.db" /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server --detach --no-chdir --pidfile="$dir/ovsdb.pid" --log-file --remote="p$db" "$dir/conf.db" 2>/dev/null
ovs-vsctl --db="$db" --no-wait init
ovs-vswitchd --enable-dummy=override --disable-system --detach --no-chdir --pidfile="$dir/switch.pid" --log-file "$db" 2>/dev/null
ovs-vsctl --db="$db" add-br br0 -- set bridge br0 datapath-type=dummy fail-mode=secure \
    protocols=OpenFlow10,OpenFlow13,OpenFlow15 -- add-port br0 p1 -- set interface p1 type=dummy
ovs-ofctl -O OpenFlow13 add-group br0 group_id=5,type=all

version=OpenFlow13
while IFS= read -r line; do
    case $line in
    '@ '*) version=${line#@ } ;;
    '> '*) continue ;;
    esac
    printf '%s\n' "$line"
    case $line in
    '< '*)
        ovs-ofctl -O OpenFlow13 del-flows br0
        if ovs-ofctl -O "$version" add-flow br0 "${line#< }" >"$dir/out" 2>&1; then
            ovs-ofctl -O "$version" --no-stats --no-names dump-flows br0 | sed -n 's/^ /> /p'
        else
            sed 's/^/> ERROR /' "$dir/out"
        fi
        ;;
    esac
done <"$here/flows.txt" >"$dir/new"
cp "$dir/new" "$here/flows.txt"
