//! The figures of the scenarios that have records of their own.

use std::borrow::Cow;

use record::{Better, Figure, Value};
use record::{
    ChangeOutcome, EchoOutcome, FlowTableOutcome, MeterOutcome, Outcome, RateOutcome, TcpOutcome,
};
use stats::{Distribution, inter_packet_variations, packet_delay_variations};

use super::{Measure, Observation};

const fn lower(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure {
        name,
        title,
        unit,
        better: Better::Lower,
    }
}

const fn higher(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure {
        name,
        title,
        unit,
        better: Better::Higher,
    }
}

const fn neither(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure {
        name,
        title,
        unit,
        better: Better::Neither,
    }
}

const ECHO: &[Figure] = &[
    lower("mean_us", "mean", "µs"),
    lower("p50_us", "50 %", "µs"),
    lower("p99_us", "99 %", "µs"),
    lower("p999_us", "99.9 %", "µs"),
    lower("p9999_us", "99.99 %", "µs"),
    lower("max_us", "longest", "µs"),
    lower("ipdv_p99_us", "IPDV, 99 %", "µs"),
    lower("pdv_p99_us", "PDV, 99 %", "µs"),
    lower("loss", "lost", ""),
];

const TCP: &[Figure] = &[
    higher("bit_s", "throughput", "bit/s"),
    lower("retransmits", "segments sent again", ""),
];

const RATE: &[Figure] = &[
    neither("offered_pps", "offered", "frames/s"),
    higher("received_pps", "received", "frames/s"),
    lower("loss", "lost", ""),
];

const TABLE: &[Figure] = &[
    higher("add_s", "added", "flows/s"),
    higher("add_first_s", "added, the first", "flows/s"),
    higher("add_last_s", "added, the last", "flows/s"),
    lower("flow_bytes", "memory of a flow", "bytes"),
    lower("left_bytes", "memory left", "bytes"),
    lower("tell_ms", "told", "ms"),
    lower("echo_max_ms", "longest echo meanwhile", "ms"),
    lower("delete_ms", "deleted", "ms"),
];

const METERS: &[Figure] = &[
    neither("passed_pps", "passed", "frames/s"),
    lower("worst_error", "error of the worst second", ""),
];

const CHANGES: &[Figure] = &[
    lower("loss", "lost", ""),
    lower("late", "late frames", ""),
    lower("delay_p50_us", "delay, 50 %", "µs"),
    lower("delay_p99_us", "delay, 99 %", "µs"),
    lower("delay_p999_us", "delay, 99.9 %", "µs"),
    lower("delay_max_us", "longest delay", "µs"),
    lower("effect_p50_us", "effect, 50 %", "µs"),
    lower("effect_p99_us", "effect, 99 %", "µs"),
    lower("barrier_p50_us", "barrier, 50 %", "µs"),
    neither("changes_s", "flow-mods", "flow-mods/s"),
];

const REQUESTS: &[Figure] = &[higher("requests_s", "answered", "requests/s")];

/// The figures of `experiment`.
pub(super) fn declared(experiment: &str) -> &'static [Figure] {
    match experiment {
        "echo" => ECHO,
        "tcp-throughput" => TCP,
        "forwarding-rate" => RATE,
        "flow-table" => TABLE,
        "meters" => METERS,
        "changes" => CHANGES,
        "tcp-requests" => REQUESTS,
        _ => &[],
    }
}

/// The parameters of `experiment`.
pub(super) fn parameters(experiment: &str) -> &'static [&'static str] {
    match experiment {
        "echo" => &["match_set", "frame_bytes", "prober"],
        "forwarding-rate" => &["offer", "frame_bytes"],
        "flow-table" => &["flows"],
        "meters" => &["unit", "act", "pps", "frame_bytes"],
        "changes" => &["test"],
        _ => &[],
    }
}

/// Puts what came of a trial into `seen`.
pub(super) fn observe(experiment: &str, outcome: &Outcome, seen: &mut Observation<'_>) {
    let mut sheet = Sheet {
        declared: declared(experiment),
        seen,
    };
    match outcome {
        Outcome::Echo(echo) => echo_figures(echo, &mut sheet),
        Outcome::TcpThroughput(tcp) => tcp_figures(tcp, &mut sheet),
        Outcome::ForwardingRate(rate) => rate_figures(rate, &mut sheet),
        Outcome::FlowTable(table) => table_figures(table, &mut sheet),
        Outcome::Meter(meter) => meter_figures(meter, &mut sheet),
        Outcome::Change(change) => change_figures(change, &mut sheet),
        Outcome::Requests(requests) => sheet.put("requests_s", requests.rate()),
        Outcome::Reading(_) => (),
    }
}

/// Takes figures by their names.
struct Sheet<'a, 'b> {
    declared: &'static [Figure],
    seen: &'a mut Observation<'b>,
}

impl Sheet<'_, '_> {
    fn at(&mut self, name: &str, value: Value) {
        self.seen.point = self.seen.point.with(name, value);
    }

    fn put(&mut self, name: &str, value: f64) {
        self.add(name, value, None);
    }

    /// A share of `all`.
    fn put_share(&mut self, name: &str, count: u64, all: u64) {
        if all == 0 {
            self.lack(name, "nothing was sent");
        } else {
            self.add(name, count as f64 / all as f64, Some(all));
        }
    }

    /// Not what another scenario's record has, and not what is no number.
    fn add(&mut self, name: &str, value: f64, of: Option<u64>) {
        let Some(figure) = self.declared.iter().find(|figure| figure.name == name) else {
            return;
        };
        if !value.is_finite() {
            return self.lack(name, "it came to no number");
        }
        self.seen.measures.push(Measure {
            name: Cow::Borrowed(figure.name),
            unit: figure.unit,
            better: figure.better,
            value,
            of,
        });
    }

