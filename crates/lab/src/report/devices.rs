//! The devices and where they stand: an inventory, and the topology drawn.

use maud::{Markup, html};

use super::parts;
use crate::Scenario;
use crate::record::DeviceRecord;
use crate::results::Results;

pub(super) fn section(results: &Results) -> Markup {
    let caption = html! { "What was tested, as it says of itself, and how it was set up." };
    let has_prices = results
        .devices()
        .iter()
        .any(|device| device.inventory.is_some());
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Version" }
            @if has_prices { th scope="col" { "Costs" } }
            th scope="col" { "Forwards by" }
            th scope="col" { "Offloads of the hosts" }
        }
    };
    let body = html! {
        tbody.words {
            @for device in results.devices() {
                tr.calibration[device.calibration] {
                    th scope="row" { span.device.{ (parts::class(&device.name)) } { (device.name) } }
                    td { (device.version) }
                    @if has_prices { td { (costs(device)) } }
                    td { (forwards_by(device)) }
                    td { (offloads(device)) }
                }
            }
        }
    };
    html! {
        section #devices {
            h2 { "Devices" }
            (parts::table(&caption, &head, &body))
            (topology(results))
            @for device in results.devices() {
                @if !device.commands.is_empty() {
                    details {
                        summary { "How " (device.name) " was started" }
                        pre { @for command in &device.commands { (command) "\n" } }
                    }
                }
            }
        }
    }
}

/// What a device of the user's costs, and what of that is a port's share.
fn costs(device: &DeviceRecord) -> String {
    let Some(inventory) = &device.inventory else {
        return "not told".to_owned();
    };
    let currency = inventory.currency.as_deref().unwrap_or_default();
    match (inventory.price, inventory.price_per_port()) {
        (Some(price), Some(share)) => {
            let ports = inventory.ports.unwrap_or_default();
            format!("{price:.2} {currency}: {share:.2} for each of {ports} ports")
        }
        (Some(price), None) => format!("{price:.2} {currency}"),
        (None, _) => "not told".to_owned(),
    }
}

fn forwards_by(device: &DeviceRecord) -> &'static str {
    if device.calibration {
        "a cable: what the tester itself costs"
    } else if device.openflow {
        "OpenFlow 1.0 rules of the lab’s controller"
    } else {
        "its own address table (legacy mode)"
    }
}

/// The offloads that decide what a TCP figure means.
fn offloads(device: &DeviceRecord) -> Markup {
    let on = |name: &str| device.host_offloads.iter().any(|offload| offload == name);
    html! {
        @if on("tx") && on("tso") {
            "on: checksums and TCP segments are left to the device"
        } @else {
            "off: hosts finish checksums and segments, as this device needs"
        }
        span.fine { " (" (device.host_offloads.join(", ")) ")" }
    }
}

/// The bench as a drawing; the same for every device.
fn topology(results: &Results) -> Markup {
    let changes = !results.devices_in(Scenario::Changes).is_empty();
    let controller = match changes {
        true => "OpenFlow 1.0, silent where rules stay",
        false => "OpenFlow 1.0, silent during a test",
    };
    let caption = html! {
        "Each device has hosts and namespaces of its own, all alike, and all are up during the whole run. "
        "The cable for calibration joins the hosts without anything between them."
    };
    let drawing = html! {
        svg.topology viewBox="0 0 720 132" role="img"
            aria-label="client, port 1, device, port 2, server, and the controller above the device" {
            g.wire {
                path d="M150 92H264M456 92H570" {}
                path.dashed d="M360 38V64" {}
            }
            g.boxes {
                rect x="10" y="64" width="140" height="56" rx="6" {}
                rect x="264" y="64" width="192" height="56" rx="6" {}
                rect x="570" y="64" width="140" height="56" rx="6" {}
                rect.thin x="280" y="6" width="160" height="32" rx="6" {}
            }
            g.name {
                text x="80" y="89" { "client" }
                text x="360" y="89" { "device under test" }
                text x="640" y="89" { "server" }
                text x="360" y="27" { "controller" }
            }
            g.note {
                text x="80" y="108" { "10.98.0.1" }
                text x="360" y="108" { "port 1 ↔ port 2" }
                text x="640" y="108" { "10.98.0.2" }
                text x="207" y="84" { "veth" }
                text x="513" y="84" { "veth" }
                text.left x="370" y="56" { (controller) }
            }
        }
    };
    html! {
        figure.wide {
            div.plot { (drawing) }
            figcaption { (caption) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{Entry, InventoryRecord};

    #[test]
    fn what_a_device_costs_is_told_where_its_user_told_it() {
        let mut entries = fixture::entries();
        let shown = section(&Results::new(entries.clone())).into_string();
        assert!(!shown.contains("Costs"));
        let Some(Entry::Session(session)) = entries.first_mut() else {
            panic!("a session comes first");
        };
        session.devices[0].inventory = Some(InventoryRecord {
            brand: "Acme".to_owned(),
            model: "Edge".to_owned(),
            firmware: None,
            price: Some(240.0),
            currency: Some("USD".to_owned()),
            ports: Some(24),
        });
        let shown = section(&Results::new(entries)).into_string();
        assert!(shown.contains("240.00 USD: 10.00 for each of 24 ports"));
        assert!(shown.contains("not told"));
    }
}
