//! Results of sent frames, as text and as JSON.

use std::fmt::Write;

use hdrhistogram::Histogram;
use report::format::{count, micros, percent};
use serde_json::{Value, json};
use trafficgen::{Refusal, StreamOutcome, TestPortOutcome};

use super::PortName;
use super::progress_report::{bits, pps};

/// Results of all trials.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Trials in their order.
    pub(super) trials: Vec<TrialTally>,
    /// True if the user interrupted them.
    pub(super) is_interrupted: bool,
}

/// Results of one trial.
#[derive(Clone, Debug)]
pub(super) struct TrialTally {
    /// Description of the frames.
    pub(super) description: String,
    /// Intended load.
    pub(super) intended_load: String,
    pub(super) streams: Vec<StreamTally>,
    pub(super) ends: Vec<(PortName, TestPortOutcome)>,
    pub(super) refusals: Vec<Refusal>,
}

/// Results of the frames of one interface.
#[derive(Clone, Debug)]
pub(super) struct StreamTally {
    pub(super) from: String,
    /// Receiving interface, if there is one.
    pub(super) to: Option<String>,
    pub(super) outcome: StreamOutcome,
}

impl Tally {
    /// Returns true if the user interrupted the trials.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Returns true if the tester reached the intended load and lost no frames itself.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.trials.iter().all(|trial| trial.refusals.is_empty())
    }

    /// Returns the results as text.
    #[must_use]
    pub fn text(&self) -> String {
        let trials: Vec<String> = self.trials.iter().map(TrialTally::text).collect();
        trials.join("\n")
    }

    /// Returns the results as a line of JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "kind": "tally",
            "interrupted": self.is_interrupted,
            "valid": self.is_valid(),
            "trials": self.trials.iter().map(TrialTally::json).collect::<Vec<_>>(),
        })
    }
}

impl TrialTally {
    fn text(&self) -> String {
        let mut text = format!("{}, {}\n", self.description, self.intended_load);
        for stream in &self.streams {
            stream.write(&mut text);
        }
        let foreign: u64 = self.ends.iter().map(|(_, end)| end.foreign).sum();
        if foreign > 0 && self.has_receivers() {
            let _ = writeln!(text, "  foreign    {} other frames arrived", count(foreign));
        }
        let ends = self.ends.iter().map(|(name, end)| self.end(name, end));
        let ends: Vec<String> = ends.collect();
        let _ = writeln!(text, "  tester     {}", ends.join("; "));
        for refusal in &self.refusals {
            let _ = writeln!(text, "  NOT VALID  {refusal}");
        }
        text
    }

    fn has_receivers(&self) -> bool {
        self.streams.iter().any(|stream| stream.to.is_some())
    }

    /// Returns the transmit and receive methods of an end, and its losses.
    fn end(&self, name: &PortName, end: &TestPortOutcome) -> String {
        let name = name.to_string();
        let mut parts = Vec::new();
        if self.streams.iter().any(|stream| stream.from == name) {
            parts.push(format!("sends {}", end.send_method.name()));
        }
        if self.receives_at(&name) {
            parts.push(end.stamps.name().to_owned());
            parts.push(format!("lost {} itself", count(end.dropped)));
        }
        format!("{name} {}", parts.join(", "))
    }

    fn receives_at(&self, name: &str) -> bool {
        let is_to = |stream: &StreamTally| stream.to.as_deref() == Some(name);
        self.streams.iter().any(is_to)
    }

