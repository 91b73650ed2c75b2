#!/usr/bin/env python3
"""Records the rules that Faucet installs.

    record-faucet.py FAUCET RULES DIRECTORY

FAUCET is the program of Faucet in its Python environment. Ports 1 and 3 are in one VLAN, ports 2 and
4 in another one, and Faucet routes between them. An access list of RULES rules applies to ports 1 and
2. A host at each port is known to Faucet. The script writes flows.txt.gz and groups.txt into
DIRECTORY.
"""

import os
import pathlib
import time

from recording import SCHEMA, Site, arguments

# The VLAN, MAC address and address of the host at each port.
HOSTS = {
    1: (100, "0a:00:00:00:00:01", "10.0.100.1"),
    2: (200, "0a:00:00:00:00:02", "10.0.200.1"),
    3: (100, "0a:00:00:00:00:03", "10.0.100.2"),
    4: (200, "0a:00:00:00:00:04", "10.0.200.2"),
}
GATEWAYS = {100: "10.0.100.254", 200: "10.0.200.254"}


def configuration(rules):
    """Returns the configuration of Faucet."""
    refused = "".join(
        f"""
    - rule:
        dl_type: 0x800
        nw_proto: {6 if n % 2 else 17}
        nw_src: 172.16.{n // 256}.{n % 256}/32
        {"tcp" if n % 2 else "udp"}_dst: {1 + n % 1000}
        actions: {{allow: 0}}"""
        for n in range(rules))
    ports = "".join(
        f"""
      {port}: {{native_vlan: v{vlan}{", acl_in: guard" if port <= 2 else ""}}}"""
        for port, (vlan, _, _) in HOSTS.items())
    vlans = "".join(
        f"""
  v{vlan}: {{vid: {vlan}, faucet_vips: ["{gateway}/24"], faucet_mac: "0e:00:00:00:{vlan // 100:02x}:01"}}"""
        for vlan, gateway in GATEWAYS.items())
    return f"""
vlans:{vlans}
acls:
  guard:{refused}
    - rule:
        actions: {{allow: 1}}
routers:
  r0: {{vlans: [v100, v200]}}
dps:
  sw1:
    dp_id: 0x1
    hardware: Open vSwitch
    timeout: 30000
    interfaces:{ports}
"""


def main():
    faucet, rules, directory = arguments(__doc__, 3)
    with Site({"db": SCHEMA}) as site:
        site.start_switch()
        site.add_bridge("br0", "other-config:datapath-id=0000000000000001",
                        "other-config:disable-in-band=true")
        for port in HOSTS:
            site.add_port("br0", f"p{port}", port)
        file = pathlib.Path(site.directory) / "faucet.yaml"
        file.write_text(configuration(int(rules)), encoding="utf-8")
        folder = pathlib.Path(faucet).resolve().parent
        site.start(faucet, "--verbose", "--ryu-ofp-tcp-listen-port=6653", FAUCET_CONFIG=str(file),
                   FAUCET_LOG=f"{site.directory}/faucet.log",
                   FAUCET_EXCEPTION_LOG=f"{site.directory}/faucet.exceptions",
                   PATH=f"{folder}:{os.environ['PATH']}")
        site.vsctl("set-controller", "br0", "tcp:127.0.0.1:6653")
        site.steady_flows("br0", 20)
        for _ in range(2):
            for port, (vlan, mac, address) in HOSTS.items():
                site.appctl("netdev-dummy/receive", f"p{port}",
                            f"in_port({port}),eth(src={mac},dst=ff:ff:ff:ff:ff:ff),eth_type(0x0806),"
                            f"arp(sip={address},tip={GATEWAYS[vlan]},op=1,sha={mac},tha=00:00:00:00:00:00)")
            time.sleep(2)
        site.write(directory, site.steady_flows("br0", 20), "br0")


main()
