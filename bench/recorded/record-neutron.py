#!/usr/bin/env python3
"""Records the rules that Neutron's Open vSwitch agent installs on one compute node.

    record-neutron.py PYTHON NETWORKS PORTS MEMBERS DIRECTORY

PYTHON is the interpreter of an environment that has Neutron: target/venv-neutron/bin/python, which
`cargo xtask setup neutron` installs from neutron-requirements.txt.
Each of NETWORKS networks has PORTS ports on this node and MEMBERS ports on eight others; all networks are
VXLAN networks, except for the last one, which is a VLAN of a physical network. The firewall driver is
`openvswitch`, and tunnels are populated (`l2_population`, `arp_responder`). In each group of four ports,
the first two are in the security groups `default` and `web`, and the other two in `web` and `db`. Ports of
the integration bridge are numbered from 1. The script writes flows.txt.gz and groups.txt into the folders
br-int, br-tun and br-phys of DIRECTORY. The agent is neutron-agent.py; it runs as root, because it reads the
addresses of this machine through its own privileged library. The variable SWITCH names another switch
than ovs-vswitchd, such as a link of that name to comporta.
"""

import json
import pathlib
import socket
import uuid

from recording import SCHEMA, Site, arguments

HOSTS = 8
BRIDGES = ("br-int", "br-tun", "br-phys")


def identity(name):
    """Returns a UUID that is the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def address(network, number):
    return f"10.{network}.{number // 200}.{number % 200 + 2}"


def mac(network, number):
    return f"0a:00:00:{network:02x}:{number // 256:02x}:{number % 256:02x}"


def rules(group, entries):
    """Returns the rules of a security group, with those that permit all egress."""
    entries = [{"direction": "egress"}, {"direction": "egress", "ethertype": "IPv6"}, *entries]
    return [{"id": identity(f"{group}-{n}"), "direction": "ingress", "ethertype": "IPv4", **entry}
            for n, entry in enumerate(entries)]


def tcp(first, last, **remote):
    return {"protocol": "tcp", "port_range_min": first, "port_range_max": last, **remote}


def security_groups(network):
    """Returns the security groups of the project that owns a network."""
    default, web, db = (f"{name}-{network}" for name in ("default", "web", "db"))
    members = {"remote_group_id": identity(default)}
    entries = {
        default: [members, {"ethertype": "IPv6", **members}],
        web: [tcp(80, 80), tcp(443, 443), {"protocol": "icmp"},
              tcp(8000, 8999, remote_ip_prefix="172.16.0.0/12"), tcp(22, 22, remote_ip_prefix="10.255.0.0/16")],
        db: [tcp(5432, 5432, **members), tcp(3306, 3306, remote_group_id=identity(web))],
    }
    return [{"id": identity(name), "name": name, "rules": rules(name, found)} for name, found in entries.items()]


def topology(networks, ports, members):
    """Returns networks, security groups and ports."""
    found = {"networks": [], "groups": [], "ports": [],
             "endpoints": {f"host{n}": f"192.0.2.{n + 1}" for n in range(HOSTS)}}
    for network in range(networks):
        vlan = network == networks - 1
        names = {key: identity(f"{key}-{network}") for key in ("id", "subnet", "segment_id")}
        found["networks"].append({**names, "name": f"n{network}", "type": "vlan" if vlan else "vxlan",
                                  "physical": "physnet0" if vlan else None, "segment": 100 + network})
        found["groups"] += security_groups(network)
        for number in range(1, ports + members + 1):
            kinds = ("default", "web") if number % 4 in (1, 2) else ("web", "db")
            found["ports"].append({
                "id": identity(f"port-{network}-{number}"), "network": names["id"], "mac": mac(network, number),
                "address": address(network, number), "groups": [identity(f"{kind}-{network}") for kind in kinds],
                "host": "here" if number <= ports else f"host{number % HOSTS}"})
    return found


def configuration(site, port):
    """Returns the configuration of the agent, which listens at a port for OpenFlow."""
    return f"""
[DEFAULT]
host = here
transport_url = fake://
state_path = {site.directory}
[oslo_concurrency]
lock_path = {site.directory}
[OVS]
local_ip = 127.0.0.1
bridge_mappings = physnet0:br-phys
datapath_type = netdev
ovsdb_connection = {site.remote("db")}
of_listen_port = {port}
[AGENT]
tunnel_types = vxlan
l2_population = true
arp_responder = true
minimize_polling = false
root_helper = env
[SECURITYGROUP]
firewall_driver = openvswitch
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    python, *numbers, directory = arguments(__doc__, 5)
    found = topology(*map(int, numbers))
    with Site({"db": SCHEMA}) as site:
        # The agent permits its own versions only.
        site.version = "OpenFlow14"
        folder = pathlib.Path(site.directory)
        (folder / "topology.json").write_text(json.dumps(found), encoding="utf-8")
        (folder / "agent.conf").write_text(configuration(site, free_port()), encoding="utf-8")
        site.start_switch()
        for bridge in BRIDGES[::2]:
            site.add_bridge(bridge)
        local = [port for port in found["ports"] if port["host"] == "here"]
        for number, port in enumerate(local, 1):
            site.add_port("br-int", f"p{number}", number, f"external_ids:iface-id={port['id']}",
                          f'external_ids:attached-mac="{port["mac"]}"')
        agent = pathlib.Path(__file__).resolve().parent / "neutron-agent.py"
        site.start(python, str(agent), str(folder / "topology.json"), str(folder / "agent.conf"))
        site.steady_flows("br-int", 50 * len(local))
        for bridge in BRIDGES:
            site.write(f"{directory}/{bridge}", site.steady_flows(bridge, 1), bridge)


main()
