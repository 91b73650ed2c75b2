//! The devices that others measured, with what they cost: the company that every published row in
//! this report comes from.

use maud::{Markup, html};

use crate::format::decimal;
use crate::html::parts;
use crate::published::{PublishedDevice, published};

/// The inventory of the publications.
pub(super) fn table() -> Markup {
    let caption = html! {
        b { "Published devices. " }
        "What others measured with these experiments; rows and drawings marked ○ are theirs. Prices are those of the publication; "
        "a gigabit’s share is by what all ports carry together, each way."
    };
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Software" }
            th scope="col" { "Forwards in" }
            th scope="col" { "Ports" }
            th scope="col" { "Processor" }
            th scope="col" { "Price" span.unit { "USD" } }
            th scope="col" { "a Gbit/s" span.unit { "USD" } }
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
