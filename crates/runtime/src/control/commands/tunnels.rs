//! Commands of tunnels and of their neighbours: `tnl/*` of ovs-vswitchd(8).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

use packet::MacAddr;

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use crate::control::neighbours::NeighbourOrigin;
use config::{OuterField, PortKind, TunnelConfig, TunnelEndpoint, TunnelKey};
use dataplane::underlay::UnderlayPort;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 11] = [
    Command { name: "ofproto/list-tunnels", usage: "",                          least: 0, most: 0, answer: Immediate(tunnels) },
    Command { name: "tnl/arp/aging",    usage: "[SECS]",                        least: 0, most: 1, answer: Immediate(aging) },
    Command { name: "tnl/arp/flush",    usage: "",                              least: 0, most: 0, answer: Immediate(flush) },
    Command { name: "tnl/arp/set",      usage: "BRIDGE IP MAC",                 least: 3, most: 3, answer: Immediate(set) },
    Command { name: "tnl/arp/show",     usage: "",                              least: 0, most: 0, answer: Immediate(neighbours) },
    Command { name: "tnl/egress_port_range", usage: "min max",                  least: 0, most: 2, answer: Immediate(egress_ports) },
    Command { name: "tnl/neigh/aging",  usage: "[SECS]",                        least: 0, most: 1, answer: Immediate(aging) },
    Command { name: "tnl/neigh/flush",  usage: "",                              least: 0, most: 0, answer: Immediate(flush) },
    Command { name: "tnl/neigh/set",    usage: "BRIDGE IP MAC",                 least: 3, most: 3, answer: Immediate(set) },
    Command { name: "tnl/neigh/show",   usage: "",                              least: 0, most: 0, answer: Immediate(neighbours) },
    Command { name: "tnl/ports/show",   usage: "-v",                            least: 0, most: 1, answer: Immediate(ports) },
];

/// A tunnel port: its name, its datapath number, and its configuration.
type TunnelPort<'a> = (&'a str, u32, &'a TunnelConfig);

/// Returns the open tunnel ports.
fn tunnel_ports(control: &mut Control) -> Vec<TunnelPort<'_>> {
    control.datapath_ports();
    let mut found = Vec::new();
    for (bridge, site) in &control.sites {
        for (number, port) in &site.ports {
            let of_path = control.devices.datapath_ports.number((*bridge, *number));
            if let (PortKind::Tunnel(tunnel), Some(of_path)) = (&port.spec.kind, of_path)
                && port.device.is_some()
            {
                found.push((port.spec.name.as_str(), of_path, &**tunnel));
            }
        }
    }
    found
}

/// Lists the tunnel ports in Open vSwitch's format.
fn tunnels(control: &mut Control, _: &[String]) -> Result<String, String> {
    let ports = tunnel_ports(control).into_iter();
    let mut lines: Vec<_> = ports
        .map(|(name, of_path, tunnel)| list(of_path, name, tunnel))
        .collect();
    lines.sort();
    Ok(lines.concat())
}

fn list(number: u32, name: &str, tunnel: &TunnelConfig) -> String {
    let end = |end: TunnelEndpoint| match end {
        TunnelEndpoint::Given(address) => address.to_string(),
        TunnelEndpoint::Any => "::".to_owned(),
        TunnelEndpoint::Flow => "flow".to_owned(),
    };
    let key = |key: TunnelKey| match key {
        TunnelKey::Given(key) if key > 0 => format!("{key:#x}"),
        TunnelKey::Given(_) | TunnelKey::None => "0".to_owned(),
        TunnelKey::Flow => "flow".to_owned(),
    };
    let mode = tunnel.packet_type.name();
    let mut line = format!(
        "port {number}: {name} ({}: {}->{}, key={}, {mode}, dp port={number}",
        tunnel.type_name(),
        end(tunnel.local),
        end(tunnel.remote),
        key(tunnel.in_key),
    );
    if tunnel.out_key != tunnel.in_key {
        write!(line, ", out_key={}", key(tunnel.out_key)).expect(ROOM);
    }
    match tunnel.ttl {
        OuterField::Given(ttl) => write!(line, ", ttl={ttl}").expect(ROOM),
        OuterField::Inherit(_) => line.push_str(", ttl=inherit"),
    }
    match tunnel.tos {
        OuterField::Given(0) => {}
        OuterField::Given(tos) => write!(line, ", tos={tos:#x}").expect(ROOM),
        OuterField::Inherit(_) => line.push_str(", tos=inherit"),
    }
    if !tunnel.dont_fragment {
        line.push_str(", df=false");
    }
    if tunnel.checksum {
        line.push_str(", csum=true");
    }
    line + ")\n"
}

const ROOM: &str = "a string has room";

