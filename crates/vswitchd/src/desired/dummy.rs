//! The options of dummy interfaces, as Open vSwitch's `netdev-dummy` reads them.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::path::PathBuf;

use ports::dummy::{
    BadConnection, DUMMY_QUEUES_MAX, DummyConnection, DummyFiles, DummyOptions, DummyType,
    TxSteering,
};

use crate::rows::Record;
use config::InterfaceConfig;

/// The keys of an interface's `other_config` that concern queues.
pub(super) const QUEUE_KEYS: [&str; 3] = ["pmd-rxq-affinity", "tx-steering", "emc-enable"];

/// Reads the options of a dummy into `settings`, removes them from `options`, and notes those that
/// are invalid.
pub(super) fn read_dummy(
    dummy: DummyType,
    interface: Record<'_>,
    options: &mut BTreeMap<&str, &str>,
    settings: &mut InterfaceConfig,
    notes: &mut Vec<String>,
) {
    let both = options.remove("pcap");
    let file = |key| {
        both.or_else(|| options.get(key).copied())
            .map(PathBuf::from)
    };
    let files = DummyFiles {
        received: file("rxq_pcap"),
        sent: file("tx_pcap"),
    };
    options.remove("rxq_pcap");
    options.remove("tx_pcap");
    let connection = read_connection(options).unwrap_or_else(|problem| {
        notes.push(problem);
        None
    });
    let mut number = |key| {
        options
            .remove(key)
            .and_then(|text| text.trim().parse().ok())
    };
    settings.dummy = DummyOptions {
        files,
        connection,
        ifindex: number("ifindex"),
        ..DummyOptions::default()
    };
    if dummy != DummyType::Pmd {
        return;
    }
    let queues = |number: Option<u32>| {
        let number = number.and_then(|number| u16::try_from(number).ok().or(Some(u16::MAX)));
        let number = number.and_then(NonZeroU16::new).unwrap_or(NonZeroU16::MIN);
        number.min(DUMMY_QUEUES_MAX)
    };
    settings.dummy.rx_queues = queues(number("n_rxq"));
    settings.dummy.tx_queues = queues(number("n_txq"));
    settings.dummy.numa = number("numa_id").unwrap_or_default();
    let other = interface.map("other_config");
    if other.get("tx-steering") == Some(&"hash") {
        settings.dummy.steering = TxSteering::Hash;
    }
    if let Some(affinity) = other.get("pmd-rxq-affinity") {
        match affinity.parse() {
            Ok(affinity) => settings.rxq_affinity = affinity,
            Err(error) => notes.push(error.to_string()),
        }
    }
}

/// Reads `stream` and `pstream`, of which a dummy has one at most.
fn read_connection(options: &mut BTreeMap<&str, &str>) -> Result<Option<DummyConnection>, String> {
    let mut read = |key| {
        let text = options.remove(key)?;
        let connection: Result<DummyConnection, BadConnection> = text.parse();
        let connection = connection.map_err(|error| format!("options:{key}: {text}: {error}"));
        Some(connection.and_then(|connection| {
            let is_passive = matches!(connection, DummyConnection::Passive(_));
            match is_passive == (key == "pstream") {
                true => Ok(connection),
                false => Err(format!("options:{key}: {text}: {BadConnection}")),
            }
        }))
    };
    match (read("stream"), read("pstream")) {
        (Some(_), Some(_)) => {
            Err("options: stream and pstream are both configured: use one".to_owned())
        }
        (one, other) => one.or(other).transpose(),
    }
}
