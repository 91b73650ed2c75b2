//! The types and settings of ports, as `dpif/show` and `dpctl/show` print them.

use config::PortKind;
use ports::dummy::{DummyConnection, DummyOptions, DummyType};

use crate::control::bridge_runtime::PortRuntime;

/// A setting and its value.
type PortSetting = (&'static str, String);

/// Returns the type of a port, and its settings sorted by name: `gre: key=1, remote_ip=1.1.1.1`.
pub(super) fn describe(port: &PortRuntime) -> String {
    let dummy = port.device.as_ref().and_then(|device| device.dummy());
    let of_dummy = dummy.map(|dummy| dummy_settings(&port.spec.kind, &dummy.options()));
    let settings = of_dummy.unwrap_or_else(|| settings(&port.spec.kind));
    with_settings(type_name(&port.spec.kind), settings)
}

/// Returns the settings of a dummy. Numbers of queues are in force at once.
fn dummy_settings(kind: &PortKind, options: &DummyOptions) -> Vec<PortSetting> {
    let mut settings = Vec::new();
    let mut add = |name, value: String| settings.push((name, value));
    if let Some(index) = options.ifindex {
        add("ifindex", index.to_string());
    }
    match &options.connection {
        Some(active @ DummyConnection::Active(_)) => add("stream", active.to_string()),
        Some(passive @ DummyConnection::Passive(_)) => add("pstream", passive.to_string()),
        None => {}
    }
    if *kind == PortKind::Dummy(DummyType::Pmd) {
        let (receive, transmit) = (options.rx_queues, options.tx_queues);
        add("configured_rx_queues", receive.to_string());
        add("configured_tx_queues", transmit.to_string());
        add("requested_rx_queues", receive.to_string());
        add("requested_tx_queues", transmit.to_string());
    }
    settings
}

/// Returns the type of a port. The interfaces that the switch creates are TAP interfaces.
pub(super) fn type_name(kind: &PortKind) -> &'static str {
    match kind {
        PortKind::Interface => "system",
        PortKind::Xdp(_) => "afxdp",
        PortKind::Dpdk(_) => "dpdk",
        PortKind::Tap => "tap",
        PortKind::Replay(_) => "replay",
        PortKind::Dummy(dummy) => dummy.name(),
        PortKind::Patch(_) => "patch",
        PortKind::Tunnel(tunnel) => tunnel.type_name(),
    }
}

fn settings(kind: &PortKind) -> Vec<PortSetting> {
    match kind {
        PortKind::Patch(peer) => vec![("peer", peer.to_string())],
        PortKind::Tunnel(tunnel) => tunnel.settings(),
        _ => Vec::new(),
    }
}

fn with_settings(type_name: &str, mut settings: Vec<PortSetting>) -> String {
    settings.sort_unstable();
    let words = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let words: Vec<_> = words.collect();
    match words.is_empty() {
        true => type_name.to_owned(),
        false => format!("{type_name}: {}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use config::PortSpec;
    use ports::dummy::DummyType;

    use super::*;

    fn described(kind: &PortKind) -> String {
        with_settings(type_name(kind), settings(kind))
    }

    #[test]
    fn tunnel_settings_are_those_that_open_vswitch_prints() {
        for (text, expected) in [
            ("gre:p1,remote=1.1.1.1", "gre: remote_ip=1.1.1.1"),
            (
                "vxlan:p1,remote=flow,key=flow",
                "vxlan: key=flow, remote_ip=flow",
            ),
            (
                "vxlan:p1,remote=1.1.1.1,exts=gpe",
                "vxlan: remote_ip=1.1.1.1",
            ),
            (
                "geneve:p1,remote=1.1.1.1,port=5000",
                "geneve: dst_port=5000, remote_ip=1.1.1.1",
            ),
            (
                "gre:p1,remote=1.1.1.1,local=2.2.2.3,csum=true,df_default=false,ttl=1",
                "gre: csum=true, df_default=false, local_ip=2.2.2.3, remote_ip=1.1.1.1, ttl=1",
            ),
            (
                "gre:p1,remote=1.1.1.1,in_key=2,out_key=3,tos=inherit",
                "gre: in_key=2, out_key=3, remote_ip=1.1.1.1, tos=inherit",
            ),
            (
                "gre:p1,remote=1.1.1.1,out_key=5,tos=4,ttl=inherit,packet_type=legacy_l3",
                "gre: out_key=5, packet_type=legacy_l3, remote_ip=1.1.1.1, tos=0x4, ttl=inherit",
            ),
            ("patch:p1,p2", "patch: peer=p2"),
            ("tap:p1", "tap"),
            ("eth1", "system"),
        ] {
            let port: PortSpec = text.parse().expect(text);
            assert_eq!(described(&port.kind), expected, "{text}");
        }
    }

    #[test]
    fn dummy_has_the_type_of_its_interface() {
        for (of, expected) in [
            ("dummy", "dummy"),
            ("internal", "dummy-internal"),
            ("dummy-pmd", "dummy-pmd"),
            ("", "system"),
        ] {
            let dummy = DummyType::of_interface(of);
            assert_eq!(described(&PortKind::Dummy(dummy)), expected);
        }
    }
}
