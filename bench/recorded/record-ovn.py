#!/usr/bin/env python3
"""Records the rules that ovn-controller installs on one chassis.

    record-ovn.py SWITCHES PORTS NETWORKS DIRECTORY

SWITCHES logical switches with PORTS ports each are joined by a router. All ports are in a port group
with a stateful access list; its rules name an address set of NETWORKS networks. A load balancer has
two backends. Ports 1 to 4 of the bridge are the first ports of the first switch; all others are on
another chassis. The script writes flows.txt.gz and groups.txt into DIRECTORY. It runs ovn-northd,
ovn-controller and Open vSwitch with dummy interfaces, and needs root for none of them.
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SCHEMAS = {
    "db": "/usr/share/openvswitch/vswitch.ovsschema",
    "nb": "/usr/share/ovn/ovn-nb.ovsschema",
    "sb": "/usr/share/ovn/ovn-sb.ovsschema",
}
LOCAL_PORTS = 4
BATCH = 500


class Chassis:
    """The programs of one chassis, with their databases in a temporary directory."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = []
        self.environment = {**os.environ, "OVS_RUNDIR": directory, "OVN_RUNDIR": directory,
                            "OVS_LOGDIR": directory, "OVN_LOGDIR": directory}
        for name, schema in SCHEMAS.items():
            self.run("ovsdb-tool", "create", f"{name}.db", schema)
            self.start("ovsdb-server", f"{name}.db", f"--remote=punix:{name}.sock", f"--unixctl={name}.ctl")
        for name in SCHEMAS:
            wait_for(lambda: os.path.exists(f"{directory}/{name}.sock"))

    def remote(self, name):
        return f"unix:{self.directory}/{name}.sock"

    def start(self, *words):
        log = open(f"{self.directory}/{words[0]}.err", "a", encoding="utf-8")
        process = subprocess.Popen(words, cwd=self.directory, env=self.environment, stdout=log, stderr=log)
        self.processes.append(process)

    def run(self, *words):
        done = subprocess.run(words, cwd=self.directory, env=self.environment, check=True,
                              stdout=subprocess.PIPE, text=True)
        return done.stdout

    def vsctl(self, *words):
        return self.run("ovs-vsctl", f"--db={self.remote('db')}", "--timeout=60", *words)

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

    def dump(self, table):
        socket = f"unix:{self.directory}/br-int.mgmt"
        text = self.run("ovs-ofctl", "-O", "OpenFlow15", "--no-names", "--no-stats", table, socket)
        return [line.strip() for line in text.splitlines()[1:]]

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


def wait_for(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)


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


def record(chassis, switches, ports, networks):
    chassis.start("ovs-vswitchd", chassis.remote("db"), "--enable-dummy=override", "--disable-system",
                  f"--unixctl={chassis.directory}/vswitchd.ctl")
    chassis.vsctl("--no-wait", "init")
    chassis.start("ovn-northd", f"--ovnnb-db={chassis.remote('nb')}", f"--ovnsb-db={chassis.remote('sb')}",
                  "--unixctl=northd.ctl")
    ids = {"system-id": "here", "ovn-remote": chassis.remote("sb"), "ovn-encap-type": "geneve",
           "ovn-encap-ip": "127.0.0.1"}
    chassis.vsctl("set", "open", ".", *(f'external_ids:{key}="{value}"' for key, value in ids.items()))
    chassis.vsctl("add-br", "br-int", "--", "set", "bridge", "br-int", "fail_mode=secure",
                  "datapath_type=dummy")
    for port in range(1, LOCAL_PORTS + 1):
        chassis.vsctl("add-port", "br-int", f"p{port}", "--", "set", "interface", f"p{port}", "type=dummy",
                      f"ofport_request={port}", f"external_ids:iface-id=s0-p{port}")
    chassis.start("ovn-controller", chassis.remote("db"))
    wait_for(lambda: "here" in chassis.sbctl("list", "chassis"))
    chassis.sbctl("chassis-add", "there", "geneve", "127.0.0.2")
    chassis.change(topology(switches, ports, networks))
    chassis.nbctl("--wait=sb", "sync")
    # ovn-controller takes its own four ports back.
    there = chassis.sbctl("--bare", "--columns=_uuid", "find", "chassis", "name=there").strip()
    update = {"op": "update", "table": "Port_Binding", "where": [["type", "==", ""]],
              "row": {"chassis": ["uuid", there]}}
    chassis.run("ovsdb-client", "transact", chassis.remote("sb"), json.dumps(["OVN_Southbound", update]))
    steady = count = 0
    while steady < 3:
        time.sleep(2)
        flows = chassis.dump("dump-flows")
        steady, count = (steady + 1 if len(flows) == count and count > 100 else 0), len(flows)
    return flows, chassis.dump("dump-groups")


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    switches, ports, networks = map(int, sys.argv[1:4])
    out = pathlib.Path(sys.argv[4])
    directory = tempfile.mkdtemp()
    chassis = Chassis(directory)
    try:
        flows, groups = record(chassis, switches, ports, networks)
    finally:
        chassis.stop()
        shutil.rmtree(directory)
    flows = [re.sub(r"^ *cookie=0x[0-9a-f]+, *", "", flow) for flow in flows]
    out.mkdir(parents=True, exist_ok=True)
    with lzma.open(out / "flows.txt.gz", "wt", preset=9) as file:
        file.write("".join(f"{flow}\n" for flow in flows).encode())
    (out / "groups.txt").write_text("".join(f"{group}\n" for group in groups), encoding="utf-8")
    print(f"{len(flows)} flows, {len(groups)} groups")


main()
