#!/usr/bin/env python3
"""A learning switch as an application on os-ken's framework.

    learning.py 1.0|1.3 PORT

listens for switches at PORT and makes each forward like an ordinary switch, by
rules for pairs of hosts that have communicated. Packets to unknown hosts pass
through this application.
"""

import logging
import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3


class Learning(app_manager.OSKenApp):
    """The version-independent part."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Port of each host, by datapath.
        self.stations = {}

    def forward(self, datapath, in_port, message):
        """Learns from a received packet, and forwards it."""
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        stations = self.stations.setdefault(datapath.id, {})
        stations[frame.src] = in_port
        proto, parser = datapath.ofproto, datapath.ofproto_parser
        out_port = stations.get(frame.dst, proto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != proto.OFPP_FLOOD:
            match = self.match(parser, in_port, frame.src, frame.dst)
            self.add_rule(datapath, match, actions)
        out = parser.OFPPacketOut(
            datapath=datapath,
            buffer_id=message.buffer_id,
            in_port=in_port,
            actions=actions,
            data=message.data if message.buffer_id == proto.OFP_NO_BUFFER else None,
        )
        datapath.send_msg(out)


class Learning10(Learning):
    """In OpenFlow 1.0, table misses cause packet-ins by default."""

    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        self.forward(message.datapath, message.in_port, message)

    def match(self, parser, in_port, src, dst):
        return parser.OFPMatch(in_port=in_port, dl_src=src, dl_dst=dst)

    def add_rule(self, datapath, match, actions):
        parser = datapath.ofproto_parser
        rule = parser.OFPFlowMod(
            datapath=datapath,
            match=match,
            cookie=0x10,
            command=datapath.ofproto.OFPFC_ADD,
            priority=10,
            actions=actions,
        )
        datapath.send_msg(rule)


class Learning13(Learning):
    """In OpenFlow 1.3, a rule of the lowest priority causes the packet-ins."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def switch_features(self, event):
        datapath = event.msg.datapath
        proto, parser = datapath.ofproto, datapath.ofproto_parser
        whole = [parser.OFPActionOutput(proto.OFPP_CONTROLLER, proto.OFPCML_NO_BUFFER)]
        self.add_rule(datapath, parser.OFPMatch(), whole, priority=0)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        self.forward(message.datapath, message.match["in_port"], message)

    def match(self, parser, in_port, src, dst):
        return parser.OFPMatch(in_port=in_port, eth_src=src, eth_dst=dst)

    def add_rule(self, datapath, match, actions, priority=10):
        proto, parser = datapath.ofproto, datapath.ofproto_parser
        apply = parser.OFPInstructionActions(proto.OFPIT_APPLY_ACTIONS, actions)
        rule = parser.OFPFlowMod(
            datapath=datapath,
            match=match,
            cookie=0x13,
            priority=priority,
            instructions=[apply],
        )
        datapath.send_msg(rule)


APPLICATIONS = {"1.0": Learning10, "1.3": Learning13}


def main(version, port):
    logging.basicConfig(level=logging.WARNING)
    # The work of os-ken's command, which newer versions lack.
    cfg.CONF(
        args=["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", port],
        project="os_ken",
        prog="learning",
    )
    manager = app_manager.AppManager.get_instance()
    manager.load_apps(["os_ken.controller.ofp_handler"])
    manager.applications_cls["learning"] = APPLICATIONS[version]
    contexts = manager.create_contexts()
    threads = manager.instantiate_apps(**contexts)
    print("ready", flush=True)
    app_manager.hub.joinall(threads)


if __name__ == "__main__":
    main(*sys.argv[1:])
