//! The devices and where they stand: an inventory, and the topologies drawn.

mod others;
mod topology;

use maud::{Markup, html};
use record::DeviceRecord;
use record::Results;

use super::parts;

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
            (others::table())
            (topology::figures(results))
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

#[cfg(test)]
mod tests {
    use super::*;
    use record::fixture;
    use record::{Entry, InventoryRecord};

    #[test]
    fn what_a_device_costs_is_told_where_its_user_told_it() {
        let mut entries = fixture::entries();
        let shown = section(&fixture::results(entries.clone())).into_string();
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
        let shown = section(&fixture::results(entries)).into_string();
        assert!(shown.contains("240.00 USD: 10.00 for each of 24 ports"));
        assert!(shown.contains("not told"));
    }
}
