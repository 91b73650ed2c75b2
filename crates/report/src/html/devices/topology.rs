//! Drawings of the topologies of a run, each with its experiments.

use std::collections::BTreeMap;

use maud::{Markup, html};
use record::{Results, Settings, Trial};
use testbed::{PortKind, Topology};

use crate::html::svg::round;

/// Width; the hosts are at both edges.
const WIDTH: f64 = 720.0;
const HOST: (f64, f64) = (126.0, 44.0);
/// Margin of the device's box around its bridges, and its left and right end.
const INSIDE: f64 = 12.0;
const DEVICE: (f64, f64) = (232.0, 488.0);
/// Top of the device, below the controller, and height of a row of hosts.
const TOP: f64 = 66.0;
const ROW: f64 = 58.0;
/// Greatest number of bridges of a chain that are drawn; of more, the first ones and the last.
const CHAIN_DRAWN: usize = 4;

/// Test setup, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TopologyLayout {
    topology: Topology,
    /// True for an external switch, at interfaces of the machine.
    external: bool,
}

impl TopologyLayout {
    /// Returns true for the setup of most experiments.
    fn is_usual(&self) -> bool {
        self.topology == Topology::default() && !self.external
    }
}

/// Returns all drawings of a run.
pub(super) fn figures(results: &Results) -> Markup {
    let layouts = layouts(results);
    let several = layouts.len() > 1;
    let (usual, others): (Vec<_>, Vec<_>) =
        layouts.iter().partition(|(layout, _)| layout.is_usual());
    html! {
        @for (layout, experiments) in usual { (figure(*layout, experiments, several)) }
        @if !others.is_empty() {
            div.figures { @for (layout, experiments) in others { (figure(*layout, experiments, several)) } }
        }
    }
}

