//! Requests and replies by TCP: how many a second.

use maud::{Markup, html};
use record::Results;

use super::parts;
use crate::analysis::ByRun;

pub(super) fn section(results: &Results) -> Markup {
    let caption = html! {
        b { "Requests and replies of one byte by TCP. " }
        "One under way at a time; one thread asks and answers, and never sleeps. Means over runs."
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Answered" span.unit { "1/s" } }
        }
    };
    let rate = |device: &str| {
        let requests = results.requests(device);
        ByRun::new(requests.map(|(trial, requests)| (trial.run, requests.rate())))
    };
    let body = html! {
        tbody {
            @for device in results.devices_in("tcp-requests") {
                tr {
                    th scope="row" { (parts::device_name(device)) }
                    (parts::cell(&rate(&device.name), 1.0))
                }
            }
        }
    };
    html! {
        section #requests {
            h2 { "TCP requests" }
            (parts::table(&caption, &head, &body))
        }
    }
}
