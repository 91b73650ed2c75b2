//! TCP throughput as bars, with what the device's process used for it, and the
//! published figures below.

use maud::{Markup, html};
use record::Results;
use record::{DeviceRecord, Session};

use super::parts;
use crate::analysis::{ByRun, process_percent};
use crate::format::{decimal, decimals};
use crate::published::{TcpThroughput, published};

/// Each run's throughput in bit/s.
pub(super) fn throughputs(results: &Results, device: &str) -> ByRun {
    let streams = results.streams(device);
    ByRun::new(streams.map(|(trial, tcp)| (trial.run, tcp.bits_per_second)))
}

/// Each run's per cent of a core in user code and in the kernel.
fn processes(results: &Results, device: &str) -> (ByRun, ByRun) {
    let used = || {
        results
            .streams(device)
            .filter_map(|(trial, _)| Some((trial.run, process_percent(trial)?)))
    };
    (
        ByRun::new(used().map(|(run, (user, _))| (run, user))),
        ByRun::new(used().map(|(run, (_, system))| (run, system))),
    )
}

/// Per cent of a core in all, or where the work is done instead.
pub(super) fn process_cell(results: &Results, device: &str) -> Markup {
    let (user, system) = processes(results, device);
    match (user.mean(), system.mean()) {
        (Some(user), Some(system)) => html! { td { (decimal(user + system, 0)) } },
        _ => html! { td.none { "–" } },
    }
}

pub(super) fn section(results: &Results) -> Markup {
    html! {
        section #tcp {
            h2 { "TCP throughput" }
            (introduction(results))
            (bars(results))
        }
    }
}

fn introduction(results: &Results) -> Markup {
    let session: Option<&Session> = results.sessions().last();
    html! {
        @if let Some(session) = session {
            p {
                "One TCP stream of " code { "iperf3" } " from the client to the server for "
                (session.parameters.tcp_throughput.seconds)
                " seconds, as in the published experiment, and the processor time of the process that forwards. "
                "Both ends run on " (cores(&session.tester_cores)) ", the device on "
                (cores(&session.device_cores))
                ". Where the kernel forwards (the bridge, the cable) the work is done on the hosts’ core, within their own time. "
                "Devices that carry whole segments are tested with the hosts’ offloads left on, others without: "
                a href="#devices" { "see above" } "."
            }
        }
    }
}

fn cores(cores: &[usize]) -> String {
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    let noun = if cores.len() == 1 { "core" } else { "cores" };
    format!("{noun} {}", numbers.join(", "))
}

fn bars(results: &Results) -> Markup {
    let devices = results.devices_in("tcp-throughput");
    let reference = published().tcp_throughput;
    let most = scale(results, &devices);
    let caption = html! {
        b { "Throughput of one stream. " }
        "The line across a bar’s end is the 99\u{a0}% interval over runs. Processor time: "
        span.swatch.user { } " user, " span.swatch.system { } " system, in per cent of one core. "
        "○ Published: " (reference.source) "; " (reference.note) "."
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th.bars scope="col" { "Throughput" }
            th scope="col" { span.unit { "Gbit/s" } }
            th.bars scope="col" { "Its process" }
            th scope="col" { span.unit { "% of a core" } }
            th scope="col" { "Sent again" span.unit { "segments" } }
        }
    };
    let body = html! {
        tbody { @for device in &devices { (row(results, device, most)) } }
        (published_rows(&reference, most))
    };
    parts::table(&caption, &head, &body)
}

/// What a whole bar stands for: the greatest mean, or its interval's end if that is
/// not much farther.
fn scale(results: &Results, devices: &[&DeviceRecord]) -> f64 {
    let ends = devices.iter().filter_map(|device| {
        let values = throughputs(results, &device.name);
        let mean = values.mean()?;
        let end = values.interval().map_or(mean, |interval| interval.high);
        Some((mean, end))
    });
    let (mean, end) = ends.fold((1.0_f64, 1.0_f64), |(mean, end), (next, far)| {
        (mean.max(next), end.max(far))
    });
    end.min(mean * 1.25)
}

fn row(results: &Results, device: &DeviceRecord, most: f64) -> Markup {
    let values = throughputs(results, &device.name);
    let (user, system) = processes(results, &device.name);
    let again = results.streams(&device.name);
    let again = ByRun::new(again.map(|(trial, tcp)| (trial.run, tcp.retransmits as f64)));
    let share = |value: f64| value / most * 100.0;
    html! {
        tr.calibration[device.calibration] {
            th scope="row" { (parts::device_name(device)) }
            td.bars {
                @if let Some(mean) = values.mean() {
                    div.bar.{ (parts::class(&device.name)) } {
                        span.fill style=(width(share(mean))) {}
                        @if let Some(interval) = values.interval() {
                            @let (low, high) = (share(interval.low), share(interval.high).min(100.0));
                            span.whisker style={ "left:" (decimal_css(low)) "%;" (width(high - low)) } {}
                        }
                    }
                }
            }
            (parts::cell(&values, 1e9))
            @match (user.mean(), system.mean()) {
                (Some(user), Some(system)) => {
                    td.bars {
                        div.bar.{ (parts::class(&device.name)) } {
                            span.fill.user style=(width(user.min(100.0))) {}
                            span.fill.system style=(width(system.min(100.0 - user.min(100.0)))) {}
                        }
                    }
                    td {
                        span.value { (decimal(user + system, 0)) }
                        span.interval { (decimal(user, 0)) " + " (decimal(system, 0)) }
                    }
                },
                _ => {
                    td.bars.none { "in the kernel, on the hosts’ core" }
                    td.none { "–" }
                },
            }
            @match again.mean() {
                Some(mean) => td { (decimal(mean, 0)) },
                None => td.none { "–" },
            }
        }
    }
}

fn published_rows(reference: &TcpThroughput, most: f64) -> Markup {
    html! {
        tbody.published {
            @for row in &reference.rows {
                @let gbit = row.mbit_per_s / 1e3;
                tr {
                    th scope="row" { "○ " (row.device) }
                    td.bars { div.bar { span.fill style=(width((row.mbit_per_s * 1e6 / most * 100.0).min(100.0))) {} } }
                    td { (decimal(gbit, decimals(gbit))) }
                    @match row.cpu_percent {
                        Some(percent) => {
                            td.bars { div.bar { span.fill style=(width(percent)) {} } }
                            td { (decimal(percent, 0)) }
                        },
                        None => { td.bars {} td.none { "–" } },
                    }
                    td.none { "–" }
                }
            }
        }
    }
}

fn width(percent: f64) -> String {
    format!("width:{}%", decimal_css(percent))
}

/// A number as style sheets want it.
fn decimal_css(value: f64) -> String {
    format!("{value:.2}")
}
