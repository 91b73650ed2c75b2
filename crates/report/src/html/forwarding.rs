//! Small frames: offered against received as a figure, losses as a table, and where
//! on their way frames were lost.

use maud::{Markup, html};
use record::Results;
use record::{DeviceRecord, Outcome, RateOutcome, RatePath, Session, Trial};

use super::parts;
use super::scale::Scale;
use super::svg::{Plot, round};
use crate::analysis::ByRun;
use crate::format::{decimal, percent, rate};

/// The share of frames that may be lost where "without loss" is said.
const LOSSLESS: f64 = 0.001;

/// Each run's rate of frames that came out, offered flat out.
pub(super) fn flat_out(results: &Results, device: &str) -> ByRun {
    let rates = results.rates(device, None);
    ByRun::new(rates.map(|(trial, rate)| (trial.run, rate.received_pps())))
}

/// The size of frames; none if none were sent.
pub(super) fn frame_bytes(results: &Results) -> Option<u16> {
    outcomes(results).next().map(|rate| rate.frame_bytes)
}

/// The highest rate up to which no run lost anything to speak of.
pub(super) fn lossless_cell(results: &Results, device: &str) -> Markup {
    let rates = paced(results);
    let highest = rates
        .iter()
        .copied()
        .take_while(|&pps| {
            let mut runs = results.rates(device, Some(pps)).peekable();
            runs.peek().is_some() && runs.all(|(_, rate)| loss(rate) <= LOSSLESS)
        })
        .last();
    match highest {
        Some(pps) if rates.last() == Some(&pps) => {
            html! { td { "≥ " (decimal(f64::from(pps) / 1e3, 0)) } }
        }
        Some(pps) => html! { td { (decimal(f64::from(pps) / 1e3, 0)) } },
        None if rates.is_empty() || results.rates(device, rates.first().copied()).count() == 0 => {
            html! { td.none { "–" } }
        }
        None => html! { td { "< " (decimal(f64::from(rates[0]) / 1e3, 0)) } },
    }
}

fn outcomes(results: &Results) -> impl Iterator<Item = &RateOutcome> {
    results
        .trials()
        .iter()
        .filter_map(|trial| match &trial.outcome {
            Some(Outcome::ForwardingRate(rate)) => Some(rate),
            _ => None,
        })
}

/// The rates that were to be offered, in order.
fn paced(results: &Results) -> Vec<u32> {
    let mut rates: Vec<u32> = outcomes(results)
        .filter_map(|rate| rate.intended_pps)
        .collect();
    rates.sort_unstable();
    rates.dedup();
    rates
}

fn loss(rate: &RateOutcome) -> f64 {
    rate.lost() as f64 / (rate.offered as f64).max(1.0)
}

pub(super) fn section(results: &Results) -> Markup {
    html! {
        section #forwarding {
            h2 { "Forwarding rate" }
            (introduction(results))
            div.figures { (received_figure(results)) (lost_figure(results)) }
            (loss_table(results))
            (path_table(results))
        }
    }
}

fn introduction(results: &Results) -> Markup {
    let session: Option<&Session> = results.sessions().last();
    html! {
        @if let (Some(session), Some(bytes)) = (session, frame_bytes(results)) {
            p {
                (bytes) "-byte frames (checksum included) of one flow from the client to a station behind the server, for "
                (decimal(f64::from(session.parameters.forwarding_rate.milliseconds) / 1e3, 1))
                " seconds a test: at set rates, and flat out, which overloads most devices on purpose. "
                "Offered is what the kernel took from the generator, never what was asked for; "
                "received is what the server’s interface counted. One rule each way, matching the port. "
                "A rate that the generator missed by more than 1\u{a0}% makes a test void."
            }
        }
    }
}

/// A mean test of a device: thousands of frames a second offered and received.
#[derive(Clone, Copy)]
struct Point {
    offered: f64,
    received: f64,
}

impl Point {
    fn of<'a>(rates: impl Iterator<Item = (&'a Trial, &'a RateOutcome)>) -> Option<Self> {
        let (offered, received): (Vec<_>, Vec<_>) = rates
            .map(|(trial, rate)| {
                (
                    (trial.run, rate.offered_pps() / 1e3),
                    (trial.run, rate.received_pps() / 1e3),
                )
            })
            .unzip();
        Some(Self {
            offered: ByRun::new(offered).mean()?,
            received: ByRun::new(received).mean()?,
        })
    }

    fn lost_percent(&self) -> f64 {
        (1.0 - self.received / self.offered).max(0.0) * 100.0
    }
}

