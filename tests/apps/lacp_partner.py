#!/usr/bin/env python3
"""Partner of an aggregated link: sends twice a second by LACP that it is ready, and prints a line
when its partner sends the same (IEEE 802.1AX, 6.4).

    lacp_partner.py INTERFACE
"""

import socket
import sys
import time

from os_ken.lib.packet import ethernet, packet, slow

SLOW = "01:80:c2:00:00:02"
PERIOD = 0.5
ALL = 0xFFFF


def pdu(mac, partner):
    """Its own state, and the last state received from the partner."""
    heard = {}
    if partner is not None:
        names = ["system_priority", "system", "key", "port_priority", "port"]
        names += ["state_" + state for state in STATES]
        heard = {"partner_" + name: getattr(partner, "actor_" + name) for name in names}
    says = {"actor_state_" + state: 1 for state in STATES[:6]}
    return slow.lacp(
        actor_system_priority=ALL,
        actor_system=mac,
        actor_key=1,
        actor_port_priority=255,
        actor_port=1,
        **says,
        **heard,
    )


STATES = [
    "activity",
    "timeout",
    "aggregation",
    "synchronization",
    "collecting",
    "distributing",
    "defaulted",
    "expired",
]


def main(interface):
    """Sends and receives until it is terminated."""
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x8809))
    end.bind((interface, 0x8809))
    mac = ":".join(f"{byte:02x}" for byte in end.getsockname()[4])
    partner, due, ready = None, 0, False
    while True:
        if time.monotonic() >= due:
            frame = packet.Packet()
            frame.add_protocol(ethernet.ethernet(SLOW, mac, 0x8809))
            frame.add_protocol(pdu(mac, partner))
            frame.serialize()
            end.send(frame.data)
            due = time.monotonic() + PERIOD
        end.settimeout(max(due - time.monotonic(), 0.01))
        try:
            heard = packet.Packet(end.recv(2048)).get_protocol(slow.lacp)
        except socket.timeout:
            continue
        if heard is None or heard.actor_system == mac:
            continue
        partner = heard
        states = [heard.actor_state_synchronization, heard.actor_state_collecting]
        if all(states) and not ready:
            ready = True
            print("ready", flush=True)


main(*sys.argv[1:])
