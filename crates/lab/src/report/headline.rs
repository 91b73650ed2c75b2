//! What a reader in a hurry should take away: one comparison for each experiment,
//! with how sure it is, and one row for each device.

use maud::{Markup, html};

use super::{echo, flow_table, forwarding, parts, tcp};
use crate::analysis::ByRun;
use crate::format::{decimal, decimals, rate, throughput};
use crate::record::{DeviceRecord, Trial};
use crate::results::Results;
use crate::statistics::Interval;

pub(super) fn section(results: &Results) -> Markup {
    let comparisons = comparisons(results);
    html! {
        section #glance {
            h2 { "At a glance" }
            @if !comparisons.is_empty() { div.cards { @for one in &comparisons { (one.card()) } } }
            @for device in without_results(results) {
                p.warning {
                    "No test of " (device) " counts: " a href="#validity" { "see why" } "."
                }
            }
            (overview(results))
        }
    }
}

/// The comparisons, a line each, for a terminal.
pub(super) fn lines(results: &Results) -> Vec<String> {
    comparisons(results).iter().map(Comparison::line).collect()
}

/// Devices that were tested in vain.
fn without_results(results: &Results) -> Vec<&str> {
    let names = results
        .devices()
        .into_iter()
        .map(|device| device.name.as_str());
    let failed = |name: &&str| {
        let mut trials = results
            .trials()
            .iter()
            .filter(|trial| trial.device == *name);
        let tested = results.trials().iter().any(|trial| trial.device == *name);
        tested && !trials.any(Trial::is_valid)
    };
    names.filter(failed).collect()
}

/// Which device is compared with which: the first that is no calibration, with
/// Open vSwitch if that is there, or else with the next.
fn contest(results: &Results) -> Option<(&DeviceRecord, &DeviceRecord)> {
    let devices = results.devices();
    let real: Vec<&DeviceRecord> = devices
        .into_iter()
        .filter(|device| !device.calibration)
        .collect();
    let baseline = real
        .iter()
        .copied()
        .find(|device| device.name == "ovs")
        .or_else(|| real.get(1).copied())?;
    let subject = real
        .into_iter()
        .find(|device| device.name != baseline.name)?;
    Some((subject, baseline))
}

fn comparisons(results: &Results) -> Vec<Comparison> {
    let Some((subject, baseline)) = contest(results) else {
        return Vec::new();
    };
    let (a, b) = (subject.name.as_str(), baseline.name.as_str());
    let mut cards = Vec::new();
    if let Some((set, frame_bytes)) = echo::focus(results) {
        let test = format!("UDP echo, {frame_bytes}-byte frames, {set} match");
        cards.extend(Comparison::of(
            "the median round trip",
            (a, &echo::medians(results, a, set, frame_bytes)),
            (b, &echo::medians(results, b, set, frame_bytes)),
            |nanos| format!("{} µs", decimal(nanos / 1e3, decimals(nanos / 1e3))),
            test,
            Better::Lower,
        ));
    }
    cards.extend(Comparison::of(
        "the TCP throughput",
        (a, &tcp::throughputs(results, a)),
        (b, &tcp::throughputs(results, b)),
        throughput,
        "one iperf3 stream".to_owned(),
        Better::Higher,
    ));
    let test = forwarding::frame_bytes(results).map_or_else(String::new, |bytes| {
        format!("{bytes}-byte frames, offered flat out")
    });
    cards.extend(Comparison::of(
        "the forwarding rate",
        (a, &forwarding::flat_out(results, a)),
        (b, &forwarding::flat_out(results, b)),
        rate,
        test,
        Better::Higher,
    ));
    cards.extend(Comparison::of(
        "the rate of adding flows",
        (a, &flow_table::added(results, a)),
        (b, &flow_table::added(results, b)),
        |flows| format!("{} thousand/s", decimal(flows / 1e3, 0)),
        "twelve exact fields, one connection".to_owned(),
        Better::Higher,
    ));
    cards
}

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Lower,
    Higher,
}

impl Better {
    const fn words(self) -> &'static str {
        match self {
            Self::Lower => "lower is better",
            Self::Higher => "higher is better",
        }
    }
}

/// One number of two devices.
struct Comparison {
    what: &'static str,
    baseline: String,
    values: String,
    test: String,
    /// The mean of ratios, and its interval for two runs or more.
    ratio: (f64, Option<Interval>),
    better: Better,
}