/// The greatest rate that was offered, in thousands.
fn most_offered(results: &Results) -> f64 {
    let offered = outcomes(results).map(RateOutcome::offered_pps);
    offered.fold(1e3, f64::max) / 1e3
}

fn received_figure(results: &Results) -> Markup {
    let most = most_offered(results);
    let plot = Plot {
        width: 520.0,
        height: 360.0,
        x: Scale::from_zero(most),
        x_name: "offered, thousand frames a second",
        y: Scale::from_zero(most),
        y_name: "received, thousand frames a second".to_owned(),
    };
    let content = html! {
        path.ideal d=(plot.line(&[(0.0, 0.0), (most, most)])) {}
        (curves(results, &plot, |point| (point.offered, point.received)))
    };
    let caption = html! {
        "Means over runs. On the dotted diagonal nothing is lost. A ring is the test flat out: where the device "
        "forwards on the sender’s core (the bridge, the cable), the sender can offer less."
    };
    parts::figure(
        "Offered and received",
        &parts::legend(&results.devices_in("forwarding-rate")),
        &plot.draw("Frames received against frames offered", &content),
        &caption,
    )
}

fn lost_figure(results: &Results) -> Markup {
    let plot = Plot {
        width: 520.0,
        height: 360.0,
        x: Scale::from_zero(most_offered(results)),
        x_name: "offered, thousand frames a second",
        y: Scale::from_zero(100.0),
        y_name: "lost, % of what was offered".to_owned(),
    };
    let content = curves(results, &plot, |point| {
        (point.offered, point.lost_percent())
    });
    let caption = html! { "The same tests: the share of frames that did not come out." };
    parts::figure(
        "Offered and lost",
        &parts::legend(&results.devices_in("forwarding-rate")),
        &plot.draw("Share of frames lost against frames offered", &content),
        &caption,
    )
}

/// A curve for each device, through its set rates and to the test flat out.
fn curves(results: &Results, plot: &Plot, place: impl Fn(&Point) -> (f64, f64)) -> Markup {
    let steps = paced(results);
    html! {
        @for device in results.devices_in("forwarding-rate") {
            @let name = device.name.as_str();
            @let points: Vec<Point> = steps.iter()
                .filter_map(|&pps| Point::of(results.rates(name, Some(pps))))
                .collect();
            @let last = Point::of(results.rates(name, None));
            @let all: Vec<(f64, f64)> = points.iter().chain(&last).map(&place).collect();
            g.series.{ (parts::class(name)) } data-series=(name) {
                path.line d=(plot.line(&all)) {}
                @for point in &points { (mark(plot, name, point, place(point), "dot")) }
                @if let Some(point) = &last { (mark(plot, name, point, place(point), "ring")) }
            }
        }
    }
}

/// A test's mark, a dot at a set rate and a ring flat out, that tells what it stands for.
fn mark(plot: &Plot, name: &str, point: &Point, (x, y): (f64, f64), shape: &str) -> Markup {
    let radius = if shape == "ring" { 5.5 } else { 3.4 };
    let (offered, received) = (rate(point.offered * 1e3), rate(point.received * 1e3));
    html! {
        circle.{ (shape) " point" } cx=(round(plot.at_x(x))) cy=(round(plot.at_y(y))) r=(radius)
            data-series=(name) data-x=(decimal(x, 1)) data-y=(decimal(y, 3)) {
            title { (name) ": " (offered) " offered, " (received) " received" }
        }
    }
}

