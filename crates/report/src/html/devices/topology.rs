//! Where devices stand, drawn: one drawing for each way in which hosts and bridges were joined in
//! this run, with the experiments that were done there.

use std::collections::BTreeMap;

use maud::{Markup, html};
use record::Results;
use record::{Outcome, Trial};
use testbed::{PortKind, Topology};

use crate::html::svg::round;

/// The whole width; hosts are at both edges.
const WIDTH: f64 = 720.0;
const HOST: (f64, f64) = (126.0, 44.0);
/// What the device's box has around its bridges, and its ends.
const INSIDE: f64 = 12.0;
const DEVICE: (f64, f64) = (232.0, 488.0);
/// Where the device begins, under the controller, and the height of a row of hosts.
const TOP: f64 = 66.0;
const ROW: f64 = 58.0;
/// So many bridges of a row are drawn; of more, the first ones and the last.
const CHAIN_DRAWN: usize = 4;

/// What was joined how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stand {
    topology: Topology,
    /// Whether the device is one of the user's, by its own interfaces.
    external: bool,
}

impl Stand {
    /// Whether it is that of most experiments.
    fn is_usual(&self) -> bool {
        self.topology == Topology::default() && !self.external
    }
}

/// All drawings of a run.
pub(super) fn figures(results: &Results) -> Markup {
    let stands = stands(results);
    let several = stands.len() > 1;
    let (usual, others): (Vec<_>, Vec<_>) = stands.iter().partition(|(stand, _)| stand.is_usual());
    html! {
        @for (stand, experiments) in usual { (figure(*stand, experiments, several)) }
        @if !others.is_empty() {
            div.figures { @for (stand, experiments) in others { (figure(*stand, experiments, several)) } }
        }
    }
}

