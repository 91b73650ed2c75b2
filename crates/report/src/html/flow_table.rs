//! A large flow table: rates of adding, memory, telling, deleting.

use maud::{Markup, html};
use record::Results;
use record::{DeviceRecord, FlowTableOutcome};

use super::parts;
use crate::analysis::ByRun;
use crate::format::count;

/// What `number` says of each run of `device`.
fn by_run(results: &Results, device: &str, number: impl Fn(&FlowTableOutcome) -> f64) -> ByRun {
    let tables = results.flow_tables(device);
    ByRun::new(tables.map(|(trial, table)| (trial.run, number(table))))
}

/// Flows that `device` added a second.
pub(super) fn added(results: &Results, device: &str) -> ByRun {
    by_run(results, device, FlowTableOutcome::rate)
}

pub(super) fn section(results: &Results) -> Markup {
    html! {
        section #flow-table {
            h2 { "Flow table" }
            (introduction(results))
            (table(results))
        }
    }
}

fn introduction(results: &Results) -> Markup {
    html! {
        @if let Some(session) = results.sessions().last() {
            p {
                "One connection adds " (count(session.parameters.flow_table.flows.into()))
                " flows of twelve exact fields (OpenFlow 1.0), in no order of their addresses, and waits for one "
                "barrier behind the first, one behind the middle and one behind the last of them. The messages are "
                "made beforehand, so that the controller is not what is measured. Then it has all flows told, while "
                "another connection asks for an echo every millisecond, and deletes them with one message."
            }
        }
    }
}

fn table(results: &Results) -> Markup {
    let caption = html! {
        b { "Adding, keeping, telling, deleting. " }
        "Rates in thousand flows a second. Memory is what the device\u{2019}s process had grown by (resident) since it had "
        "no flows yet, and what of a run\u{2019}s growth was left two seconds after the deletion."
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Added" span.unit { "1000/s" } }
            th scope="col" { "The first" span.unit { "1000/s" } }
            th scope="col" { "The last" span.unit { "1000/s" } }
            th scope="col" { "A flow" span.unit { "bytes" } }
            th scope="col" { "Left" span.unit { "MB" } }
            th scope="col" { "Told in" span.unit { "s" } }
            th scope="col" { "Worst echo" span.unit { "ms" } }
            th scope="col" { "Deleted in" span.unit { "s" } }
        }
    };
    let body = html! {
        tbody { @for device in results.devices_in("flow-table") { (row(results, device)) } }
    };
    parts::table(&caption, &head, &body)
}

fn row(results: &Results, device: &DeviceRecord) -> Markup {
    type Number<'a> = &'a dyn Fn(&FlowTableOutcome) -> f64;
    let of = |number: Number<'_>| by_run(results, &device.name, number);
    let tables = || results.flow_tables(&device.name);
    let unused = tables().map(|(_, table)| table.empty_bytes).min();
    let kept = |table: &FlowTableOutcome| table.bytes_per_flow(unused.unwrap_or(0));
    let left = |table: &FlowTableOutcome| table.left_bytes.saturating_sub(table.empty_bytes) as f64;
    html! {
        tr {
            th scope="row" { (parts::device_name(device)) }
            (parts::cell(&of(&FlowTableOutcome::rate), 1e3))
            (parts::cell(&of(&FlowTableOutcome::first_rate), 1e3))
            (parts::cell(&of(&FlowTableOutcome::last_rate), 1e3))
            (parts::cell(&of(&kept), 1.0))
            (parts::plain(&of(&left), 1e6))
            (parts::cell(&of(&|table| table.tell_seconds), 1.0))
            (parts::cell(&of(&|table| table.echo_ns_max as f64), 1e6))
            (parts::cell(&of(&|table| table.delete_seconds), 1.0))
        }
    }
}
