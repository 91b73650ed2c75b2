//! Old shapes of the control plane's experiments: `flow-table`, `meters` and `changes`.

use std::collections::BTreeMap;

use serde::Deserialize;
use stats::Distribution;

use super::Constants;
use crate::{Entry, Point, Reading, Value};

#[derive(Deserialize)]
pub(super) struct FlowTable {
    flows: u64,
    part: u32,
    add_seconds: f64,
    first_seconds: f64,
    last_seconds: f64,
    empty_bytes: u64,
    full_bytes: u64,
    left_bytes: u64,
    told: u64,
    told_bytes: u64,
    tell_seconds: f64,
    echoes: u64,
    echo_ns_max: u64,
    delete_seconds: f64,
}

impl FlowTable {
    pub(super) fn reading(self) -> Reading {
        let point = Point::default().with("flows", Value::Number(self.flows));
        let mut reading = Reading::at(&point);
        let (flows, part) = (self.flows as f64, f64::from(self.part));
        let grown = |bytes: u64| bytes.saturating_sub(self.empty_bytes) as f64;
        for (name, value) in [
            ("add_s", flows / self.add_seconds),
            ("add_first_s", part / self.first_seconds),
            ("add_last_s", part / self.last_seconds),
            ("flow_bytes", grown(self.full_bytes) / flows),
            ("left_bytes", grown(self.left_bytes)),
            ("tell_ms", self.tell_seconds * 1e3),
            ("echo_max_ms", self.echo_ns_max as f64 / 1e6),
            ("delete_ms", self.delete_seconds * 1e3),
            ("empty_bytes", self.empty_bytes as f64),
            ("full_bytes", self.full_bytes as f64),
            ("listed", self.told as f64),
            ("listed_bytes", self.told_bytes as f64),
            ("echoes", self.echoes as f64),
        ] {
            reading.put(name, value);
        }
        reading
    }
}

/// Figure of the memory of a flow, relative to the process before it had any flows. A process
/// that keeps freed memory fills it again in later trials, and does not grow.
const RESIDENT_FLOW_BYTES: &str = "resident_flow_bytes";

/// Adds [`RESIDENT_FLOW_BYTES`] to converted trials: the memory of the empty process is the least
/// of all valid trials of the device.
pub(super) fn put_resident_flow_bytes(entries: &mut [Entry]) {
    let mut least: BTreeMap<String, f64> = BTreeMap::new();
    for (device, reading) in flow_tables(entries) {
        if let Some(empty) = reading.figures.get("empty_bytes") {
            let least = least.entry(device).or_insert(*empty);
            *least = least.min(*empty);
        }
    }
    for (device, reading) in flow_tables(entries) {
        let flows = reading.point.get("flows").and_then(Value::number);
        let full = reading.figures.get("full_bytes").copied();
        let has_figure = reading.figures.contains_key(RESIDENT_FLOW_BYTES);
        if let (false, Some(flows), Some(full), Some(empty)) =
            (has_figure, flows, full, least.get(&device))
        {
            let grown = (full - empty).max(0.0);
            reading.put(RESIDENT_FLOW_BYTES, grown / flows as f64);
        }
    }
}

/// Returns the valid readings of flow tables, with their devices.
fn flow_tables(entries: &mut [Entry]) -> impl Iterator<Item = (String, &mut Reading)> {
    entries.iter_mut().filter_map(|entry| match entry {
        Entry::Trial(trial) if trial.experiment == "flow-table" && trial.is_valid() => {
            Some((trial.device.clone(), trial.reading.as_mut()?))
        }
        Entry::Trial(_) | Entry::Session(_) => None,
    })
}

#[derive(Deserialize)]
pub(super) struct LegacyMeter {
    unit: String,
    act: String,
    nominal_pps: u64,
    frame_bytes: u64,
    windows: Vec<MeterWindow>,
}

#[derive(Deserialize)]
struct MeterWindow {
    seconds: f64,
    passed: u64,
}

