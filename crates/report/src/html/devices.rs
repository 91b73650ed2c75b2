//! The devices, and drawings of the topologies.

mod others;
mod topology;

use maud::{Markup, html};
use record::{DeviceRecord, Results};

use super::parts;

pub(super) fn section(results: &Results) -> Markup {
    let caption =
        html! { "Devices under test, with the versions that they report, and their setup." };
    let has_prices = results
        .devices()
        .iter()
        .any(|device| device.inventory.is_some());
    let head = html! {
        tr {
            th scope="col" { "Device" }
            th scope="col" { "Version" }
            @if has_prices { th scope="col" { "Price" } }
            th scope="col" { "Forwarding" }
            th scope="col" { "Offloads of the hosts" }
        }
    };
    let body = html! {
        tbody.words {
            @for device in results.devices() {
                tr.calibration[device.calibration] {
                    th scope="row" { span.device.{ (parts::class(&device.name)) } { (device.name) } }
                    td { (device.version) }
                    @if has_prices { td { (price(device)) } }
                    td { (forwarding(device)) }
                    td { (offloads(device)) }
                }
            }
        }
    };
    html! {
        section #devices {
            h2 { "Devices" }
            (parts::table(&caption, &head, &body))
            (others::table())
            (topology::figures(results))
            @for device in results.devices() {
                @if !device.commands.is_empty() {
                    details {
                        summary { "Commands that started " (device.name) }
                        pre { @for command in &device.commands { (command) "\n" } }
                    }
                }
            }
        }
    }
}

/// Returns the price of an external switch, and its share per port.
fn price(device: &DeviceRecord) -> String {
    let Some(inventory) = &device.inventory else {
        return "not known".to_owned();
    };
    let currency = inventory.currency.as_deref().unwrap_or_default();
    match (inventory.price, inventory.price_per_port()) {
        (Some(price), Some(share)) => {
            let ports = inventory.ports.unwrap_or_default();
            format!("{price:.2} {currency}: {share:.2} per port ({ports} ports)")
        }
        (Some(price), None) => format!("{price:.2} {currency}"),
        (None, _) => "not known".to_owned(),
    }
}

fn forwarding(device: &DeviceRecord) -> &'static str {
    if device.calibration {
        "bare link, for calibration"
    } else if device.openflow {
        "OpenFlow 1.0 rules of the lab’s controller"
    } else {
        "own address table (legacy mode)"
    }
}

/// Returns the offloads of the hosts, which determine the meaning of TCP figures.
fn offloads(device: &DeviceRecord) -> Markup {
    let on = |name: &str| device.host_offloads.iter().any(|offload| offload == name);
    html! {
        @if on("tx") && on("tso") {
            "on: the device receives TCP segments without checksums"
        } @else {
            "off: the hosts compute checksums and segment TCP, as this device requires"
        }
        span.fine { " (" (device.host_offloads.join(", ")) ")" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Entry, InventoryRecord, fixture};

    #[test]
    fn price_is_shown_if_the_user_has_given_it() {
        let mut entries = fixture::entries();
        let shown = section(&fixture::results(entries.clone())).into_string();
        assert!(!shown.contains("per port"));
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
        let shown = section(&fixture::results(entries)).into_string();
        assert!(shown.contains("240.00 USD: 10.00 per port (24 ports)"));
        assert!(shown.contains("not known"));
    }
}
