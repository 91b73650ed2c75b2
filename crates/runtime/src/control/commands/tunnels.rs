//! Commands of tunnels and their underlay: `ovs/route/*` and `tnl/*` of ovs-vswitchd(8).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::MacAddr;
use serde_json::{Value, json};

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use crate::control::neighbours::NeighbourOrigin;
use crate::control::underlay::UserRoute;
use config::{OuterField, PortKind, TunnelConfig, TunnelEndpoint, TunnelKey};
use dataplane::underlay::{UnderlayPort, UnderlayRoute};
use switch::underlay::KernelTables;
use sys::interface::{Ifindex, Interfaces};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 15] = [
    Command { name: "ofproto/list-tunnels", usage: "",                          least: 0, most: 0, answer: Immediate(tunnels) },
    Command { name: "ovs/route/add",    usage: "ip_addr/prefix_len out_br_name [gw] [pkt_mark=mark]", least: 2, most: 5, answer: Immediate(add_route) },
    Command { name: "ovs/route/del",    usage: "ip_addr/prefix_len [pkt_mark=mark]", least: 1, most: 2, answer: Immediate(delete_route) },
    Command { name: "ovs/route/lookup", usage: "ip_addr [pkt_mark=mark]",       least: 1, most: 2, answer: Immediate(look_up) },
    Command { name: "ovs/route/show",   usage: "",                              least: 0, most: 0, answer: Immediate(routes) },
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

/// Parses `pkt_mark=MARK`.
fn mark(text: Option<&String>) -> Result<u32, String> {
    let Some(text) = text else {
        return Ok(0);
    };
    let digits = text.strip_prefix("pkt_mark=");
    let mark = digits.and_then(|digits| match digits.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    });
    mark.ok_or_else(|| format!("{text}: Invalid pkt_mark"))
}

/// Parses the address prefix of a route.
fn destination(text: &str) -> Result<(IpAddr, u8), String> {
    let (to, len) = prefix(text)?;
    Ok((masked(to, len), len))
}

fn add_route(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (to, len) = destination(&arguments[0])?;
    let mut route = UserRoute {
        to,
        len,
        mark: 0,
        gateway: None,
        source: None,
        by: arguments[1].clone(),
    };
    let Some(by) = control.host_port_named(&route.by) else {
        return Err(format!("{}: no such bridge or internal port", route.by));
    };
    for word in &arguments[2..] {
        match word.split_once('=') {
            Some(("src", source)) => route.source = Some(address(source)?),
            Some(("pkt_mark", _)) => route.mark = mark(Some(word))?,
            Some(_) => return Err(format!("{word}: Invalid pkt_mark or gateway")),
            None => route.gateway = Some(address(word)?),
        }
    }
    let host_port = &control.publications.underlay().ports_of_host[&by];
    if route.source.is_none() && source_of(host_port, to).is_none() {
        // In Open vSwitch's words.
        return Err("Error while inserting route.".to_owned());
    }
    let routes = &mut control.underlay.routes;
    let key = |route: &UserRoute| (route.to, route.len, route.mark);
    routes.retain(|other| key(other) != key(&route));
    if routes.len() >= USER_ROUTES_MAX {
        return Err(format!("there are {USER_ROUTES_MAX} routes already"));
    }
    routes.push(route);
    control.update_underlay();
    Ok("OK\n".to_owned())
}

/// The limit of routes set by commands.
const USER_ROUTES_MAX: usize = 16_384;

/// Returns the address that a route through this port has as its source.
fn source_of(host_port: &UnderlayPort, to: IpAddr) -> Option<IpAddr> {
    let mut addresses = host_port.addresses.iter();
    addresses
        .find(|address| address.is_ipv4() == to.is_ipv4())
        .copied()
}

fn delete_route(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (to, len) = destination(&arguments[0])?;
    let key = (to, len, mark(arguments.get(1))?);
    let routes = &mut control.underlay.routes;
    let before = routes.len();
    routes.retain(|route| (route.to, route.len, route.mark) != key);
    if routes.len() == before {
        return Err("Not found".to_owned());
    }
    control.update_underlay();
    Ok("OK\n".to_owned())
}

fn look_up(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let to = address(&arguments[0])?;
    let mark = mark(arguments.get(1))?;
    let underlay = control.publications.underlay();
    let hop = underlay.hop(to, mark).ok_or("Not found")?;
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

/// The origin of a listed route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RouteOrigin {
    /// A command has set it.
    User,
    /// The kernel has it.
    Kernel,
    /// It is an address of the host.
    Local,
}

/// A route of the list.
struct ListedRoute {
    origin: RouteOrigin,
    to: IpAddr,
    len: u8,
    mark: u32,
    device: String,
    gateway: Option<IpAddr>,
    source: Option<IpAddr>,
}

