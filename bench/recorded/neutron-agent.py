#!/usr/bin/env python3
"""Neutron's Open vSwitch agent, and the part of neutron-server that it calls.

    neutron-agent.py TOPOLOGY CONFIGURATION

The agent runs unmodified. Its messages stay in this process (`transport_url = fake://`), where a server
answers them from the networks, ports and security groups in the JSON file TOPOLOGY. When the agent
reports that ports are up, the server sends the forwarding entries of ports on other hosts, as the
mechanism driver `l2population` does. record-neutron.py starts this program with the Python interpreter
of an environment that has Neutron.
"""

import json
import sys
import threading

import netaddr
import oslo_messaging
from neutron import objects, privileged
from neutron.common import config
from neutron.conf.agent import common as agent_config
from neutron.objects import network, ports, securitygroup
from neutron.objects.port.extensions import port_security
from neutron.plugins.ml2.drivers.l2pop import rpc as l2pop
from neutron.plugins.ml2.drivers.openvswitch.agent.openflow.native import main as openflow
from neutron_lib import constants, context, rpc
from neutron_lib.agent import topics
from oslo_config import cfg
from oslo_privsep.priv_context import PrivContext


def network_object(net):
    return network.Network(id=net["id"], name=net["name"], mtu=1450, shared=False, project_id="p",
                           revision_number=1)


def rule_object(group, rule):
    return securitygroup.SecurityGroupRule(security_group_id=group["id"], project_id="p", revision_number=1,
                                           **{"protocol": None, "port_range_min": None, "port_range_max": None,
                                              "remote_group_id": None, "remote_ip_prefix": None,
                                              "remote_address_group_id": None, "normalized_cidr": None, **rule,
                                              **prefix(rule)})


def prefix(rule):
    """Returns the remote prefix of a rule as Neutron's objects require it."""
    text = rule.get("remote_ip_prefix")
    return {"remote_ip_prefix": netaddr.IPNetwork(text), "normalized_cidr": netaddr.IPNetwork(text)} if text else {}


def group_object(group):
    return securitygroup.SecurityGroup(id=group["id"], name=group["name"], project_id="p", is_default=False,
                                       stateful=True, shared=False, revision_number=1,
                                       rules=[rule_object(group, rule) for rule in group["rules"]])


def port_object(port, net):
    segment = network.NetworkSegment(id=net["segment_id"], network_id=net["id"], network_type=net["type"],
                                     physical_network=net["physical"], segmentation_id=net["segment"],
                                     is_dynamic=False, segment_index=0)
    identity = port["id"]
    return ports.Port(
        id=identity, project_id="p", network_id=net["id"], mac_address=netaddr.EUI(port["mac"]),
        admin_state_up=True, status="DOWN", device_id=identity, device_owner="compute:nova",
        security_group_ids=set(port["groups"]), allowed_address_pairs=[], qos_policy_id=None,
        qos_network_policy_id=None, revision_number=1, dhcp_options=[],
        security=port_security.PortSecurity(id=identity, port_security_enabled=True),
        fixed_ips=[ports.IPAllocation(port_id=identity, subnet_id=net["subnet"], network_id=net["id"],
                                      ip_address=netaddr.IPAddress(port["address"]))],
        bindings=[ports.PortBinding(port_id=identity, host=port["host"], vif_type="ovs", vif_details={},
                                    vnic_type="normal", profile={}, status=constants.ACTIVE)],
        binding_levels=[ports.PortBindingLevel(port_id=identity, host=port["host"], level=0, driver="openvswitch",
                                               segment_id=net["segment_id"], segment=segment)])


class Resources:
    """Versioned objects, which the agent pulls by their properties."""

    target = oslo_messaging.Target(version="1.1", namespace=constants.RPC_NAMESPACE_RESOURCES)

    def __init__(self, topology):
        networks = {net["id"]: net for net in topology["networks"]}
        groups = [group_object(group) for group in topology["groups"]]
        self.objects = {
            "Network": [network_object(net) for net in networks.values()],
            "SecurityGroup": groups,
            "SecurityGroupRule": [rule for group in groups for rule in group.rules],
            "Port": [port_object(port, networks[port["network"]]) for port in topology["ports"]],
        }

    def bulk_pull(self, context, resource_type, version, filter_kwargs=None):
        return [found.obj_to_primitive(target_version=version) for found in self.objects.get(resource_type, [])
                if all(agrees(getattr(found, name), values) for name, values in (filter_kwargs or {}).items())]


def agrees(value, permitted):
    values = value if isinstance(value, (list, set, tuple)) else [value]
    return any(one in permitted for one in values)


class Plugin:
    """States of devices and tunnels."""

    target = oslo_messaging.Target(version="1.9")

    def __init__(self, topology):
        self.topology = topology
        self.notify = l2pop.L2populationAgentNotifyAPI()

    def update_device_list(self, context, devices_up, devices_down, **_):
        if devices_up:
            self.notify.add_fdb_entries(context, forwarding_entries(self.topology, set(devices_up)))
        return {"devices_up": devices_up, "failed_devices_up": [], "devices_down": devices_down,
                "failed_devices_down": []}

    def get_network_details(self, context, network, **_):
        found = next(net for net in self.topology["networks"] if net["id"] == network)
        return {"id": found["id"], "name": found["name"], "provider:network_type": found["type"],
                "provider:physical_network": found["physical"], "provider:segmentation_id": found["segment"]}

    def tunnel_sync(self, context, tunnel_ip, tunnel_type=None, host=None):
        return {"tunnels": []}


def forwarding_entries(topology, devices):
    """Returns the ports on other hosts, by network and tunnel endpoint, of the networks of these devices."""
    used = {port["network"] for port in topology["ports"] if port["id"] in devices}
    entries = {}
    for net in topology["networks"]:
        if net["id"] not in used or net["type"] != "vxlan":
            continue
        endpoints = {}
        for port in topology["ports"]:
            endpoint = topology["endpoints"].get(port["host"])
            if port["network"] == net["id"] and endpoint:
                found = endpoints.setdefault(endpoint, [constants.FLOODING_ENTRY])
                found.append((port["mac"], port["address"]))
        entries[net["id"]] = {"segment_id": net["segment"], "network_type": net["type"], "ports": endpoints}
    return entries


class Reports:
    """Heartbeats."""

    target = oslo_messaging.Target(version="1.4")

    def has_alive_neutron_server(self, context, **_):
        return True

    def report_state(self, context, **_):
        return "alive"


def serve(topology):
    for topic, endpoints in ((topics.PLUGIN, [Plugin(topology), Resources(topology)]), (topics.REPORTS, [Reports()])):
        target = oslo_messaging.Target(topic=topic, server="server")
        rpc.get_server(target, endpoints).start()


def main():
    topology, configuration = sys.argv[1:]
    with open(topology, encoding="utf-8") as file:
        topology = json.load(file)
    objects.register_objects()
    config.register_common_config_options()
    config.init(["--config-file", configuration])
    agent_config.register_root_helper(cfg.CONF)
    openflow.init_config()
    config.setup_logging()
    # The agent has the privileges of this process, and starts no daemon with others.
    for privileges in vars(privileged).values():
        if isinstance(privileges, PrivContext):
            privileges.set_client_mode(False)
    serve(topology)
    openflow.main()


main()
