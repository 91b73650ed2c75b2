//! Defaults for the Ethernet address and the datapath id of a bridge. They depend only on the
//! ports, or else on the names of the machine and the bridge, and so survive a restart.

use base::DatapathId;
use packet::MacAddr;

/// Returns the bridge's address: the lowest of its ports', as in Open vSwitch, or a hash of the
/// names of the machine and the bridge.
pub fn bridge_address(
    ports: impl IntoIterator<Item = MacAddr>,
    machine: &str,
    bridge: &str,
) -> MacAddr {
    let usable = |address: &MacAddr| !address.is_multicast() && *address != MacAddr::default();
    let lowest = ports.into_iter().filter(usable).min();
    lowest.unwrap_or_else(|| address_from_names(machine, bridge))
}

/// Returns the datapath id of an address: its 48 bits below sixteen zero bits (OF 1.3.5, 7.3.1).
pub fn datapath_id(address: MacAddr) -> DatapathId {
    DatapathId(address.to_u64())
}

/// Returns a locally administered address from a hash of the names (FNV-1a, which is stable across
/// builds, unlike the standard library's hash).
fn address_from_names(machine: &str, bridge: &str) -> MacAddr {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = machine.bytes().chain([0]).chain(bridge.bytes());
    let hash = bytes.fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    let MacAddr([first, rest @ ..]) = MacAddr::from_u64(hash ^ hash >> 48);
    let [a, b, c, d, e] = rest;
    MacAddr([first & 0xfc | 0x02, a, b, c, d, e])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bridge_address_is_the_lowest_usable_address_of_the_ports() {
        let address = |number| MacAddr::from_u64(number);
        let ports = [address(0), MacAddr::BROADCAST, address(9), address(7)];
        assert_eq!(bridge_address(ports, "m", "br0"), address(7));
        assert_eq!(datapath_id(address(7)), DatapathId(7));
    }

    #[test]
    fn bridge_address_without_ports_is_a_stable_hash_of_the_names() {
        let made = |bridge| bridge_address([], "machine", bridge);
        assert_eq!(made("br0"), made("br0"));
        assert_ne!(made("br0"), made("br1"));
        let MacAddr([first, ..]) = made("br0");
        assert_eq!(first & 0x03, 0x02, "local and not multicast");
    }
}
