//! Interface settings in rows of the table `Interface`: policing, QoS, MTU and MAC address.

use std::collections::BTreeMap;

use base::{PortNo, Priority, QueueId};
use ovsdb::{Atom, Database, Datum};
use ports::shaping::{Qdisc, QosConfig, QosQueue};

use super::bridge::read_address;
use crate::rows::Record;
use config::{EgressLimit, IngressLimit, InterfaceConfig, PolicerRate};

/// The default bursts, in kilobits and in thousands of packets (ovs-vswitchd.conf.db(5),
/// `ingress_policing_burst`, `ingress_policing_kpkts_burst`).
const BURST_KILOBITS: u32 = 8000;
const BURST_KILOPACKETS: u32 = 16;

/// Returns the settings of an interface, and the reasons for those that are not applied.
pub(super) fn read_settings(
    interface: Record<'_>,
    number: Option<PortNo>,
) -> (InterfaceConfig, Vec<String>) {
    let mut notes = Vec::new();
    let mut settings = InterfaceConfig {
        ingress: IngressLimit {
            kilobits: allowance(interface, "ingress_policing", BURST_KILOBITS),
            kilopackets: allowance(interface, "ingress_policing_kpkts", BURST_KILOPACKETS),
        },
        ..InterfaceConfig::default()
    };
    if let Some(mtu) = interface.integer("mtu_request") {
        match u32::try_from(mtu).ok().filter(|mtu| *mtu > 0) {
            Some(mtu) => settings.mtu = Some(mtu),
            None => notes.push(format!("mtu_request: {mtu} is no valid MTU")),
        }
    }
    if let Some(address) = interface.text("mac") {
        let is_ours = matches!(interface.text("type"), Some("internal" | "tap"));
        match (number, read_address(address)) {
            (Some(PortNo::LOCAL), _) => {
                notes.push("mac: ignored: set other_config:hwaddr of the bridge".to_owned());
            }
            (_, Err(why)) => notes.push(format!("mac: {why}")),
            (_, Ok(_)) if !is_ours => {
                notes.push("mac: ignored: the interface keeps its address".to_owned());
            }
            (_, Ok(address)) => settings.address = Some(address),
        }
    }
    (settings, notes)
}

/// The egress QoS of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EgressQos {
    /// No limit.
    Freely,
    /// A policer that drops the excess.
    Limited(EgressLimit),
    /// Egress queues.
    Shaped(QosConfig),
}

/// Reads the egress QoS of a port. Settings that are not applied are added to `notes`.
///
/// # Errors
/// The QoS type is not supported, with the reason; the port has no QoS then.
pub(super) fn read_qos(
    database: &Database,
    port: Record<'_>,
    notes: &mut Vec<String>,
) -> Result<EgressQos, String> {
    let Some(row) = port.named_by(database, "qos", "QoS").next() else {
        return Ok(EgressQos::Freely);
    };
    let kind = row.text("type").unwrap_or_default();
    match kind {
        "" | "linux-noop" => Ok(EgressQos::Freely),
        "linux-htb" => {
            let shape = read_shape(database, row, Qdisc::Htb, notes);
            Ok(EgressQos::Shaped(shape))
        }
        "linux-hfsc" => {
            let shape = read_shape(database, row, Qdisc::Hfsc, notes);
            Ok(EgressQos::Shaped(shape))
        }
        "egress-policer" => {
            let config = row.map("other_config");
            let number = |key: &str| {
                let number = config.get(key).and_then(|text| text.parse::<u64>().ok());
                let number = number.filter(|number| *number > 0);
                number.ok_or_else(|| {
                    format!("egress-policer: other_config:{key} is a number of bytes")
                })
            };
            Ok(EgressQos::Limited(EgressLimit {
                rate: number("cir")?,
                burst: number("cbs")?,
            }))
        }
        kind => Err(format!(
            "{kind}: ignored: use linux-htb, linux-hfsc, egress-policer or linux-noop"
        )),
    }
}

/// Reads the queues of a row of the table `QoS`.
fn read_shape(
    database: &Database,
    row: Record<'_>,
    discipline: Qdisc,
    notes: &mut Vec<String>,
) -> QosConfig {
    let pairs = row.datum("queues").into_iter().flat_map(Datum::pairs);
    let mut queues = BTreeMap::new();
    for (key, value) in pairs {
        let (Atom::Integer(number), Atom::Uuid(uuid)) = (key, value) else {
            continue;
        };
        let id = u32::try_from(*number).ok().map(QueueId);
        let id = id.filter(|id| Priority::for_queue(*id).is_some());
        match (id, Record::of(database, "Queue", *uuid)) {
            (Some(id), Some(queue)) => {
                queues.insert(id, read_queue(queue, id, notes));
            }
            (None, _) => notes.push(format!(
                "qos: queues:{number}: ignored: a port has queues 0 to {}",
                QueueId::COUNT - 1
            )),
            // The row arrives with the database's next update.
            (Some(_), None) => {}
        }
    }
    let max_rate = bits(&row.map("other_config"), "max-rate", "", notes);
    QosConfig {
        qdisc: discipline,
        max_rate,
        queues,
    }
}

fn read_queue(queue: Record<'_>, id: QueueId, notes: &mut Vec<String>) -> QosQueue {
    let config = queue.map("other_config");
    let of = format!("queues:{}: ", id.0);
    let mut number = |key| bits(&config, key, &of, notes);
    QosQueue {
        min_rate: number("min-rate"),
        max_rate: number("max-rate"),
        burst: number("burst"),
        priority: number("priority")
            .map_or(0, |priority| u32::try_from(priority).unwrap_or(u32::MAX)),
        dscp: queue
            .integer("dscp")
            .and_then(|dscp| u8::try_from(dscp).ok()),
    }
}

/// Parses a number in a column; adds a note if it is invalid.
fn bits(
    config: &BTreeMap<&str, &str>,
    key: &str,
    of: &str,
    notes: &mut Vec<String>,
) -> Option<u64> {
    let text = config.get(key)?;
    let number = text.trim().parse().ok();
    if number.is_none() {
        notes.push(format!("qos: {of}other_config:{key}: {text} is no number"));
    }
    number
}

fn allowance(interface: Record<'_>, column: &str, at_once: u32) -> PolicerRate {
    let number = |what: &str| {
        let number = interface.integer(&format!("{column}_{what}"));
        u32::try_from(number.unwrap_or_default().max(0)).unwrap_or(u32::MAX)
    };
    let (rate, burst) = (number("rate"), number("burst"));
    match (rate, burst) {
        (0, _) => PolicerRate::default(),
        (rate, 0) => PolicerRate {
            rate,
            burst: at_once,
        },
        (rate, burst) => PolicerRate { rate, burst },
    }
}
