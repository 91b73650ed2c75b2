//! Devices of the publications, with their prices.

use maud::{Markup, html};

use crate::format::decimal;
use crate::html::parts;
use crate::published::{PublishedDevice, published};

/// Returns the table of published devices.
pub(super) fn table() -> Markup {
    let caption = html! {
        b { "Published devices. " }
        "Devices that others measured in these experiments; their rows and curves are marked with ○. Prices are those of the publication; "
        "the price per Gbit/s refers to the capacity of all ports together, per direction."
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Software" }
            th scope="col" { "Forwarding in" }
            th scope="col" { "Ports" }
            th scope="col" { "Processor" }
            th scope="col" { "Price" span.unit { "USD" } }
            th scope="col" { "Per Gbit/s" span.unit { "USD" } }
            th scope="col" { "Published" }
        }
    };
    let body = html! {
        tbody.published.words { @for device in &published().devices { (row(device)) } }
    };
    html! {
        details.more {
            summary { "Published devices" }
            (parts::table(&caption, &head, &body))
        }
    }
}

fn row(device: &PublishedDevice) -> Markup {
    let or_none = |text: Option<String>| match text {
        Some(text) => html! { td { (text) } },
        None => html! { td.none { "–" } },
    };
    html! {
        tr {
            th scope="row" { "○ " (device.device) }
            td { (device.software) }
            td { (device.form) }
            (or_none(device.ports.map(|ports| ports.to_string())))
            (or_none(device.processor.clone()))
            (or_none(device.usd.map(|usd| decimal(usd, 2))))
            (or_none(device.usd_per_gbit().map(|usd| decimal(usd, 2))))
            td { (device.source) }
        }
    }
}