    fn json(&self) -> Value {
        let end = |(name, end): &(PortName, TestPortOutcome)| {
            let has_receivers = self.receives_at(&name.to_string());
            json!({
                "interface": name.to_string(),
                "way": end.send_method.name(),
                "stamps": has_receivers.then(|| end.stamps.name()),
                "tester_dropped": end.dropped,
                "unknown": has_receivers.then_some(end.foreign),
            })
        };
        json!({
            "frames": self.description,
            "asked": self.intended_load,
            "streams": self.streams.iter().map(StreamTally::json).collect::<Vec<_>>(),
            "ends": self.ends.iter().map(end).collect::<Vec<_>>(),
            "refusals": self.refusals.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

impl StreamTally {
    fn write(&self, text: &mut String) {
        let one = &self.outcome;
        let to = self.to.as_ref().map(|to| format!(" to {to}"));
        let achieved = &one.achieved;
        let _ = writeln!(
            text,
            "  sent       {} frames by {}{} in {:.3} s: {}, {} of the line, {:.4} % short",
            count(achieved.frames),
            self.from,
            to.unwrap_or_default(),
            achieved.seconds,
            pps(achieved.pps()),
            bits(achieved.l1_bits()),
            100.0 * one.shortfall().max(0.0),
        );
        let _ = writeln!(
            text,
            "  lateness   99 % {}, longest {} µs behind the schedule",
            micros(one.lateness.value_at_quantile(0.99) as f64),
            micros(one.lateness.max() as f64),
        );
        if self.to.is_none() {
            return;
        }
        let _ = writeln!(
            text,
            "  received   {}, lost {} ({}), duplicated {}, reordered {}, misdelivered {}, modified {}, corrupt {}",
            count(one.received),
            count(one.lost),
            percent(one.loss_ratio()),
            count(one.duplicated),
            count(one.reordered),
            count(one.misdelivered),
            count(one.modified),
            count(one.corrupt),
        );
        if one.unsigned > 0 {
            let unsigned = count(one.unsigned);
            let _ = writeln!(
                text,
                "  unsigned   {unsigned} had no room for a signature, so their results are unknown"
            );
        }
        if one.received > 0 {
            let at = |share| micros(one.delay_from_sent.value_at_quantile(share) as f64);
            let _ = writeln!(
                text,
                "  delay      least {}, median {}, 99 % {}, 99.9 % {}, longest {} µs; jitter {} µs",
                micros(one.delay_from_sent.min() as f64),
                at(0.5),
                at(0.99),
                at(0.999),
                micros(one.delay_from_sent.max() as f64),
                micros(one.jitter_ns),
            );
        }
    }

    fn json(&self) -> Value {
        let one = &self.outcome;
        let has_receivers = self.to.is_some();
        let received = has_receivers.then(|| {
            json!({
                "frames": one.received,
                "pps": one.received_pps(),
                "lost": one.lost,
                "loss_ratio": one.loss_ratio(),
                "duplicated": one.duplicated,
                "reordered": one.reordered,
                "too_late": one.too_late,
                "astray": one.misdelivered,
                "changed": one.modified,
                "damaged": one.corrupt,
                "delay_ns": distribution(&one.delay_from_sent),
                "delay_from_due_ns": distribution(&one.delay_from_intended),
                "ipdv_ns": distribution(&one.ipdv),
                "jitter_ns": one.jitter_ns,
            })
        });
        json!({
            "from": self.from,
            "to": self.to,
            "intended_pps": one.intended.pps(),
            "sent": one.achieved.frames,
            "sent_bytes": one.achieved.bytes,
            "seconds": one.achieved.seconds,
            "pps": one.achieved.pps(),
            "line_bits": one.achieved.l1_bits(),
            "frame_bits": one.achieved.l2_bits(),
            "shortfall": one.shortfall(),
            "unsigned": one.unsigned,
            "lateness_ns": distribution(&one.lateness),
            "received": received,
        })
    }
}

/// Returns the usual statistics of a distribution; `None` if it is empty.
pub(super) fn distribution(all: &Histogram<u64>) -> Option<Value> {
    (!all.is_empty()).then(|| {
        json!({
            "count": all.len(),
            "least": all.min(),
            "mean": all.mean(),
            "p50": all.value_at_quantile(0.5),
            "p90": all.value_at_quantile(0.9),
            "p99": all.value_at_quantile(0.99),
            "p999": all.value_at_quantile(0.999),
            "p9999": all.value_at_quantile(0.9999),
            "longest": all.max(),
        })
    })
}
