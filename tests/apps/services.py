#!/usr/bin/env python3
"""Applications of os-ken's libraries: spanning tree and link discovery.

    services.py tree|links PORT

listens for switches at PORT. With `tree`, each forwards like an ordinary switch on a spanning tree,
which `stplib` computes from its own BPDUs and applies by port-mods; each change of a port's state
is printed as a line. With `links`, `topology.switches` discovers the links between switches; each
is printed as a line.
"""

import logging
import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import dpid as dpid_lib
from os_ken.lib import stplib
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3
from os_ken.topology import event as topology_event

STATES = {
    stplib.PORT_STATE_DISABLE: "disable",
    stplib.PORT_STATE_BLOCK: "block",
    stplib.PORT_STATE_LISTEN: "listen",
    stplib.PORT_STATE_LEARN: "learn",
    stplib.PORT_STATE_FORWARD: "forward",
}


class Tree(app_manager.OSKenApp):
    """A learning switch on a spanning tree."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]
    _CONTEXTS = {"stplib": stplib.Stp}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.stations = {}
        # The shortest times that the standard allows.
        times = {"hello_time": 1, "max_age": 6, "fwd_delay": 4}
        kwargs["stplib"].set_config(
            {
                dpid_lib.str_to_dpid(f"{number:016x}"): {
                    "bridge": {"priority": 0x8000 + 0x1000 * number, **times}
                }
                for number in range(1, 4)
            }
        )

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def switch_features(self, event):
        datapath = event.msg.datapath
        proto, parser = datapath.ofproto, datapath.ofproto_parser
        whole = [parser.OFPActionOutput(proto.OFPP_CONTROLLER, proto.OFPCML_NO_BUFFER)]
        self.add_rule(datapath, 0, parser.OFPMatch(), whole)

    def add_rule(self, datapath, priority, match, actions):
        proto, parser = datapath.ofproto, datapath.ofproto_parser
        apply = parser.OFPInstructionActions(proto.OFPIT_APPLY_ACTIONS, actions)
        rule = parser.OFPFlowMod(
            datapath=datapath, priority=priority, match=match, instructions=[apply]
        )
        datapath.send_msg(rule)

    @set_ev_cls(stplib.EventPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        datapath, in_port = message.datapath, message.match["in_port"]
        proto, parser = datapath.ofproto, datapath.ofproto_parser
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        stations = self.stations.setdefault(datapath.id, {})
        stations[frame.src] = in_port
        out_port = stations.get(frame.dst, proto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != proto.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=in_port, eth_dst=frame.dst)
            self.add_rule(datapath, 1, match, actions)
        out = parser.OFPPacketOut(
            datapath=datapath,
            buffer_id=proto.OFP_NO_BUFFER,
            in_port=in_port,
            actions=actions,
            data=message.data,
        )
        datapath.send_msg(out)

    @set_ev_cls(stplib.EventTopologyChange, MAIN_DISPATCHER)
    def topology_changes(self, event):
        datapath = event.dp
        proto, parser = datapath.ofproto, datapath.ofproto_parser
        for mac in self.stations.pop(datapath.id, {}):
            forget = parser.OFPFlowMod(
                datapath=datapath,
                command=proto.OFPFC_DELETE,
                out_port=proto.OFPP_ANY,
                out_group=proto.OFPG_ANY,
                priority=1,
                match=parser.OFPMatch(eth_dst=mac),
            )
            datapath.send_msg(forget)

    @set_ev_cls(stplib.EventPortStateChange, MAIN_DISPATCHER)
    def port_changes(self, event):
        print("port", event.dp.id, event.port_no, STATES[event.port_state], flush=True)


class Links(app_manager.OSKenApp):
    """Prints the discovered links."""

    @set_ev_cls(topology_event.EventLinkAdd)
    def link(self, event):
        ends = (event.link.src, event.link.dst)
        names = [f"{end.dpid}:{end.port_no}" for end in ends]
        print("link", *names, flush=True)


APPLICATIONS = {"tree": Tree, "links": Links}


def main(which, port):
    logging.basicConfig(level=logging.WARNING)
    # The work of os-ken's command, which newer versions lack.
    manager = app_manager.AppManager.get_instance()
    modules = ["os_ken.controller.ofp_handler"]
    if which == "links":
        modules += ["os_ken.topology.switches"]
    manager.load_apps(modules)
    words = ["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", port]
    if which == "links":
        words += ["--observe-links"]
    cfg.CONF(args=words, project="os_ken", prog="services")
    manager.applications_cls[which] = APPLICATIONS[which]
    for key, cls in APPLICATIONS[which].context_iteritems():
        manager.contexts_cls[key] = cls
    contexts = manager.create_contexts()
    threads = manager.instantiate_apps(**contexts)
    print("ready", flush=True)
    app_manager.hub.joinall(threads)


if __name__ == "__main__":
    main(*sys.argv[1:])
