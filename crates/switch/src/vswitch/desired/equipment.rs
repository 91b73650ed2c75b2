//! What rows of the table `Interface` say of an interface beside its place at a bridge.

use base::PortNo;
use ovsdb::Database;

use super::bridge::read_address;
use crate::config::{Allowance, EgressLimit, Equipment, IngressLimit};
use crate::vswitch::rows::Record;

/// What comes at once after a pause when nobody says how much: kilobits, and thousands of
/// frames (ovs-vswitchd.conf.db(5), `ingress_policing_burst`, `ingress_policing_kpkts_burst`).
const KILOBITS_AT_ONCE: u32 = 8000;
const KILOPACKETS_AT_ONCE: u32 = 16;

/// What an interface is given, and what of that it is not, and why.
pub(super) fn read_equipment(
    interface: Record<'_>,
    number: Option<PortNo>,
) -> (Equipment, Vec<String>) {
    let mut notes = Vec::new();
    let mut equipment = Equipment {
        ingress: IngressLimit {
            kilobits: allowance(interface, "ingress_policing", KILOBITS_AT_ONCE),
            kilopackets: allowance(interface, "ingress_policing_kpkts", KILOPACKETS_AT_ONCE),
        },
        ..Equipment::default()
    };
    if let Some(mtu) = interface.integer("mtu_request") {
        match u32::try_from(mtu).ok().filter(|mtu| *mtu > 0) {
            Some(mtu) => equipment.mtu = Some(mtu),
            None => notes.push(format!("mtu_request: {mtu} is no length of a payload")),
        }
    }
    if let Some(address) = interface.text("mac") {
        let is_ours = matches!(interface.text("type"), Some("internal" | "tap"));
        match (number, read_address(address)) {
            (Some(PortNo::LOCAL), _) => {
                notes.push("mac: not honoured: set other_config:hwaddr of the bridge".to_owned());
            }
            (_, Err(why)) => notes.push(format!("mac: {why}")),
            (_, Ok(_)) if !is_ours => {
                notes.push("mac: not honoured: the interface keeps its address".to_owned());
            }
            (_, Ok(address)) => equipment.address = Some(address),
        }
    }
    (equipment, notes)
}

/// How much leaves by a port.
///
/// # Errors
/// What is asked for is not there, and why: the port is as it would be without.
pub(super) fn read_qos(
    database: &Database,
    port: Record<'_>,
) -> Result<Option<EgressLimit>, String> {
    let Some(row) = port.named_by(database, "qos", "QoS").next() else {
        return Ok(None);
    };
    let kind = row.text("type").unwrap_or_default();
    match kind {
        "" | "linux-noop" => Ok(None),
        "egress-policer" => {
            let config = row.map("other_config");
            let number = |key: &str| {
                let number = config.get(key).and_then(|text| text.parse::<u64>().ok());
                let number = number.filter(|number| *number > 0);
                number.ok_or_else(|| {
                    format!("egress-policer: other_config:{key} is a number of bytes")
                })
            };
            Ok(Some(EgressLimit {
                rate: number("cir")?,
                burst: number("cbs")?,
            }))
        }
        kind => Err(format!(
            "{kind}: not honoured: frames are not kept back; egress-policer drops what is too much"
        )),
    }
}

fn allowance(interface: Record<'_>, column: &str, at_once: u32) -> Allowance {
    let number = |what: &str| {
        let number = interface.integer(&format!("{column}_{what}"));
        u32::try_from(number.unwrap_or_default().max(0)).unwrap_or(u32::MAX)
    };
    let (rate, burst) = (number("rate"), number("burst"));
    match (rate, burst) {
        (0, _) => Allowance::default(),
        (rate, 0) => Allowance {
            rate,
            burst: at_once,
        },
        (rate, burst) => Allowance { rate, burst },
    }
}