impl ListedRoute {
    /// Formats the route like Open vSwitch.
    fn to_text(&self) -> String {
        let origin = match self.origin {
            RouteOrigin::User => "User",
            RouteOrigin::Kernel | RouteOrigin::Local => "Cached",
        };
        let mut line = format!("{origin}: {}/{}", self.to, self.len);
        if self.mark != 0 {
            write!(line, " MARK {}", self.mark).expect(ROOM);
        }
        write!(line, " dev {}", self.device).expect(ROOM);
        if let Some(gateway) = self.gateway {
            write!(line, " GW {gateway}").expect(ROOM);
        }
        if let Some(source) = self.source {
            write!(line, " SRC {source}").expect(ROOM);
        }
        if self.origin == RouteOrigin::Local {
            line.push_str(" local");
        }
        line
    }

    /// Formats the route like Open vSwitch 3.6, whose priorities are lengths of IPv6 prefixes.
    fn to_json(&self) -> Value {
        let len = match self.to {
            IpAddr::V4(_) => u32::from(self.len) + 96,
            IpAddr::V6(_) => self.len.into(),
        };
        let (table, priority) = match self.origin {
            RouteOrigin::User => (TABLE_MAIN, len + 32),
            RouteOrigin::Kernel => (TABLE_MAIN, len),
            RouteOrigin::Local => (TABLE_LOCAL, len + 64),
        };
        let mut hop = json!({"dev": self.device});
        if let Some(gateway) = self.gateway {
            hop["gateway"] = gateway.to_string().into();
        }
        let source = self.source.unwrap_or(Ipv6Addr::UNSPECIFIED.into());
        let mut route = json!({
            "table": table,
            "user": self.origin == RouteOrigin::User,
            "local": self.origin == RouteOrigin::Local,
            "priority": priority,
            "prefix": self.len,
            "dst": self.to.to_string(),
            "prefsrc": source.to_string(),
            "nexthops": [hop],
        });
        if self.mark != 0 {
            route["mark"] = self.mark.into();
        }
        route
    }
}

/// The kernel's numbers of its main table and of its table of addresses (ip-route(8)).
pub(super) const TABLE_MAIN: u32 = 254;
pub(super) const TABLE_LOCAL: u32 = 255;

/// Lists the routes set by commands, those of the kernel, and the host's addresses.
fn routes(control: &mut Control, _: &[String]) -> Result<String, String> {
    let lines = listed_routes(control).into_iter();
    let lines: String = lines.map(|route| route.to_text() + "\n").collect();
    Ok(format!("Route Table:\n{lines}"))
}

/// Does the same in JSON.
pub(super) fn routes_json(control: &mut Control, _: &[String]) -> Result<Value, String> {
    let routes = listed_routes(control);
    let routes: Vec<_> = routes.iter().map(ListedRoute::to_json).collect();
    Ok(routes.into())
}

fn listed_routes(control: &Control) -> Vec<ListedRoute> {
    let underlay = control.publications.underlay();
    let mut routes = Vec::new();
    let is_by_command = |route: &&UnderlayRoute| route.metric == 0;
    for route in underlay.routes().iter().filter(is_by_command) {
        let host_port = route.by.and_then(|by| underlay.ports_of_host.get(&by));
        if let Some(host_port) = host_port {
            routes.push(ListedRoute {
                origin: RouteOrigin::User,
                to: route.to,
                len: route.len,
                mark: route.mark,
                device: host_port.name.clone(),
                gateway: route.gateway,
                source: route.source.or_else(|| source_of(host_port, route.to)),
            });
        }
    }
    if control.tools.system_routes {
        add_kernel_routes(&mut routes, control.underlay.kernel());
    }
    routes
}

/// Adds the kernel's routes, whether or not a bridge has their interface, and its addresses.
fn add_kernel_routes(routes: &mut Vec<ListedRoute>, kernel: &KernelTables) {
    let mut names = BTreeMap::new();
    let interfaces = Interfaces::current().ok();
    let mut name_of = |index: u32| {
        let name = || {
            let name = interfaces.as_ref()?.name(Ifindex(index)).ok()?;
            Some(name.to_string())
        };
        names.entry(index).or_insert_with(name).clone()
    };
    for route in &kernel.routes {
        if let Some(device) = name_of(route.index) {
            let own = kernel.addresses.iter();
            let mut own = own.filter(|own| own.index == route.index);
            let own = own.find(|own| own.address.is_ipv4() == route.to.is_ipv4());
            routes.push(ListedRoute {
                origin: RouteOrigin::Kernel,
                to: route.to,
                len: route.len,
                mark: 0,
                device,
                gateway: route.gateway,
                source: route.source.or_else(|| own.map(|own| own.address)),
            });
        }
    }
    for own in &kernel.addresses {
        if let Some(device) = name_of(own.index) {
            routes.push(ListedRoute {
                origin: RouteOrigin::Local,
                to: own.address,
                len: if own.address.is_ipv4() { 32 } else { 128 },
                mark: 0,
                device,
                gateway: None,
                source: Some(own.address),
            });
        }
    }
}

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