fn neighbours(control: &mut Control, _: &[String]) -> Result<String, String> {
    let mut text = format!("{:<46}{:<20}Bridge\n{}\n", "IP", "MAC", "=".repeat(74));
    let underlay = control.publications.underlay();
    let cache = &control.underlay.neighbours;
    let mut lines: BTreeMap<(IpAddr, &str), MacAddr> = BTreeMap::new();
    for ((by, host), mac) in &underlay.neighbours {
        let host_port = underlay.ports_of_host.get(by);
        let name = host_port.map_or("", |host_port| &host_port.name);
        lines.insert((*host, name), *mac);
    }
    lines.extend(cache.iter().map(|(name, host, mac)| ((host, name), mac)));
    for ((host, name), mac) in lines {
        writeln!(text, "{:<46}{mac}   {name}", host.to_string()).expect(ROOM);
    }
    Ok(text)
}

/// Sets an entry for the interface or bridge with this name.
fn set(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let name = &arguments[0];
    let sites = control.sites.values();
    let is_bridge = sites.clone().any(|site| site.bridge.name() == name);
    let mut ports = sites.flat_map(|site| site.ports.values());
    let is_known = is_bridge
        || ports.any(|port| port.spec.name == *name)
        || control.host_port_named(name).is_some();
    if !is_known {
        return Err(format!("{name}: no such bridge or port"));
    }
    let host = arguments[1].parse().map_err(|_| "bad IP address")?;
    let mac: MacAddr = arguments[2].parse().map_err(|_| "bad MAC address")?;
    let now = control.now();
    let cache = &mut control.underlay.neighbours;
    cache.set((name.clone(), host), mac, NeighbourOrigin::Command, now);
    control.update_underlay();
    Ok("OK\n".to_owned())
}

/// Removes the neighbours of the cache; those of the kernel remain.
fn flush(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.underlay.neighbours.flush();
    control.update_underlay();
    Ok("OK\n".to_owned())
}

/// Returns or sets the lifetime of entries in seconds.
fn aging(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let now = control.now();
    let cache = &mut control.underlay.neighbours;
    match arguments.first() {
        None => Ok(format!("{}\n", cache.aging_seconds())),
        Some(text) => cache.set_aging(text, now).map(|()| "OK\n".to_owned()),
    }
}

fn egress_ports(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let range = match arguments {
        [] => {
            let (first, last) = control.underlay.egress_ports;
            return Ok(format!("Tunnel UDP source port range: {first}-{last}\n"));
        }
        [first, last] => first.parse().ok().zip(last.parse().ok()),
        _ => None,
    };
    let range = range.filter(|(first, last): &(u16, u16)| *first > 0 && first <= last);
    let wrong = "Invalid range: use two UDP ports, the lower first";
    control.underlay.egress_ports = range.ok_or(wrong)?;
    control.update_underlay();
    Ok("OK\n".to_owned())
}

/// Lists the ports of the datapath that tunnels share, and the number of their tunnels; with `-v`
/// the packets that they receive.
fn ports(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let mut listening: BTreeMap<String, (u32, &TunnelConfig, usize)> = BTreeMap::new();
    let ports: Vec<_> = tunnel_ports(control)
        .into_iter()
        .map(|(_, of_path, tunnel)| (of_path, tunnel.clone()))
        .collect();
    for (of_path, tunnel) in &ports {
        let entry = listening.entry(tunnel.datapath_port());
        entry.or_insert((*of_path, tunnel, 0)).2 += 1;
    }
    let is_verbose = arguments.first().is_some_and(|word| word == "-v");
    let mut text = "Listening ports:\n".to_owned();
    for (name, (of_path, tunnel, count)) in listening {
        if !is_verbose {
            writeln!(text, "{name} ({of_path}) ref_cnt={count}").expect(ROOM);
            continue;
        }
        for host_port in control.publications.underlay().ports_of_host.values() {
            for own in &host_port.addresses {
                let packets = packets_to(host_port, *own, tunnel);
                writeln!(text, "{name} ({of_path}) : {packets}").expect(ROOM);
            }
        }
    }
    Ok(text)
}

/// Formats the packets to a tunnel at this address as a datapath flow.
fn packets_to(host_port: &UnderlayPort, own: IpAddr, tunnel: &TunnelConfig) -> String {
    let (eth_type, ip) = match own {
        IpAddr::V4(_) => (0x0800, "ipv4"),
        IpAddr::V6(_) => (0x86dd, "ipv6"),
    };
    let (protocol, transport) = match tunnel.port {
        0 => (47, String::new()),
        port => (17, format!(",udp(dst={port})")),
    };
    let mac = host_port.mac;
    format!(
        "eth(dst={mac}),eth_type({eth_type:#06x}),{ip}(dst={own},proto={protocol},frag=no){transport}"
    )
}