impl Comparison {
    fn of(
        what: &'static str,
        (a, ours): (&str, &ByRun),
        (b, theirs): (&str, &ByRun),
        show: impl Fn(f64) -> String,
        test: String,
        better: Better,
    ) -> Option<Self> {
        let (our_mean, their_mean) = (ours.mean()?, theirs.mean()?);
        let interval = ours.ratio_to(theirs);
        Some(Self {
            what,
            baseline: b.to_owned(),
            values: format!("{a} {}, {b} {}", show(our_mean), show(their_mean)),
            test,
            ratio: (
                interval.map_or(our_mean / their_mean, |interval| interval.mean),
                interval,
            ),
            better,
        })
    }

    /// Whether the interval leaves a doubt which of the two is better.
    fn verdict(&self) -> &'static str {
        let Some(interval) = self.ratio.1 else {
            return "unsure";
        };
        match (interval.high < 1.0, interval.low > 1.0, self.better) {
            (true, _, Better::Lower) | (_, true, Better::Higher) => "better",
            (true, _, Better::Higher) | (_, true, Better::Lower) => "worse",
            (false, false, _) => "unsure",
        }
    }

    fn line(&self) -> String {
        let (ratio, interval) = self.ratio;
        let digits = decimals(ratio).max(1);
        let sure = interval.map_or_else(
            || "too few runs for an interval".to_owned(),
            |interval| {
                let range = parts::range(&interval, 1.0, digits);
                format!("99 % interval {range}, {} runs", interval.runs)
            },
        );
        format!(
            "{:>5} × {} of {}: {} ({sure})",
            decimal(ratio, digits),
            self.what,
            self.baseline,
            self.values,
        )
    }

    fn card(&self) -> Markup {
        let (ratio, interval) = self.ratio;
        let digits = decimals(ratio).max(1);
        html! {
            div.card.{ (self.verdict()) } {
                p.ratio { (decimal(ratio, digits)) span.times { "×" } }
                p.claim { (self.what) " of " (self.baseline) }
                p.values { (self.values) }
                p.test { (self.test) "; " (self.better.words()) }
                p.sure {
                    @match interval {
                        Some(interval) => {
                            "99\u{a0}% interval " (parts::range(&interval, 1.0, digits)) ", "
                            (interval.runs) " runs"
                            @if self.verdict() == "unsure" { ": no difference is proven" }
                        },
                        None => "too few runs for an interval: nothing is proven",
                    }
                }
            }
        }
    }
}

fn overview(results: &Results) -> Markup {
    let focus = echo::focus(results);
    let (has_tcp, has_rates, has_flows) = (
        results.has(crate::Scenario::TcpThroughput),
        results.has(crate::Scenario::ForwardingRate),
        results.has(crate::Scenario::FlowTable),
    );
    let caption = html! {
        "Means over runs. "
        @if let Some((set, frame_bytes)) = focus {
            "Round trips: " (frame_bytes) "-byte frames, " (set) " match. "
        }
        @if has_rates { "kpps: thousand frames a second. Without loss: the highest rate offered at which no run lost more than 0.1\u{a0}%." }
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            @if focus.is_some() {
                th scope="col" { "Round trip, median" span.unit { "µs" } }
                th scope="col" { "99\u{a0}% within" span.unit { "µs" } }
            }
            @if has_tcp {
                th scope="col" { "TCP" span.unit { "Gbit/s" } }
                th scope="col" { "its process" span.unit { "% of a core" } }
            }
            @if has_rates {
                th scope="col" { "Flat out" span.unit { "kpps" } }
                th scope="col" { "Without loss" span.unit { "kpps" } }
            }
            @if has_flows { th scope="col" { "Flows added" span.unit { "1000/s" } } }
        }
    };
    let body = html! {
        tbody {
            @for device in results.devices() {
                @let name = device.name.as_str();
                tr.calibration[device.calibration] {
                    th scope="row" { (parts::device_name(device)) }
                    @if let Some((set, frame_bytes)) = focus {
                        (parts::plain(&echo::medians(results, name, set, frame_bytes), 1e3))
                        (parts::plain(&echo::tails(results, name, set, frame_bytes), 1e3))
                    }
                    @if has_tcp {
                        (parts::plain(&tcp::throughputs(results, name), 1e9))
                        (tcp::process_cell(results, name))
                    }
                    @if has_rates {
                        (parts::plain(&forwarding::flat_out(results, name), 1e3))
                        (forwarding::lossless_cell(results, name))
                    }
                    @if has_flows { (parts::plain(&flow_table::added(results, name), 1e3)) }
                }
            }
        }
    };
    parts::table(&caption, &head, &body)
}