    fn lack(&mut self, name: &str, reason: &str) {
        self.seen.absent.insert(name.to_owned(), reason.to_owned());
    }

    /// Quantiles, in thousandths, that this many values support, of nanoseconds as microseconds.
    fn put_quantiles(&mut self, all: Option<&Distribution>, quantiles: &[(&str, u16)]) {
        for &(name, thousandths) in quantiles {
            match all {
                Some(all) if all.supports(thousandths) => {
                    self.put(name, micros(all.quantile(thousandths).into()));
                }
                Some(_) => self.lack(name, "too few came back: fewer than 20 would lie beyond"),
                None => self.lack(name, "nothing came back"),
            }
        }
    }
}

fn micros(nanoseconds: f64) -> f64 {
    nanoseconds / 1e3
}

fn echo_figures(echo: &EchoOutcome, sheet: &mut Sheet<'_, '_>) {
    sheet.at("match_set", Value::word(echo.match_set.name()));
    sheet.at("frame_bytes", Value::Number(echo.frame_bytes.into()));
    sheet.at("prober", Value::word(echo.prober.name()));
    let trips = &echo.round_trip_ns;
    let all = Distribution::new(trips.iter().flatten().copied());
    if let Some(all) = &all {
        sheet.put("mean_us", micros(all.mean()));
        sheet.put("max_us", micros(all.max().into()));
    }
    let quantiles = [("p50_us", 500), ("p99_us", 990), ("p999_us", 999)];
    sheet.put_quantiles(all.as_ref(), &quantiles);
    match &all {
        Some(all) if stats::supports_quantile(all.count() as u64, 0.9999) => {
            let rank = (all.count() * 9_999).div_ceil(10_000);
            sheet.put("p9999_us", micros(all.values()[rank - 1].into()));
        }
        _ => sheet.lack(
            "p9999_us",
            "too few came back: fewer than 20 would lie beyond",
        ),
    }
    let differences = Distribution::new(inter_packet_variations(trips));
    sheet.put_quantiles(differences.as_ref(), &[("ipdv_p99_us", 990)]);
    let variations = Distribution::new(packet_delay_variations(trips));
    sheet.put_quantiles(variations.as_ref(), &[("pdv_p99_us", 990)]);
    let lost = trips.iter().filter(|trip| trip.is_none()).count();
    sheet.put_share("loss", lost as u64, trips.len() as u64);
}

fn tcp_figures(tcp: &TcpOutcome, sheet: &mut Sheet<'_, '_>) {
    sheet.put("bit_s", tcp.bits_per_second);
    sheet.put("retransmits", tcp.retransmits as f64);
}

fn rate_figures(rate: &RateOutcome, sheet: &mut Sheet<'_, '_>) {
    let offer = rate.intended_pps.map(|pps| Value::Number(pps.into()));
    sheet.at("offer", offer.unwrap_or_else(|| Value::word("flat-out")));
    sheet.at("frame_bytes", Value::Number(rate.frame_bytes.into()));
    sheet.put("offered_pps", rate.offered_pps());
    sheet.put("received_pps", rate.received_pps());
    sheet.put_share("loss", rate.lost(), rate.offered);
}

fn table_figures(table: &FlowTableOutcome, sheet: &mut Sheet<'_, '_>) {
    sheet.at("flows", Value::Number(table.flows.into()));
    sheet.put("add_s", table.rate());
    sheet.put("add_first_s", table.first_rate());
    sheet.put("add_last_s", table.last_rate());
    sheet.put("flow_bytes", table.bytes_per_flow(table.empty_bytes));
    let left = table.left_bytes.saturating_sub(table.empty_bytes);
    sheet.put("left_bytes", left as f64);
    sheet.put("tell_ms", table.tell_seconds * 1e3);
    sheet.put("echo_max_ms", table.echo_ns_max as f64 / 1e6);
    sheet.put("delete_ms", table.delete_seconds * 1e3);
}

fn meter_figures(meter: &MeterOutcome, sheet: &mut Sheet<'_, '_>) {
    sheet.at("unit", Value::word(meter.unit.name()));
    sheet.at("act", Value::word(meter.act.name()));
    sheet.at("pps", Value::Number(meter.nominal_pps.into()));
    sheet.at("frame_bytes", Value::Number(meter.frame_bytes.into()));
    sheet.put("passed_pps", meter.passed_pps());
    sheet.put("worst_error", meter.worst_error());
}

fn change_figures(change: &ChangeOutcome, sheet: &mut Sheet<'_, '_>) {
    sheet.at("test", Value::word(&change.test));
    sheet.put_share("loss", change.lost(), change.sent);
    for (name, nanoseconds) in [
        ("delay_p50_us", change.delay_ns_p50),
        ("delay_p99_us", change.delay_ns_p99),
        ("delay_p999_us", change.delay_ns_p999),
        ("delay_max_us", change.delay_ns_max),
    ] {
        sheet.put(name, micros(nanoseconds.into()));
    }
    sheet.put("changes_s", change.changes_a_second());
    let effects = Distribution::new(change.effect_ns.iter().copied());
    let barriers = Distribution::new(change.barrier_ns.iter().copied());
    if effects.is_none() {
        for name in ["late", "effect_p50_us", "effect_p99_us", "barrier_p50_us"] {
            sheet.lack(name, "the frames' own rule was not changed");
        }
        return;
    }
    sheet.put("late", change.late as f64);
    let quantiles = [("effect_p50_us", 500), ("effect_p99_us", 990)];
    sheet.put_quantiles(effects.as_ref(), &quantiles);
    sheet.put_quantiles(barriers.as_ref(), &[("barrier_p50_us", 500)]);
}
