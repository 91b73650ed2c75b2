//! Commands of the routes of tunnels: `ovs/route/*` of ovs-vswitchd(8).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use crate::control::underlay::UserRoute;
use dataplane::underlay::{UnderlayPort, UnderlayRoute};
use switch::underlay::KernelTables;
use sys::interface::{Ifindex, Interfaces};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 4] = [
    Command { name: "ovs/route/add",    usage: "ip_addr/prefix_len out_br_name [gw] [pkt_mark=mark]", least: 2, most: 5, answer: Immediate(add_route) },
    Command { name: "ovs/route/del",    usage: "ip_addr/prefix_len [pkt_mark=mark]", least: 1, most: 2, answer: Immediate(delete_route) },
    Command { name: "ovs/route/lookup", usage: "ip_addr [pkt_mark=mark]",       least: 1, most: 2, answer: Immediate(look_up) },
    Command { name: "ovs/route/show",   usage: "",                              least: 0, most: 0, answer: Immediate(routes) },
];

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
        let source = self.source.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn route(origin: RouteOrigin, to: &str, len: u8) -> ListedRoute {
        ListedRoute {
            origin,
            to: to.parse().expect("an address"),
            len,
            mark: 0,
            device: "br0".to_owned(),
            gateway: None,
            source: None,
        }
    }

    #[test]
    fn route_is_written_like_open_vswitch() {
        let user = ListedRoute {
            mark: 7,
            gateway: Some(Ipv4Addr::new(10, 0, 0, 9).into()),
            source: Some(Ipv4Addr::new(10, 0, 0, 1).into()),
            ..route(RouteOrigin::User, "1.1.1.0", 24)
        };
        let text = "User: 1.1.1.0/24 MARK 7 dev br0 GW 10.0.0.9 SRC 10.0.0.1";
        assert_eq!(user.to_text(), text);
        let local = route(RouteOrigin::Local, "fc00::1", 128);
        assert_eq!(local.to_text(), "Cached: fc00::1/128 dev br0 local");
    }

    #[test]
    fn route_in_json_has_the_priority_of_its_prefix() {
        let gateway = Ipv4Addr::new(10, 0, 0, 9);
        let kernel = ListedRoute {
            gateway: Some(gateway.into()),
            ..route(RouteOrigin::Kernel, "1.1.1.0", 24)
        };
        let expected = json!({
            "table": 254, "user": false, "local": false, "priority": 120, "prefix": 24,
            "dst": "1.1.1.0", "prefsrc": "::",
            "nexthops": [{"dev": "br0", "gateway": "10.0.0.9"}],
        });
        assert_eq!(kernel.to_json(), expected);
        let local = route(RouteOrigin::Local, "fc00::1", 128).to_json();
        assert_eq!(
            (&local["table"], &local["priority"]),
            (&json!(255), &json!(192))
        );
    }
}