fn loss_table(results: &Results) -> Markup {
    let steps = paced(results);
    let caption = html! {
        b { "Flat out, and losses at set rates. " }
        "Rates in thousand frames a second with their 99\u{a0}% interval over runs; losses are means over runs. "
        "Processor time is that of the device’s process, divided by the frames that came out."
        (parts::NOT_EXCLUDED)
    };
    let head = html! {
        tr {
            th scope="col" rowspan="2" { "Device" }
            th scope="colgroup" colspan="4" { "Flat out" }
            @if !steps.is_empty() {
                th scope="colgroup" colspan=(steps.len()) { "Lost at a set rate of" }
            }
        }
        tr {
            th scope="col" { "offered" span.unit { "kpps" } }
            th scope="col" { "received" span.unit { "kpps" } }
            th scope="col" { "lost" }
            th scope="col" { "process" span.unit { "ns a frame" } }
            @for pps in &steps {
                th scope="col" { (decimal(f64::from(*pps) / 1e3, 0)) span.unit { "kpps" } }
            }
        }
    };
    let body = html! {
        tbody { @for device in results.devices_in("forwarding-rate") { (loss_row(results, device, &steps)) } }
    };
    parts::table(&caption, &head, &body)
}

fn loss_row(results: &Results, device: &DeviceRecord, steps: &[u32]) -> Markup {
    let name = device.name.as_str();
    let flat = |number: fn(&RateOutcome) -> f64| {
        ByRun::new(
            results
                .rates(name, None)
                .map(|(trial, rate)| (trial.run, number(rate))),
        )
    };
    let lost = |intended: Option<u32>| {
        ByRun::new(
            results
                .rates(name, intended)
                .map(|(trial, rate)| (trial.run, loss(rate))),
        )
    };
    let offered = |intended: Option<u32>| -> u64 {
        let rates = results.rates(name, intended);
        rates.map(|(_, rate)| rate.offered).sum()
    };
    let each_frame = processor_time(results, name);
    html! {
        tr.calibration[device.calibration] {
            th scope="row" { (parts::device_name(device)) }
            (parts::cell(&flat(RateOutcome::offered_pps), 1e3))
            (parts::cell(&flat(RateOutcome::received_pps), 1e3))
            (lost_cell(&lost(None), offered(None)))
            @match each_frame.mean() {
                Some(nanos) => td { (decimal(nanos, 0)) },
                None => td.none { "–" },
            }
            @for &pps in steps { (lost_cell(&lost(Some(pps)), offered(Some(pps)))) }
        }
    }
}

/// Each run's nanoseconds of the device's process a frame that came out, offered flat out.
pub(super) fn processor_time(results: &Results, device: &str) -> ByRun {
    ByRun::new(results.rates(device, None).filter_map(|(trial, rate)| {
        let used = trial.conditions.as_ref()?.process?;
        let nanos = (used.user_seconds + used.system_seconds) * 1e9;
        Some((trial.run, nanos / (rate.received as f64).max(1.0)))
    }))
}

/// The mean share that was lost; of nothing, what that does not exclude.
fn lost_cell(values: &ByRun, offered: u64) -> Markup {
    let nothing = values.runs() > 0 && values.values().iter().all(|share| *share == 0.0);
    match nothing {
        true => parts::lost_cell(0, offered),
        false => share_cell(values),
    }
}

fn share_cell(values: &ByRun) -> Markup {
    match values.mean() {
        None => html! { td.none { "–" } },
        Some(mean) => html! { td { (percent(mean)) } },
    }
}

/// Where the frames of the test flat out were last seen.
fn path_table(results: &Results) -> Markup {
    let caption = html! {
        b { "Where frames were lost, flat out. " }
        "Of the frames offered, how many were still there at each place where they are counted; means over runs. "
        "The step where the share falls is where they were lost."
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "left the client" }
            th scope="col" { "came to port 1" }
            th scope="col" { "matched the rule" }
            th scope="col" { "left by port 2" }
            th scope="col" { "came to the server" }
        }
    };
    let places: [fn(&RatePath) -> Option<u64>; 5] = [
        |path| Some(path.client_sent),
        |path| path.device_in,
        |path| path.device_matched,
        |path| path.device_out,
        |path| Some(path.server_received),
    ];
    let share = |name: &str, place: fn(&RatePath) -> Option<u64>| {
        ByRun::new(results.rates(name, None).filter_map(|(trial, rate)| {
            let there = place(&rate.path)?;
            Some((trial.run, there as f64 / (rate.offered as f64).max(1.0)))
        }))
    };
    let body = html! {
        tbody {
            @for device in results.devices_in("forwarding-rate") {
                tr.calibration[device.calibration] {
                    th scope="row" { span.device.{ (parts::class(&device.name)) } { (device.name) } }
                    @for place in places { (share_cell(&share(&device.name, place))) }
                }
            }
        }
    };
    parts::table(&caption, &head, &body)
}