/// The stands that tests were done in, each with its experiments.
fn stands(results: &Results) -> BTreeMap<Stand, Vec<&str>> {
    let mut stands: BTreeMap<Stand, Vec<&str>> = BTreeMap::new();
    let external = |name: &str| {
        let device = results.devices().into_iter().find(|one| one.name == name);
        device.is_some_and(|device| device.inventory.is_some())
    };
    for trial in results.trials() {
        let Some(topology) = topology(results, trial).map(plain) else {
            continue;
        };
        let external = external(&trial.device);
        let names = stands.entry(Stand { topology, external }).or_default();
        let name = trial.experiment.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    stands
}

/// A topology as it is drawn: one bridge between two hosts is that, however it came about.
fn plain(topology: Topology) -> Topology {
    match topology.hosts() == 2 && !topology.is_chain() {
        true => Topology::default().with_ports(topology.ports()),
        false => topology,
    }
}

/// How hosts and bridges were joined in a test; none if its record does not tell.
fn topology(results: &Results, trial: &Trial) -> Option<Topology> {
    let experiment = results.description(trial)?;
    let Some(at) = experiment.topology else {
        return Some(Topology::default());
    };
    match &trial.outcome {
        Some(Outcome::Reading(reading)) => {
            // The lab itself sets only declared values; a damaged record may hold others.
            let is_known = experiment.parameters.iter().all(|parameter| {
                let value = reading.point.get(parameter.name);
                value.is_some_and(|value| parameter.read(&value.to_string()).as_ref() == Ok(value))
            });
            is_known.then(|| at(&reading.point))
        }
        _ => None,
    }
}

fn figure(stand: Stand, experiments: &[&str], several: bool) -> Markup {
    let told = description(stand);
    html! {
        figure.wide {
            h4 { (title(stand)) }
            div.plot { (draw(stand, &told)) }
            figcaption {
                @if stand.is_usual() {
                    "Each device has hosts and namespaces of its own, all alike, and all are up during the whole run. "
                    "The cable for calibration joins the hosts without anything between them."
                } @else if stand.external {
                    "The switch is its user’s; the lab has the interfaces at both of its cables."
                } @else {
                    "Made for each test alone, and taken down behind it."
                }
                @if several && stand.is_usual() {
                    " All experiments but those below."
                } @else if several {
                    " "
                    @if experiments.len() > 1 { "Experiments: " } @else { "Experiment: " }
                    @for (index, name) in experiments.iter().enumerate() {
                        @if index > 0 { ", " }
                        code { (name) }
                    }
                    "."
                }
            }
        }
    }
}

fn title(stand: Stand) -> String {
    let topology = stand.topology;
    let bridges = topology.bridges().len();
    let base = match (topology.is_chain(), topology.hosts(), bridges) {
        (true, _, bridges) => format!("{bridges} bridges in a row"),
        (false, 2, _) => "Two hosts".to_owned(),
        (false, hosts, 1) => format!("{hosts} hosts around one bridge"),
        (false, hosts, bridges) => format!("{bridges} bridges side by side, {hosts} hosts"),
    };
    match (stand.external, topology.ports()) {
        (true, _) => format!("{base}, a switch of the user’s"),
        (false, PortKind::Vlan) => format!("{base}, VLAN interfaces for ports"),
        (false, PortKind::Veth) => base,
    }
}

/// The drawing in words, for who cannot see it.
fn description(stand: Stand) -> String {
    let topology = stand.topology;
    let cable = if stand.external {
        "a cable"
    } else {
        "a veth pair"
    };
    let joined = match topology.ports() {
        PortKind::Veth => format!("by {cable} each"),
        PortKind::Vlan => "by a VLAN of its own at a Linux bridge each".to_owned(),
    };
    format!(
        "{}: hosts are joined to the device under test {joined}; the controller stands above the device.",
        title(stand)
    )
}

/// Boxes with names, and lines between them.
#[derive(Default)]
struct Drawing {
    wires: Vec<(String, bool)>,
    boxes: Vec<([f64; 4], bool)>,
    names: Vec<(f64, f64, String)>,
    notes: Vec<(f64, f64, String)>,
}

impl Drawing {
    fn wire(&mut self, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
        let path = format!("M{} {}L{} {}", round(x), round(y), round(to_x), round(to_y));
        self.wires.push((path, false));
    }

    fn place(&mut self, [x, y, width, height]: [f64; 4], name: &str, note: &str) {
        self.boxes.push(([x, y, width, height], false));
        let middle = (x + width / 2.0, y + height / 2.0);
        if note.is_empty() {
            self.names.push((middle.0, middle.1 + 5.0, name.to_owned()));
        } else {
            self.names.push((middle.0, middle.1 - 2.0, name.to_owned()));
            self.notes
                .push((middle.0, middle.1 + 14.0, note.to_owned()));
        }
    }
}

fn draw(stand: Stand, told: &str) -> Markup {
    let topology = stand.topology;
    let rows = match topology.is_chain() {
        true => 1,
        false => topology.hosts().div_ceil(2),
    };
    let bottom = TOP + rows as f64 * ROW + 22.0;
    let mut drawing = Drawing::default();
    hosts(stand, &mut drawing);
    let bridges = bridges(topology);
    let middle = WIDTH / 2.0;
    html! {
        svg.topology viewBox={ "0 0 " (WIDTH) " " (bottom + 4.0) } role="img" aria-label=(told) {
            g.wire {
                path.dashed d={ "M" (middle) " 34V" (TOP - 12.0) } {}
                @for (path, dashed) in &drawing.wires { path.dashed[*dashed] d=(path) {} }
            }
            g.boxes {
                rect.thin x=(middle - 80.0) y="2" width="160" height="32" rx="6" {}
                rect x=(DEVICE.0) y=(TOP - 12.0) width=(DEVICE.1 - DEVICE.0) height=(bottom - TOP + 8.0) rx="6" {}
                @for ([x, y, width, height], thin) in drawing.boxes.iter().chain(&bridges.boxes) {
                    rect.thin[*thin] x=(round(*x)) y=(round(*y)) width=(round(*width)) height=(round(*height)) rx="6" {}
                }
            }
            g.wire { @for (path, dashed) in &bridges.wires { path.dashed[*dashed] d=(path) {} } }
            g.name {
                text x=(middle) y="23" { "controller" }
                text x=(middle) y=(bottom - 10.0) { @if stand.external { "switch of the user’s" } @else { "device under test" } }
                @for (x, y, name) in drawing.names.iter().chain(&bridges.names) {
                    text x=(round(*x)) y=(round(*y)) { (name) }
                }
            }
            g.note {
                text.left x=(middle + 10.0) y="47" { "OpenFlow" }
                @for (x, y, note) in drawing.notes.iter().chain(&bridges.notes) {
                    text x=(round(*x)) y=(round(*y)) { (note) }
                }
            }
        }
    }
}

/// The hosts at both sides, and their cables.
fn hosts(stand: Stand, drawing: &mut Drawing) {
    let topology = stand.topology;
    let vlan = topology.ports() == PortKind::Vlan;
    let cable = if stand.external { "cable" } else { "veth" };
    for (host, place) in topology.places().into_iter().enumerate() {
        let (row, right) = match topology.is_chain() {
            true => (0, host > 0),
            false => (host / 2, host % 2 == 1),
        };
        let y = TOP + row as f64 * ROW;
        let left = if right { WIDTH - HOST.0 - 4.0 } else { 4.0 };
        let name = match (topology.hosts(), host) {
            (2, 0) => "client".to_owned(),
            (2, _) => "server".to_owned(),
            (_, host) => format!("host {}", host + 1),
        };
        let address = format!("10.98.0.{}", host + 1);
        drawing.place([left, y, HOST.0, HOST.1], &name, &address);
        let (near, far) = match right {
            false => (left + HOST.0, DEVICE.0),
            true => (left, DEVICE.1),
        };
        let middle = y + HOST.1 / 2.0;
        drawing.wire((near, middle), (far, middle));
        let between = f64::midpoint(near, far);
        let told = match vlan {
            true => format!("VLAN {}", place.port),
            false => cable.to_owned(),
        };
        drawing.notes.push((between, middle - 6.0, told));
        if vlan {
            drawing
                .notes
                .push((between, middle + 16.0, "Linux bridge".to_owned()));
        }
    }
}

/// The bridges within the device, with what joins them.
fn bridges(topology: Topology) -> Drawing {
    let mut drawing = Drawing::default();
    let (left, right) = (DEVICE.0 + INSIDE, DEVICE.1 - INSIDE);
    if topology.is_chain() {
        let count = topology.bridges().len();
        let shown = count.min(CHAIN_DRAWN);
        let gap = 20.0;
        let width = (right - left - gap * (shown as f64 - 1.0)) / shown as f64;
        for place in 0..shown {
            let x = left + place as f64 * (width + gap);
            let last = place + 1 == shown;
            let name = match (last, count > shown && place + 2 == shown) {
                (true, _) => format!("br{}", count - 1),
                (_, true) => "…".to_owned(),
                _ => format!("br{place}"),
            };
            drawing.place([x, TOP, width, HOST.1], &name, "");
            if !last {
                let y = TOP + HOST.1 / 2.0;
                drawing.wire((x + width, y), (x + width + gap, y));
            }
        }
        return drawing;
    }
    let count = topology.bridges().len();
    let rows = topology.hosts().div_ceil(2) / count;
    let height = ROW * rows as f64 - (ROW - HOST.1);
    for bridge in 0..count {
        let y = TOP + bridge as f64 * ROW * rows as f64;
        let ports: Vec<String> = topology
            .places()
            .iter()
            .filter(|place| place.bridge == bridge)
            .map(|place| place.port.to_string())
            .collect();
        let name = format!("br{bridge}");
        let note = match ports.as_slice() {
            [one, two] => format!("port {one} ↔ port {two}"),
            ports => format!("ports {}", ports.join(", ")),
        };
        drawing.place([left, y, right - left, height], &name, &note);
    }
    drawing
}

#[cfg(test)]
mod tests {
    use record::{Catalogue, Description, MatchSet, Parameter, Point, Reading, Values};

    use super::*;
    use record::fixture;
    use record::{Entry, InventoryRecord};

    fn text(topology: Topology) -> String {
        let stand = Stand {
            topology,
            external: false,
        };
        draw(stand, &description(stand)).into_string()
    }

    #[test]
    fn every_host_and_every_bridge_has_a_box() {
        for (topology, hosts, bridges) in [
            (Topology::default(), 2, 1),
            (Topology::star(4).unwrap(), 4, 1),
            (Topology::parallel(3).unwrap(), 6, 3),
            (Topology::chain(4).unwrap(), 2, 4),
        ] {
            let drawn = text(topology);
            assert_eq!(drawn.matches("10.98.0.").count(), hosts, "{drawn}");
            assert_eq!(drawn.matches(">br").count(), bridges, "{drawn}");
        }
        let long = text(Topology::chain(16).unwrap());
        assert!(long.contains(">…<") && long.contains(">br15<"), "{long}");
    }

    #[test]
    fn ports_that_are_vlans_and_switches_of_users_are_told_apart() {
        let vlan = Topology::default().with_ports(PortKind::Vlan);
        assert!(text(vlan).contains(">VLAN 2<"));
        let mut entries = fixture::entries();
        let Some(Entry::Session(session)) = entries.first_mut() else {
            panic!("a session comes first");
        };
        session.devices[0].inventory = Some(InventoryRecord {
            brand: "Acme".to_owned(),
            model: "Edge".to_owned(),
            firmware: None,
            price: None,
            currency: None,
            ports: None,
        });
        let drawn = figures(&fixture::results(entries)).into_string();
        assert!(drawn.contains("Two hosts, a switch of the user’s"));
        assert!(drawn.contains(">cable<") && drawn.contains(">veth<"));
    }

    #[test]
    fn only_what_the_run_used_is_drawn() {
        let entries = fixture::entries();
        let results = fixture::results(entries);
        let drawn = figures(&results).into_string();
        let stands = stands(&results);
        assert_eq!(drawn.matches("<svg").count(), stands.len());
        assert!(
            stands
                .keys()
                .any(|stand| stand.topology == Topology::default())
        );
    }

    #[test]
    fn damaged_record_is_not_drawn() {
        const EXPERIMENT: Description = Description {
            name: "chain",
            parameters: &[Parameter::axis(
                "switches",
                "switches in a row",
                Values::numbers(&[1], &[1], &[1], [1, 16]),
            )],
            topology: Some(|point| Topology::chain(point.number("switches") as usize).unwrap()),
            ..record::own::DESCRIPTIONS[0]
        };
        let mut trial = fixture::echo_trial("ovs", 1, MatchSet::Ip, 64);
        trial.experiment = EXPERIMENT.name.into();
        trial.outcome = Some(Outcome::Reading(Reading::at(&Point::default())));
        let results = Results::new(Vec::new(), Catalogue::new(&[&EXPERIMENT]));
        assert_eq!(topology(&results, &trial), None);
    }
}
