#!/bin/bash
# Makes an OVN network of two machines, which are network namespaces, and pings between their hosts.
# Needs root, ovn-central, ovn-host and `comporta` in PATH. See docs/guide/several-machines.md.
for need in comporta ovn-northd ovn-controller ip; do command -v $need >/dev/null || { echo "$0: $need is not in PATH" >&2; exit 1; }; done
set -e; D=$(mktemp -d); trap 'kill $(jobs -p); for n in m1 m2 h1 h2; do ip netns del $n; done; rm -rf $D' EXIT
serve() { ovsdb-tool create $D/$1.db $2; OVS_RUNDIR=$D ovsdb-server $D/$1.db --remote=punix:$D/$1.sock --unixctl=$D/$1.ctl & }
serve nb /usr/share/ovn/ovn-nb.ovsschema; serve sb /usr/share/ovn/ovn-sb.ovsschema; sleep 1
nb() { ovn-nbctl --db=unix:$D/nb.sock "$@"; }; OVN_RUNDIR=$D ovn-northd --ovnnb-db=unix:$D/nb.sock --ovnsb-db=unix:$D/sb.sock &
for n in 1 2; do ip netns add m$n; ip netns add h$n; ip -n m$n link add p$n type veth peer eth0 netns h$n; done; nb --wait=sb ls-add sw0
ip -n m1 link add wire mtu 1558 type veth peer wire mtu 1558 netns m2
for n in 1 2; do export OVS_RUNDIR=$D/m$n OVN_RUNDIR=$D/m$n; mkdir $D/m$n; serve m$n/db /usr/share/openvswitch/vswitch.ovsschema; sleep 1
  ovs-vsctl --no-wait init; ip netns exec m$n comporta vswitchd & for l in wire p$n; do ip -n m$n link set $l up; done; ip -n m$n address add 172.16.0.$n/24 dev wire
  ovs-vsctl set Open_vSwitch . external_ids:{system-id=m$n,ovn-remote=unix:$D/sb.sock,ovn-encap-type=geneve,ovn-encap-ip=172.16.0.$n,ovn-bridge-datapath-type=netdev} \
    -- add-br br-int -- set Bridge br-int datapath_type=netdev fail_mode=secure -- add-port br-int p$n -- set Interface p$n external_ids:iface-id=p$n
  ip netns exec m$n ovn-controller unix:$D/m$n/db.sock & ip -n h$n address add 10.1.0.$n/24 dev eth0; ip -n h$n link set eth0 address 02:00:00:00:00:0$n up
  nb lsp-add sw0 p$n -- lsp-set-addresses p$n "02:00:00:00:00:0$n 10.1.0.$n"; nb wait-until Logical_Switch_Port p$n up=true; done
ip netns exec h1 ping -c 5 10.1.0.2
