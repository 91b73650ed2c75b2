//! Commands of tunnels and their underlay: `ovs/route/*` and `tnl/*` of ovs-vswitchd(8).

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::PortNo;
use packet::MacAddr;
use packet::tunnel::TunnelProtocol;

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use crate::control::underlay::UserRoute;
use config::{OuterField, PortKind, TunnelConfig, TunnelEndpoint, TunnelKey};
use dataplane::underlay::{Underlay, UnderlayPort, UnderlayRoute};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 13] = [
    Command { name: "ofproto/list-tunnels", usage: "",                          least: 0, most: 0, answer: Immediate(tunnels) },
    Command { name: "ovs/route/add",    usage: "ip/plen dev [gw] [src=src_ip]", least: 2, most: 4, answer: Immediate(add_route) },
    Command { name: "ovs/route/del",    usage: "ip/plen",                       least: 1, most: 1, answer: Immediate(delete_route) },
    Command { name: "ovs/route/lookup", usage: "ip_addr",                       least: 1, most: 1, answer: Immediate(look_up) },
    Command { name: "ovs/route/show",   usage: "",                              least: 0, most: 0, answer: Immediate(routes) },
    Command { name: "tnl/arp/flush",    usage: "",                              least: 0, most: 0, answer: Immediate(flush) },
    Command { name: "tnl/arp/set",      usage: "BRIDGE IP MAC",                 least: 3, most: 3, answer: Immediate(set) },
    Command { name: "tnl/arp/show",     usage: "",                              least: 0, most: 0, answer: Immediate(neighbours) },
    Command { name: "tnl/egress_port_range", usage: "min max",                  least: 0, most: 2, answer: Immediate(egress_ports) },
    Command { name: "tnl/neigh/flush",  usage: "",                              least: 0, most: 0, answer: Immediate(flush) },
    Command { name: "tnl/neigh/set",    usage: "BRIDGE IP MAC",                 least: 3, most: 3, answer: Immediate(set) },
    Command { name: "tnl/neigh/show",   usage: "",                              least: 0, most: 0, answer: Immediate(neighbours) },
    Command { name: "tnl/ports/show",   usage: "-v",                            least: 0, most: 1, answer: Immediate(ports) },
];

/// Lists the tunnel ports in Open vSwitch's format.
fn tunnels(control: &mut Control, _: &[String]) -> Result<String, String> {
    let mut lines = Vec::new();
    for site in control.sites.values() {
        for (number, port) in &site.ports {
            if let PortKind::Tunnel(tunnel) = &port.spec.kind {
                lines.push(list(*number, &port.spec.name, tunnel));
            }
        }
    }
    lines.sort();
    Ok(lines.concat())
}

