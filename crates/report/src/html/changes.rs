//! Rules that change under traffic: when changes are met, and what frames are lost.

use maud::{Markup, html};
use record::{ChangeOutcome, ChangeTest, DeviceRecord, Results};
use stats::Distribution;

use super::parts;
use crate::analysis::ByRun;
use crate::format::count;

pub(super) fn section(results: &Results) -> Markup {
    html! {
        section #changes {
            h2 { "Rules that change" }
            @if let Some(session) = results.sessions().last() {
                p {
                    "Frames of 64 bytes move, "
                    @match session.parameters.changes.pps {
                        Some(pps) => { (count(pps.into())) " a second" }
                        None => { "half as many a second as each device was found to carry" }
                    }
                    ", while the rule that they meet is "
                    "changed now and then, or " (count(session.parameters.changes.flow_mods.into())) " flow-mods of other flows come in a second, or a table of "
                    (count(session.parameters.changes.dump_flows.into())) " flows is told again and again, or nothing happens. One thread sends and receives "
                    "frames and messages; a change counts as met when the first frame has come out by the new rule, so the way "
                    "through the device is in it."
                }
            }
            (effects(results))
            (losses(results))
        }
    }
}

/// A number of each run of a test.
fn by_run(
    results: &Results,
    device: &str,
    test: ChangeTest,
    number: impl Fn(&ChangeOutcome) -> Option<f64>,
) -> ByRun {
    let changes = results.changes(device, test.name());
    ByRun::new(changes.filter_map(|(trial, change)| Some((trial.run, number(change)?))))
}

/// So many thousandths of these times are at most this long, in nanoseconds.
fn quantile(times: &[u32], thousandths: u16) -> Option<f64> {
    let all = Distribution::new(times.iter().copied())?;
    Some(all.quantile(thousandths).into())
}

fn effects(results: &Results) -> Markup {
    let caption = html! {
        b { "From sending a flow-mod until a frame comes out by it, and until the barrier behind it is answered. " }
        "Means over runs. Late are frames that were sent after the answer and met the rule from before."
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Median" span.unit { "µs" } }
            th scope="col" { "99 %" span.unit { "µs" } }
            th scope="col" { "Barrier, median" span.unit { "µs" } }
            th scope="col" { "Late" span.unit { "frames" } }
        }
    };
    let row = |device: &DeviceRecord| {
        let of = |number: &dyn Fn(&ChangeOutcome) -> Option<f64>| {
            by_run(results, &device.name, ChangeTest::Effect, number)
        };
        html! {
            tr {
                th scope="row" { (parts::device_name(device)) }
                (parts::cell(&of(&|change| quantile(&change.effect_ns, 500)), 1e3))
                (parts::cell(&of(&|change| quantile(&change.effect_ns, 990)), 1e3))
                (parts::cell(&of(&|change| quantile(&change.barrier_ns, 500)), 1e3))
                (parts::cell(&of(&|change| Some(change.late as f64)), 1.0))
            }
        }
    };
    let body = html! {
        tbody { @for device in results.devices_in("changes") { (row(device)) } }
    };
    parts::table(&caption, &head, &body)
}

fn losses(results: &Results) -> Markup {
    let caption = html! {
        b { "Frames lost, and how long the slowest in a thousand took. " }
        "Per cent of those sent; means over runs."
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Offered" span.unit { "kpps" } }
            @for test in ChangeTest::ALL {
                th scope="col" { (test.about()) span.unit { "% lost" } }
                th scope="col" { "99.9 %" span.unit { "µs" } }
            }
        }
    };
    let body = html! {
        tbody {
            @for device in results.devices_in("changes") {
                tr {
                    th scope="row" { (parts::device_name(device)) }
                    (parts::cell(&by_run(results, &device.name, ChangeTest::Quiet, |change| {
                        Some(change.pps.into())
                    }), 1e3))
                    @for test in ChangeTest::ALL {
                        (parts::cell(&by_run(results, &device.name, test, |change| {
                            Some(100.0 * change.lost() as f64 / change.sent.max(1) as f64)
                        }), 1.0))
                        (parts::cell(&by_run(results, &device.name, test, |change| {
                            Some(change.delay_ns_p999.into())
                        }), 1e3))
                    }
                }
            }
        }
    };
    parts::table(&caption, &head, &body)
}
