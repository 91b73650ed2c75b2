//! Conversion of records of earlier versions of the lab.
//!
//! Seven experiments had a record of their own shape each: `outcome` held `echo`,
//! `tcp-throughput`, `forwarding-rate`, `flow-table`, `meter`, `change` or `requests` instead of a
//! `reading`, and the session held their parameters by experiment. Both become what the catalogue
//! records today, under the same names of figures and parameters, so that reports have one path.
//!
//! A converted trial has the identifier that a trial of today has, so that a resumed run finds it.

mod control;
mod data_plane;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::{Conditions, Entry, Point, Settings, Trial, Value};

/// Results of a trial in their old shapes.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OldOutcome {
    Echo(data_plane::Echo),
    TcpThroughput(data_plane::LegacyTcp),
    ForwardingRate(data_plane::LegacyRate),
    FlowTable(control::FlowTable),
    Meter(control::LegacyMeter),
    Change(control::LegacyChange),
    Requests(data_plane::Requests),
}

/// Converter of the lines of one file, in their order.
#[derive(Default)]
pub(crate) struct Converter {
    /// Settings of the last session, which hold the constants of the trials that follow.
    settings: Settings,
}

impl Converter {
    /// Converts a line of any version to an entry.
    pub(crate) fn entry(&mut self, mut line: Json) -> Result<Entry, serde_json::Error> {
        let old = take_old_outcome(&mut line);
        if let Some(parameters) = line.pointer_mut("/parameters") {
            let settings = settings(parameters);
            parameters["settings"] = serde_json::to_value(&settings)?;
            self.settings = settings;
        }
        let mut entry = serde_json::from_value(line)?;
        if let (Entry::Trial(trial), Some(old)) = (&mut entry, old) {
            self.convert(trial, serde_json::from_value(old)?);
        }
        Ok(entry)
    }

    fn convert(&self, trial: &mut Trial, old: OldOutcome) {
        let experiment = trial.experiment.as_str();
        let constants = Constants {
            settings: &self.settings,
            experiment,
        };
        let conditions = trial.conditions.as_ref();
        let (reading, axes) = match old {
            OldOutcome::Echo(old) => (old.reading(), &["match_set", "frame_bytes"][..]),
            OldOutcome::TcpThroughput(old) => (old.reading(&constants, conditions), &[][..]),
            OldOutcome::ForwardingRate(old) => {
                (old.reading(&constants, conditions), &["offer"][..])
            }
            OldOutcome::FlowTable(old) => (old.reading(), &[][..]),
            OldOutcome::Meter(old) => (old.reading(&constants), &["unit", "act", "pps"][..]),
            OldOutcome::Change(old) => (old.reading(&constants, &trial.id), &["test"][..]),
            OldOutcome::Requests(old) => (old.reading(), &[][..]),
        };
        trial.id = id(trial, &reading.point, axes);
        trial.reading = Some(reading);
    }
}

/// Adds to converted trials the figures that depend on other trials of the run.
pub(crate) fn complete(entries: &mut [Entry]) {
    control::put_resident_flow_bytes(entries);
}

/// Returns the results of a line that have an old shape, and sets them to null.
fn take_old_outcome(line: &mut Json) -> Option<Json> {
    let outcome = line.get_mut("outcome")?;
    let is_old = outcome.is_object() && outcome.get("reading").is_none();
    is_old.then(|| outcome.take())
}

/// Returns the identifier of a trial with these axes.
fn id(trial: &Trial, point: &Point, axes: &[&str]) -> String {
    let mut id = trial.experiment.as_str().to_owned();
    for axis in axes {
        if let Some(value) = point.get(axis) {
            id.push_str(&format!("/{axis}={value}"));
        }
    }
    format!("{id}/{}/{}", trial.device, trial.run)
}

/// Constants of an experiment in the settings of a session.
struct Constants<'a> {
    settings: &'a Settings,
    experiment: &'a str,
}

impl Constants<'_> {
    /// Adds the constants of these names to `point`, as far as they are known.
    fn add_to(&self, point: Point, names: &[&str]) -> Point {
        names.iter().fold(point, |point, name| {
            let setting = format!("{}.{name}", self.experiment);
            let value = self.settings.set.get(&setting).and_then(|set| set.first());
            match value {
                Some(text) => point.with(name, parsed(text)),
                None => point,
            }
        })
    }
}

fn parsed(text: &str) -> Value {
    let number = text.parse().map(Value::Number);
    number.unwrap_or_else(|_| Value::word(text))
}

/// Old parameters: section and name in the session, experiment and parameter today.
const PARAMETERS: [[&str; 4]; 18] = [
    ["echo", "packets", "echo", "packets"],
    ["echo", "warm_up", "echo", "warm-up"],
    ["echo", "frame_bytes", "echo", "frame_bytes"],
    ["echo", "match_sets", "echo", "match_set"],
    ["echo", "prober", "echo", "prober"],
    ["echo", "packets", "tcp-requests", "packets"],
    ["tcp_throughput", "seconds", "tcp-throughput", "seconds"],
    ["tcp_throughput", "streams", "tcp-throughput", "streams"],
    ["tcp_throughput", "reverse", "tcp-throughput", "direction"],
    [
        "forwarding_rate",
        "milliseconds",
        "forwarding-rate",
        "millis",
    ],
    [
        "forwarding_rate",
        "frame_bytes",
        "forwarding-rate",
        "frame_bytes",
    ],
    ["forwarding_rate", "paced_pps", "forwarding-rate", "offer"],
    ["flow_table", "flows", "flow-table", "flows"],
    ["meters", "seconds", "meters", "seconds"],
    ["meters", "frame_bytes", "meters", "frame_bytes"],
    ["meters", "pps", "meters", "pps"],
    ["changes", "milliseconds", "changes", "millis"],
    ["changes", "pps", "changes", "rate"],
];
/// More of them, whose names have become words with hyphens.
const MORE_PARAMETERS: [[&str; 4]; 2] = [
    ["changes", "flow_mods", "changes", "flow-mods"],
    ["changes", "dump_flows", "changes", "dump-flows"],
];

/// Returns the settings of a session: those of today, and its old parameters.
fn settings(parameters: &Json) -> Settings {
    let settings = parameters.get("settings").cloned();
    let settings = settings.and_then(|settings| serde_json::from_value(settings).ok());
    let mut settings: Settings = settings.unwrap_or_default();
    for [section, name, experiment, parameter] in PARAMETERS.into_iter().chain(MORE_PARAMETERS) {
        let Some(value) = parameters
            .get(section)
            .and_then(|section| section.get(name))
        else {
            continue;
        };
        let values = match (parameter, value) {
            ("direction", Json::Bool(true)) => vec!["reverse".to_owned()],
            ("direction", _) => vec!["forward".to_owned()],
            ("rate", Json::Null) => vec!["half".to_owned()],
            ("offer", Json::Array(rates)) => {
                let rates = rates.iter().map(text);
                rates.chain(["flat-out".to_owned()]).collect()
            }
            (_, Json::Array(values)) => values.iter().map(text).collect(),
            (_, value) => vec![text(value)],
        };
        settings.set_default(experiment, parameter, values);
    }
    settings
}

fn text(value: &Json) -> String {
    match value {
        Json::String(word) => word.clone(),
        other => other.to_string(),
    }
}

/// Returns the processor time of the device's process, in seconds of user code and of the kernel.
fn processor_seconds(conditions: Option<&Conditions>) -> Option<[f64; 2]> {
    let used = conditions?.process?;
    Some([used.user_seconds, used.system_seconds])
}

#[cfg(test)]
mod tests;