/// Returns the layouts of a run, each with its experiments.
fn layouts(results: &Results) -> BTreeMap<TopologyLayout, Vec<&str>> {
    let mut layouts: BTreeMap<TopologyLayout, Vec<&str>> = BTreeMap::new();
    let external = |name: &str| {
        let device = results.devices().into_iter().find(|one| one.name == name);
        device.is_some_and(|device| device.inventory.is_some())
    };
    for trial in results.trials() {
        let Some(topology) = topology(results, trial).map(plain) else {
            continue;
        };
        let external = external(&trial.device);
        let names = layouts
            .entry(TopologyLayout { topology, external })
            .or_default();
        let name = trial.experiment.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    layouts
}

/// Returns a topology as it is drawn: all with one bridge between two hosts are equal.
fn plain(topology: Topology) -> Topology {
    match topology.hosts() == 2 && !topology.is_chain() {
        true => Topology::default().with_ports(topology.ports()),
        false => topology,
    }
}

/// Returns the topology of a trial; `None` if its record has values that the experiment does not
/// accept.
fn topology(results: &Results, trial: &Trial) -> Option<Topology> {
    let experiment = results.description(trial)?;
    let Some(at) = experiment.topology else {
        return Some(Topology::default());
    };
    let defaults = Settings::default().points(experiment).ok()?;
    let mut point = defaults.first()?.clone();
    for (name, value) in trial.reading.as_ref()?.point.iter() {
        let parameter = experiment.parameter(name)?;
        let is_accepted = parameter.parse(&value.to_string()).as_ref() == Ok(value);
        if !is_accepted {
            return None;
        }
        point = point.with(name, value.clone());
    }
    Some(at(&point))
}

fn figure(layout: TopologyLayout, experiments: &[&str], several: bool) -> Markup {
    let description = description(layout);
    html! {
        figure.wide {
            h4 { (title(layout)) }
            div.plot { (draw(layout, &description)) }
            figcaption {
                @if layout.is_usual() {
                    "Each device has its own hosts and namespaces, all equal, during the whole run. "
                    "For calibration, a bare link connects the hosts directly."
                } @else if layout.external {
                    "The lab uses the interfaces that are connected to the external switch."
                } @else {
                    "Dedicated setup, built for each trial."
                }
                @if several && layout.is_usual() {
                    " All experiments except those below."
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

fn title(layout: TopologyLayout) -> String {
    let topology = layout.topology;
    let bridges = topology.bridges().len();
    let base = match (topology.is_chain(), topology.hosts(), bridges) {
        (true, _, bridges) => format!("Chain of {bridges} bridges"),
        (false, 2, _) => "Two hosts".to_owned(),
        (false, hosts, 1) => format!("{hosts} hosts at one bridge"),
        (false, hosts, bridges) => format!("{bridges} parallel bridges with {hosts} hosts"),
    };
    match (layout.external, topology.ports()) {
        (true, _) => format!("{base}, external switch"),
        (false, PortKind::Vlan) => format!("{base}, VLAN interfaces as ports"),
        (false, PortKind::Veth) => base,
    }
}

/// Returns the drawing in words, for screen readers.
fn description(layout: TopologyLayout) -> String {
    let topology = layout.topology;
    let cable = if layout.external {
        "a cable"
    } else {
        "a veth pair"
    };
    let joined = match topology.ports() {
        PortKind::Veth => format!("by {cable}"),
        PortKind::Vlan => "by a VLAN of a Linux bridge".to_owned(),
    };
    format!(
        "{}: each host is connected to the device under test {joined}; the controller is above the device.",
        title(layout)
    )
}

/// Boxes with names, and links between them.
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

fn draw(layout: TopologyLayout, description: &str) -> Markup {
    let topology = layout.topology;
    let rows = match topology.is_chain() {
        true => 1,
        false => topology.hosts().div_ceil(2),
    };
    let bottom = TOP + rows as f64 * ROW + 22.0;
    let mut drawing = Drawing::default();
    hosts(layout, &mut drawing);
    let bridges = bridges(topology);
    let middle = WIDTH / 2.0;
    html! {
        svg.topology viewBox={ "0 0 " (WIDTH) " " (bottom + 4.0) } role="img" aria-label=(description) {
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
                text x=(middle) y=(bottom - 10.0) { @if layout.external { "external switch" } @else { "device under test" } }
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

/// Adds the hosts at both sides, and their links.
fn hosts(layout: TopologyLayout, drawing: &mut Drawing) {
    let topology = layout.topology;
    let vlan = topology.ports() == PortKind::Vlan;
    let cable = if layout.external { "cable" } else { "veth" };
    for (host, place) in topology.attachments().into_iter().enumerate() {
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
        let note = match vlan {
            true => format!("VLAN {}", place.port),
            false => cable.to_owned(),
        };
        drawing.notes.push((between, middle - 6.0, note));
        if vlan {
            drawing
                .notes
                .push((between, middle + 16.0, "Linux bridge".to_owned()));
        }
    }
}

/// Returns the bridges of the device, and the links between them.
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
            .attachments()
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
    use record::{Catalogue, Description, Parameter, Point, Reading, Value, Values};

    use super::*;
    use record::{Entry, InventoryRecord, fixture};

    fn text(topology: Topology) -> String {
        let layout = TopologyLayout {
            topology,
            external: false,
        };
        draw(layout, &description(layout)).into_string()
    }

    #[test]
    fn hosts_and_bridges_have_boxes() {
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
    fn vlan_ports_and_external_switches_are_labelled() {
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
        assert!(drawn.contains("Two hosts, external switch"));
        assert!(drawn.contains(">cable<") && drawn.contains(">veth<"));
    }

    #[test]
    fn layouts_of_run_are_drawn_once() {
        let entries = fixture::entries();
        let results = fixture::results(entries);
        let drawn = figures(&results).into_string();
        let layouts = layouts(&results);
        assert_eq!(drawn.matches("<svg").count(), layouts.len());
        assert!(
            layouts
                .keys()
                .any(|layout| layout.topology == Topology::default())
        );
    }

    #[test]
    fn record_with_an_invalid_value_is_not_drawn() {
        const EXPERIMENT: Description = Description {
            name: "chain",
            parameters: &[Parameter::axis(
                "switches",
                "switches in the chain",
                Values::numbers(&[2], &[2], &[2], [1, 16]),
            )],
            topology: Some(|point| {
                let switches = point.small("switches").try_into().unwrap();
                Topology::chain(switches).unwrap()
            }),
            ..Description::EMPTY
        };
        let results = Results::new(Vec::new(), Catalogue::new(&[&EXPERIMENT]));
        let drawn = |point: Point| {
            let mut trial = fixture::echo_trial("ovs", 1, "ip", 64);
            trial.experiment = EXPERIMENT.name.into();
            trial.reading = Some(Reading::at(&point));
            topology(&results, &trial)
        };
        let switches = |count| Point::default().with("switches", Value::Number(count));
        assert_eq!(drawn(switches(4)), Some(Topology::chain(4).unwrap()));
        assert_eq!(drawn(switches(17)), None);
        // An older record may lack a parameter.
        assert_eq!(drawn(Point::default()), Some(Topology::chain(2).unwrap()));
    }
}
