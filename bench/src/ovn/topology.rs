//! Logical networks: that of `bench/recorded/record-ovn.py`, and one for many chassis.

use super::NbCommand;

/// Logical switches of the large network, and the ports of each.
const SWITCHES: usize = 20;
const PORTS: usize = 100;

/// Addresses in a command, of which a command line holds several thousand.
const ADDRESSES: usize = 5000;

/// The IPv4 address of a host of the large network.
pub(super) fn address(switch: usize, port: usize) -> String {
    format!("10.{switch}.{}.{}", port / 200, port % 200 + 2)
}

/// The Ethernet address of a host of the large network.
pub(super) fn mac(switch: usize, port: usize) -> String {
    format!(
        "0a:00:00:{switch:02x}:{:02x}:{:02x}",
        port / 256,
        port % 256
    )
}

/// The logical port of a host of the large network.
pub(super) fn logical_port(switch: usize, port: usize) -> String {
    format!("s{switch}-p{port}")
}

fn words(text: &str) -> NbCommand {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Commands that create a logical switch with a port to the router `r0`.
fn switch_with_router(name: &str, number: usize) -> Vec<NbCommand> {
    [
        format!("ls-add {name}"),
        format!("lrp-add r0 r0-{name} 0a:00:01:00:00:{number:02x} 10.{number}.255.254/16"),
        format!("lsp-add {name} {name}-r0"),
        format!("lsp-set-type {name}-r0 router"),
        format!("lsp-set-addresses {name}-r0 router"),
        format!("lsp-set-options {name}-r0 router-port=r0-{name}"),
    ]
    .map(|text| words(&text))
    .into()
}

/// Commands that create a logical port, with port security.
fn port_with_security(switch: &str, name: &str, host: &str) -> Vec<NbCommand> {
    let host = |command: &str| vec![command.to_owned(), name.to_owned(), host.to_owned()];
    vec![
        words(&format!("lsp-add {switch} {name}")),
        host("lsp-set-addresses"),
        host("lsp-set-port-security"),
    ]
}

/// A network of 20 logical switches with 100 ports each behind a router. All ports are in a port
/// group with a stateful access list, whose rules name an address set of so many networks; a load
/// balancer has two backends. A chassis has four flows for each network.
pub(super) fn large(networks: usize) -> Vec<NbCommand> {
    let mut commands = vec![words("lr-add r0")];
    let mut group = words("pg-add hosts");
    for switch in 0..SWITCHES {
        let name = format!("s{switch}");
        commands.extend(switch_with_router(&name, switch));
        for port in 1..=PORTS {
            let member = logical_port(switch, port);
            let host = format!("{} {}", mac(switch, port), address(switch, port));
            commands.extend(port_with_security(&name, &member, &host));
            group.push(member);
        }
    }
    commands.push(group);
    commands.extend(access_list());
    commands.extend(load_balancer());
    commands.extend(address_set(networks));
    commands
}

/// Commands that create the address set `friends`.
fn address_set(networks: usize) -> Vec<NbCommand> {
    let mut commands = vec![words("create Address_Set name=friends")];
    let network = |n: usize| format!("\"172.{}.{}.0/24\"", 16 + n / 256, n % 256);
    let networks: Vec<String> = (0..networks).map(network).collect();
    for part in networks.chunks(ADDRESSES) {
        let mut command = words("add Address_Set friends addresses");
        command.extend_from_slice(part);
        commands.push(command);
    }
    commands
}

/// Commands that create the rules of the port group.
fn access_list() -> Vec<NbCommand> {
    let mut commands = Vec::new();
    for (direction, port, end) in [
        ("from-lport", "inport", "dst"),
        ("to-lport", "outport", "src"),
    ] {
        let mut add = |priority: u32, condition: String, verdict: &str| {
            let mut command = words(&format!("acl-add hosts {direction} {priority}"));
            command.extend([
                format!("{port} == @hosts && {condition}"),
                verdict.to_owned(),
            ]);
            commands.push(command);
        };
        add(1000, "ip4".to_owned(), "drop");
        add(1001, format!("ip4.{end} == 10.0.0.0/8"), "allow-related");
        let services = format!("ip4.{end} == $friends && tcp.dst == {{80, 443}}");
        add(1002, services, "allow-related");
        let low = format!("udp.dst < 1024 && ip4.{end} == 10.0.0.0/8");
        add(1003, low, "drop");
    }
    commands
}

/// Commands that create a load balancer for all switches.
fn load_balancer() -> Vec<NbCommand> {
    let backends = [2, 3].map(|port| format!("{}:8080", address(0, port)));
    let backends = backends.join(",");
    let mut commands = vec![words(&format!("lb-add lb0 10.200.0.1:80 {backends} tcp"))];
    commands.extend((0..SWITCHES).map(|switch| words(&format!("ls-lb-add s{switch} lb0"))));
    commands
}

/// The name of the logical port of a chassis in a switch of the shared network.
pub(super) fn shared_port(chassis: usize, switch: usize) -> String {
    format!("c{chassis}-s{switch}")
}

/// The number of logical switches of the shared network.
pub(super) const SHARED_SWITCHES: usize = 2;

/// A network of two logical switches behind a router, in which each chassis has a port of each.
pub(super) fn shared(chassis: usize) -> Vec<NbCommand> {
    let mut commands = vec![words("lr-add r0")];
    for switch in 0..SHARED_SWITCHES {
        commands.extend(switch_with_router(&format!("s{switch}"), switch));
    }
    for chassis in 1..=chassis {
        commands.extend((0..SHARED_SWITCHES).flat_map(|switch| shared_host(chassis, switch)));
    }
    commands
}

/// Commands that create the logical port of a chassis in a switch of the shared network.
pub(super) fn shared_host(chassis: usize, switch: usize) -> Vec<NbCommand> {
    let host = format!("{} {}", mac(switch, chassis), address(switch, chassis));
    port_with_security(&format!("s{switch}"), &shared_port(chassis, switch), &host)
}