fn list(number: PortNo, name: &str, tunnel: &TunnelConfig) -> String {
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
    let mode = if tunnel.is_layer3 {
        "legacy_l3"
    } else {
        "legacy_l2"
    };
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
    match tunnel.tos {
        OuterField::Given(0) => {}
        OuterField::Given(tos) => write!(line, ", tos={tos:#x}").expect(ROOM),
        OuterField::Inherit(_) => line.push_str(", tos=inherit"),
    }
    match tunnel.ttl {
        OuterField::Given(ttl) => write!(line, ", ttl={ttl}").expect(ROOM),
        OuterField::Inherit(_) => line.push_str(", ttl=inherit"),
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

/// Parses an address prefix.
pub(super) fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || format!("{text}: invalid prefix");
    let (address, len) = match text.split_once('/') {
        Some((address, len)) => (address, Some(len)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let len = len.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
    match len <= most {
        true => Ok((address, len)),
        false => Err(wrong()),
    }
}

/// Returns the address with the host bits cleared.
fn masked(address: IpAddr, len: u8) -> IpAddr {
    let rest = |bits: u32| bits - u32::from(len).min(bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(rest(32)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(rest(128)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| format!("{text}: invalid IP address"))
}

fn add_route(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (to, len) = prefix(&arguments[0])?;
    let mut route = UserRoute {
        to: masked(to, len),
        len,
        gateway: None,
        source: None,
        by: arguments[1].clone(),
    };
    if control.host_port_named(&route.by).is_none() {
        return Err(format!("{}: no such bridge or internal port", route.by));
    }
    for word in &arguments[2..] {
        match word.split_once('=') {
            Some(("src", source)) => route.source = Some(address(source)?),
            Some(_) => return Err(format!("{word}: not there: use a gateway or src=ADDRESS")),
            None => route.gateway = Some(address(word)?),
        }
    }
    let routes = &mut control.underlay.routes;
    routes.retain(|other| (other.to, other.len) != (route.to, route.len));
    routes.push(route);
    control.update_underlay();
    Ok("OK\n".to_owned())
}

fn delete_route(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (to, len) = prefix(&arguments[0])?;
    let to = (masked(to, len), len);
    let routes = &mut control.underlay.routes;
    let before = routes.len();
    routes.retain(|route| (route.to, route.len) != to);
    if routes.len() == before {
        return Err("Not found".to_owned());
    }
    control.update_underlay();
    Ok("OK\n".to_owned())
}

fn look_up(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let to = address(&arguments[0])?;
    let underlay = control.publications.underlay();
    let hop = underlay.hop(to).ok_or("Not found")?;
    let gateway = match hop.next == to {
        // For IPv4 too, as in Open vSwitch.
        true => "::".to_owned(),
        false => hop.next.to_string(),
    };
    let host_port = &underlay.ports_of_host[&hop.by];
    Ok(format!(
        "src {}\ngateway {gateway}\ndev {}\n",
        hop.source, host_port.name
    ))
}

/// Formats a route like Open vSwitch.
fn describe(route: &UnderlayRoute, underlay: &Underlay, by_command: bool) -> Option<String> {
    let host_port = underlay.ports_of_host.get(&route.by?)?;
    let fits = |address: &&IpAddr| address.is_ipv4() == route.to.is_ipv4();
    let source = route
        .source
        .or_else(|| host_port.addresses.iter().find(fits).copied());
    let origin = if by_command { "User" } else { "Cached" };
    let mut line = format!(
        "{origin}: {}/{} dev {}",
        route.to, route.len, host_port.name
    );
    if let Some(gateway) = route.gateway {
        write!(line, " GW {gateway}").expect(ROOM);
    }
    if let Some(source) = source {
        write!(line, " SRC {source}").expect(ROOM);
    }
    Some(line)
}

fn routes(control: &mut Control, _: &[String]) -> Result<String, String> {
    let underlay = control.publications.underlay();
    let by_command = &control.underlay.routes;
    let is_by_command = |route: &UnderlayRoute| {
        by_command
            .iter()
            .any(|other| (other.to, other.len) == (route.to, route.len) && route.metric == 0)
    };
    let mut text = "Route Table:\n".to_owned();
    for route in underlay.routes() {
        if let Some(line) = describe(route, underlay, is_by_command(route)) {
            writeln!(text, "{line}").expect(ROOM);
        }
    }
    let is_by_command =
        |host_port: &UnderlayPort| control.underlay.addresses.contains_key(&host_port.name);
    let ports_of_host = underlay.ports_of_host.values();
    for host_port in ports_of_host.filter(|host_port| !is_by_command(host_port)) {
        for own in &host_port.addresses {
            let len = if own.is_ipv4() { 32 } else { 128 };
            let name = &host_port.name;
            writeln!(text, "Cached: {own}/{len} dev {name} SRC {own} local").expect(ROOM);
        }
    }
    Ok(text)
}

fn neighbours(control: &mut Control, _: &[String]) -> Result<String, String> {
    let mut text = format!("{:<46}{:<20}Bridge\n{}\n", "IP", "MAC", "=".repeat(74));
    let underlay = control.publications.underlay();
    for ((by, host), mac) in &underlay.neighbours {
        let host_port = underlay.ports_of_host.get(by);
        let name = host_port.map_or("", |host_port| &host_port.name);
        writeln!(text, "{:<46}{mac}   {name}", host.to_string()).expect(ROOM);
    }
    Ok(text)
}

fn set(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let name = &arguments[0];
    if control.host_port_named(name).is_none() {
        return Err(format!("{name}: no such bridge or internal port"));
    }
    let host = arguments[1].parse().map_err(|_| "bad IP address")?;
    let mac: MacAddr = arguments[2].parse().map_err(|_| "bad MAC address")?;
    let known = &mut control.underlay.neighbours;
    known.insert((name.clone(), host), mac);
    control.update_underlay();
    Ok("OK\n".to_owned())
}

/// Removes the neighbours set by commands; those of the kernel remain.
fn flush(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.underlay.neighbours.clear();
    control.update_underlay();
    Ok("OK\n".to_owned())
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

fn ports(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let mut text = "Listening ports:\n".to_owned();
    let underlay = control.publications.underlay();
    for (port, protocol) in underlay.listening() {
        let of = match protocol {
            TunnelProtocol::Geneve => "genev_sys",
            TunnelProtocol::Vxlan(_) | TunnelProtocol::Gre => "vxlan_sys",
        };
        let count = underlay.tunnels_with_port(port);
        writeln!(text, "{of}_{port} ({port}) ref_cnt={count}").expect(ROOM);
    }
    if underlay.has_gre() {
        let count = underlay.tunnels_with_port(0);
        writeln!(text, "gre_sys (3) ref_cnt={count}").expect(ROOM);
    }
    if arguments.first().is_some_and(|word| word == "-v") {
        for host_port in underlay.ports_of_host.values() {
            for own in &host_port.addresses {
                let name = &host_port.name;
                writeln!(text, "{name}: {own} {}", host_port.mac).expect(ROOM);
            }
        }
    }
    Ok(text)
}
