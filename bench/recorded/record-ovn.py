#!/usr/bin/env python3
"""Records the rules that ovn-controller installs on one chassis.

    record-ovn.py SWITCHES PORTS NETWORKS DIRECTORY

SWITCHES logical switches with PORTS ports each are joined by a router. All ports are in a port group
with a stateful access list; its rules name an address set of NETWORKS networks. A load balancer has
two backends. Ports 1 to 4 of the bridge are the first ports of the first switch; all others are on
another chassis. The script writes flows.txt.gz and groups.txt into DIRECTORY. It runs ovn-northd,
ovn-controller and Open vSwitch with dummy interfaces, and needs root for none of them.
"""

import json

from recording import SCHEMA, Site, arguments, wait_for

SCHEMAS = {"db": SCHEMA, "nb": "/usr/share/ovn/ovn-nb.ovsschema", "sb": "/usr/share/ovn/ovn-sb.ovsschema"}
LOCAL_PORTS = 4
BATCH = 500


def address(switch, port):
    return f"10.{switch}.{port // 200}.{port % 200 + 2}"


def mac(switch, port):
    return f"0a:00:00:{switch:02x}:{port // 256:02x}:{port % 256:02x}"


def topology(switches, ports, networks):
    """Returns the commands that create the logical network."""
    commands = [["lr-add", "r0"]]
    members = []
    for switch in range(switches):
        name, router = f"s{switch}", f"s{switch}-r0"
        commands += [
            ["ls-add", name],
            ["lrp-add", "r0", f"r0-s{switch}", f"0a:00:01:00:00:{switch:02x}", f"10.{switch}.255.254/16"],
            ["lsp-add", name, router],
            ["lsp-set-type", router, "router"],
            ["lsp-set-addresses", router, "router"],
            ["lsp-set-options", router, f"router-port=r0-s{switch}"],
        ]
        for port in range(1, ports + 1):
            member = f"s{switch}-p{port}"
            host = f"{mac(switch, port)} {address(switch, port)}"
            commands += [
                ["lsp-add", name, member],
                ["lsp-set-addresses", member, host],
                ["lsp-set-port-security", member, host],
            ]
            members.append(member)
    commands += [["pg-add", "hosts", *members]]
    commands += [["create", "Address_Set", "name=friends"]]
    addresses = [f'"172.{16 + n // 256}.{n % 256}.0/24"' for n in range(networks)]
    for first in range(0, networks, BATCH):
        commands += [["add", "Address_Set", "friends", "addresses", *addresses[first:first + BATCH]]]
    for direction, port, ip in (("from-lport", "inport", "dst"), ("to-lport", "outport", "src")):
        own = f"{port} == @hosts"
        commands += [
            ["acl-add", "hosts", direction, "1000", f"{own} && ip4", "drop"],
            ["acl-add", "hosts", direction, "1001", f"{own} && ip4.{ip} == 10.0.0.0/8", "allow-related"],
            ["acl-add", "hosts", direction, "1002", f"{own} && ip4.{ip} == $friends && tcp.dst == {{80, 443}}",
             "allow-related"],
            ["acl-add", "hosts", direction, "1003", f"{own} && udp.dst == 1..1023 && ip4.{ip} == 10.0.0.0/8",
             "drop"],
        ]
    backends = ",".join(f"{address(0, port)}:8080" for port in (2, 3))
    commands += [["lb-add", "lb0", "10.200.0.1:80", backends, "tcp"]]
    commands += [["ls-lb-add", f"s{switch}", "lb0"] for switch in range(switches)]
    return commands


class Chassis(Site):
    """A switch with the databases of OVN."""

    def sbctl(self, *words):
        return self.run("ovn-sbctl", f"--db={self.remote('sb')}", "--timeout=600", *words)

    def nbctl(self, *words):
        return self.run("ovn-nbctl", f"--db={self.remote('nb')}", "--timeout=600", *words)

    def change(self, commands):
        """Executes commands of ovn-nbctl, several in one transaction."""
        for first in range(0, len(commands), BATCH):
            words = []
            for command in commands[first:first + BATCH]:
                words += ["--", *command]
            self.nbctl(*words)

    def start_controller(self):
        self.start("ovn-northd", f"--ovnnb-db={self.remote('nb')}", f"--ovnsb-db={self.remote('sb')}",
                   "--unixctl=northd.ctl")
        ids = {"system-id": "here", "ovn-remote": self.remote("sb"), "ovn-encap-type": "geneve",
               "ovn-encap-ip": "127.0.0.1"}
        self.vsctl("set", "open", ".", *(f'external_ids:{key}="{value}"' for key, value in ids.items()))
        self.add_bridge("br-int")
        for port in range(1, LOCAL_PORTS + 1):
            self.add_port("br-int", f"p{port}", port, f"external_ids:iface-id=s0-p{port}")
        # ovn-controller 23.03 crashes on a southbound database without its global row.
        self.nbctl("--wait=sb", "sync")
        self.start("ovn-controller", self.remote("db"))
        wait_for(lambda: "here" in self.sbctl("list", "chassis"))
        self.sbctl("chassis-add", "there", "geneve", "127.0.0.2")

    def bind_ports(self):
        """Binds all ports to the other chassis; ovn-controller takes its own four back."""
        there = self.sbctl("--bare", "--columns=_uuid", "find", "chassis", "name=there").strip()
        update = {"op": "update", "table": "Port_Binding", "where": [["type", "==", ""]],
                  "row": {"chassis": ["uuid", there]}}
        self.run("ovsdb-client", "transact", self.remote("sb"), json.dumps(["OVN_Southbound", update]))


def main():
    *numbers, directory = arguments(__doc__, 4)
    with Chassis(SCHEMAS) as chassis:
        chassis.start_switch()
        chassis.start_controller()
        chassis.change(topology(*map(int, numbers)))
        chassis.nbctl("--wait=sb", "sync")
        chassis.bind_ports()
        chassis.write(directory, chassis.steady_flows("br-int", 100), "br-int")


main()