impl LegacyMeter {
    pub(super) fn reading(self, constants: &Constants<'_>) -> Reading {
        let nominal = self.nominal_pps as f64;
        let point = Point::default()
            .with("unit", Value::Word(self.unit))
            .with("act", Value::Word(self.act))
            .with("pps", Value::Number(self.nominal_pps))
            .with("frame_bytes", Value::Number(self.frame_bytes));
        let mut reading = Reading::at(&constants.add_to(point, &["seconds"]));
        let passed: u64 = self.windows.iter().map(|window| window.passed).sum();
        let seconds: f64 = self.windows.iter().map(|window| window.seconds).sum();
        reading.put("passed_pps", passed as f64 / seconds);
        let rates = self.windows.iter();
        let rates: Vec<f64> = rates
            .map(|window| window.passed as f64 / window.seconds)
            .collect();
        let errors = rates.iter().map(|rate| (rate / nominal - 1.0).abs());
        reading.put("worst_error", errors.fold(0.0, f64::max));
        let seconds = (1_u32..).map(f64::from).zip(rates);
        let seconds = seconds.map(|(second, rate)| [second, rate]).collect();
        reading.series.insert("passed_pps".to_owned(), seconds);
        reading
    }
}

#[derive(Deserialize)]
pub(super) struct LegacyChange {
    #[serde(default)]
    test: String,
    pps: u32,
    #[serde(default)]
    carried_pps: Option<u32>,
    seconds: f64,
    sent: u64,
    received: u64,
    duplicates: u64,
    delay_ns_p50: u32,
    delay_ns_p99: u32,
    delay_ns_p999: u32,
    delay_ns_max: u32,
    changes: u64,
    dumps: u32,
    effect_ns: Vec<u32>,
    barrier_ns: Vec<u32>,
    late: u64,
}

impl LegacyChange {
    /// The first records named the test in their identifier alone: `changes/effect/ovs/1`.
    pub(super) fn reading(self, constants: &Constants<'_>, id: &str) -> Reading {
        let test = match self.test.as_str() {
            "" => id.split('/').nth(1).unwrap_or_default(),
            test => test,
        };
        let point = Point::default().with("test", Value::word(test));
        let names = ["millis", "rate", "flow-mods", "dump-flows"];
        let mut reading = Reading::at(&constants.add_to(point, &names));
        let lost = self.sent.saturating_sub(self.received);
        reading.put_share("loss", lost, self.sent);
        for (name, nanoseconds) in [
            ("delay_p50_us", self.delay_ns_p50),
            ("delay_p99_us", self.delay_ns_p99),
            ("delay_p999_us", self.delay_ns_p999),
            ("delay_max_us", self.delay_ns_max),
        ] {
            reading.put(name, f64::from(nanoseconds) / 1e3);
        }
        reading.put("intended_pps", self.pps.into());
        match self.carried_pps {
            Some(carried) => reading.put("carried_pps", carried.into()),
            None => reading.lack("carried_pps", "the rate was set"),
        }
        reading.put("changes_s", self.changes as f64 / self.seconds);
        reading.put("dumps", self.dumps.into());
        reading.put("duplicates", self.duplicates as f64);
        put_effects(self.effect_ns, self.barrier_ns, self.late, &mut reading);
        reading
    }
}

fn put_effects(effect_ns: Vec<u32>, barrier_ns: Vec<u32>, late: u64, reading: &mut Reading) {
    let Some(effects) = Distribution::new(effect_ns.iter().copied()) else {
        let names = ["late", "effect_p50_us", "effect_p99_us", "barrier_p50_us"];
        return reading.lack_each(names, "the rule of the packets was not changed");
    };
    reading.put("late", late as f64);
    let quantiles = [("effect_p50_us", 500), ("effect_p99_us", 990)];
    reading.put_quantiles_us(&effects, &quantiles);
    match Distribution::new(barrier_ns.iter().copied()) {
        Some(barriers) => reading.put_quantiles_us(&barriers, &[("barrier_p50_us", 500)]),
        None => reading.lack("barrier_p50_us", "no barrier was answered"),
    }
    for (name, values) in [("effect_ns", effect_ns), ("barrier_ns", barrier_ns)] {
        let samples = values.into_iter().map(Some).collect();
        reading.samples.insert(name.to_owned(), samples);
    }
}
