//! Meters: how far each second's rate was from what was asked for.

use maud::{Markup, html};
use record::Results;
use record::{DeviceRecord, MeterAct, MeterUnit};

use super::parts;
use crate::analysis::ByRun;
use crate::format::count;

/// What was asked of a meter.
type Kind = (MeterUnit, MeterAct);

const KINDS: [(Kind, &str); 4] = [
    ((MeterUnit::Packets, MeterAct::Drop), "packets, drop"),
    ((MeterUnit::Kilobits, MeterAct::Drop), "kilobits, drop"),
    ((MeterUnit::Packets, MeterAct::Remark), "packets, remark"),
    ((MeterUnit::Kilobits, MeterAct::Remark), "kilobits, remark"),
];

pub(super) fn section(results: &Results) -> Markup {
    html! {
        section #meters {
            h2 { "Meters" }
            @if let Some(session) = results.sessions().last() {
                p {
                    "Twice as many frames of " (session.parameters.meters.frame_bytes) " bytes are offered as the meter "
                    "lets pass, and what comes out is counted second by second, by the interface at the far end, after a second "
                    "of warm-up. Frames that a meter remarks are dropped by the table behind it, so that they are "
                    "counted alike. Of each test the worst second is told: how far its rate was from the meter\u{2019}s."
                }
            }
            (table(results))
        }
    }
}

fn rates(results: &Results) -> Vec<u32> {
    let rates = |session: &record::Session| session.parameters.meters.pps.clone();
    results.sessions().last().map(rates).unwrap_or_default()
}

fn table(results: &Results) -> Markup {
    let caption = html! {
        b { "Error of the worst second. " }
        "In per cent of the meter\u{2019}s rate; means over runs."
    };
    let rates = rates(results);
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Meter" }
            @for rate in &rates {
                th scope="col" { (count(u64::from(*rate))) span.unit { "frames/s" } }
            }
        }
    };
    let body = html! {
        tbody {
            @for device in results.devices_in("meters") {
                @for (kind, name) in KINDS {
                    @if rates.iter().any(|rate| results.meters(&device.name, (kind.0, kind.1, *rate)).next().is_some()) {
                        (row(results, device, kind, name, &rates))
                    }
                }
            }
        }
    };
    parts::table(&caption, &head, &body)
}

fn row(results: &Results, device: &DeviceRecord, kind: Kind, name: &str, rates: &[u32]) -> Markup {
    let errors = |rate: u32| {
        let meters = results.meters(&device.name, (kind.0, kind.1, rate));
        ByRun::new(meters.map(|(trial, meter)| (trial.run, meter.worst_error() * 100.0)))
    };
    html! {
        tr {
            th scope="row" { (parts::device_name(device)) }
            td { (name) }
            @for rate in rates { (parts::cell(&errors(*rate), 1.0)) }
        }
    }
}
