//! From counters to rates: two consecutive replies as sheets.

use std::collections::BTreeMap;
use std::time::Duration;

use control_api::telemetry::{BridgeTelemetry, Counts, RuleTelemetry, Telemetry};

use super::sheet::{Column, Sheet, SheetCell};

/// The previous reply, if it is comparable, and the current one.
#[derive(Clone, Copy, Debug)]
pub(super) struct TelemetryDelta<'a> {
    before: Option<&'a Telemetry>,
    now: &'a Telemetry,
}

const fn words(name: &'static str) -> Column {
    Column {
        name,
        is_number: false,
    }
}

const fn number(name: &'static str) -> Column {
    Column {
        name,
        is_number: true,
    }
}

const PORTS: &[Column] = &[
    words("BRIDGE"),
    words("PORT"),
    words("NO"),
    words("LINK"),
    number("IN/S"),
    number("IN-BIT/S"),
    number("OUT/S"),
    number("OUT-BIT/S"),
    number("IN-DROP/S"),
    number("OUT-DROP/S"),
    number("IN"),
    number("OUT"),
    number("IN-DROPS"),
    number("OUT-DROPS"),
];

const TABLES: &[Column] = &[
    words("BRIDGE"),
    number("TABLE"),
    number("RULES"),
    number("LOOKUPS/S"),
    number("MATCHES/S"),
    number("HIT"),
    number("LOOKUPS"),
    number("MATCHES"),
];

const WORKERS: &[Column] = &[
    number("CORE"),
    number("BUSY"),
    number("FRAMES/S"),
    number("FRAMES/BATCH"),
    number("INTERPRETED/S"),
    number("DROPS/S"),
    words("DROPS"),
];

const FLOWS: &[Column] = &[
    words("BRIDGE"),
    number("TABLE"),
    number("FRAMES/S"),
    number("BIT/S"),
    number("FRAMES"),
    number("PRIORITY"),
    words("MATCH"),
    words("ACTIONS"),
];

const CONNECTIONS: &[Column] = &[
    words("ZONE"),
    number("CONNECTIONS"),
    number("LIMIT"),
    number("NEW/S"),
    number("ENDED/S"),
    number("INVALID/S"),
    words("EVENTS"),
];

/// Counters of connections that end.
const ENDED: [&str; 3] = ["ct_embryonic_evicted", "ct_expired", "ct_removed"];

const CONTROLLERS: &[Column] = &[words("BRIDGE"), words("CONTROLLER"), words("ROLE")];

/// Returns the names of all columns, each once.
pub(super) fn column_names() -> Vec<&'static str> {
    let all = [PORTS, TABLES, WORKERS, FLOWS, CONNECTIONS, CONTROLLERS];
    let mut names: Vec<_> = all.concat().iter().map(|column| column.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Bits in a byte.
const BITS: f64 = 8.0;

impl<'a> TelemetryDelta<'a> {
    /// Compares two replies. After a restart of the switch, the previous one is not comparable.
    pub(super) fn new(before: Option<&'a Telemetry>, now: &'a Telemetry) -> Self {
        let before = before.filter(|before| before.uptime_ns < now.uptime_ns);
        Self { before, now }
    }

    /// Returns the time between the two replies.
    pub(super) fn time(self) -> Option<Duration> {
        let before = self.before?;
        Some(Duration::from_nanos(self.now.uptime_ns - before.uptime_ns))
    }

    /// Returns the increase of a counter per second. A counter that decreased belongs to another
    /// object of the same name, and has no rate.
    fn rate(self, before: Option<u64>, now: u64) -> Option<f64> {
        let grown = now.checked_sub(before?)?;
        Some(grown as f64 / self.time()?.as_secs_f64())
    }

    fn bits(self, before: Option<u64>, now: u64) -> Option<f64> {
        Some(self.rate(before, now)? * BITS)
    }

    /// Returns a bridge in the previous reply.
    fn bridge_before(self, name: &str) -> Option<&'a BridgeTelemetry> {
        let bridges = self.before?.bridges.iter();
        bridges.into_iter().find(|bridge| bridge.name == name)
    }

    /// Returns the displayed bridges: one, or all.
    fn bridges(self, only: Option<&str>) -> impl Iterator<Item = &'a BridgeTelemetry> {
        let bridges = self.now.bridges.iter();
        bridges.filter(move |bridge| only.is_none_or(|only| bridge.name == only))
    }

    /// Returns all sheets, of one bridge or of all.
    pub(super) fn sheets(self, only: Option<&str>) -> Vec<Sheet> {
        let sheet = |title, columns, rows| Sheet {
            title,
            columns,
            rows,
        };
        vec![
            sheet("PORTS", PORTS, self.ports(only)),
            sheet("TABLES", TABLES, self.tables(only)),
            sheet("WORKERS", WORKERS, self.workers()),
            sheet("FLOWS", FLOWS, self.flows(only)),
            sheet("CONNECTIONS", CONNECTIONS, self.connections()),
            sheet("CONTROLLERS", CONTROLLERS, self.controllers(only)),
        ]
    }

    fn ports(self, only: Option<&str>) -> Vec<Vec<SheetCell>> {
        let mut rows = Vec::new();
        for bridge in self.bridges(only) {
            let before = self.bridge_before(&bridge.name);
            for port in &bridge.ports {
                let same = |old: &&control_api::telemetry::PortTelemetry| {
                    (&old.number, &old.name) == (&port.number, &port.name)
                };
                let before = before.and_then(|bridge| bridge.ports.iter().find(same));
                let link = match (port.up, port.carrier) {
                    (true, true) => "up",
                    (true, false) => "no-carrier",
                    (false, _) => "down",
                };
                rows.push(vec![
                    SheetCell::word(&bridge.name),
                    SheetCell::word(&port.name),
                    SheetCell::word(&port.number),
                    SheetCell::word(link),
                    SheetCell::Rate(self.rate(before.map(|old| old.rx_packets), port.rx_packets)),
                    SheetCell::Rate(self.bits(before.map(|old| old.rx_bytes), port.rx_bytes)),
                    SheetCell::Rate(self.rate(before.map(|old| old.tx_packets), port.tx_packets)),
                    SheetCell::Rate(self.bits(before.map(|old| old.tx_bytes), port.tx_bytes)),
                    SheetCell::Rate(self.rate(before.map(|old| old.rx_dropped), port.rx_dropped)),
                    SheetCell::Rate(self.rate(before.map(|old| old.tx_dropped), port.tx_dropped)),
                    SheetCell::Count(port.rx_packets),
                    SheetCell::Count(port.tx_packets),
                    SheetCell::Count(port.rx_dropped),
                    SheetCell::Count(port.tx_dropped),
                ]);
            }
        }
        rows
    }

    fn tables(self, only: Option<&str>) -> Vec<Vec<SheetCell>> {
        let mut rows = Vec::new();
        for bridge in self.bridges(only) {
            let before = self.bridge_before(&bridge.name);
            for table in &bridge.tables {
                let before = before.and_then(|bridge| {
                    let mut tables = bridge.tables.iter();
                    tables.find(|old| old.table == table.table)
                });
                let lookups = self.rate(before.map(|old| old.lookups), table.lookups);
                let matches = self.rate(before.map(|old| old.matches), table.matches);
                rows.push(vec![
                    SheetCell::word(&bridge.name),
                    SheetCell::Count(table.table.into()),
                    SheetCell::Count(table.rules),
                    SheetCell::Rate(lookups),
                    SheetCell::Rate(matches),
                    SheetCell::Share(quotient(matches, lookups)),
                    SheetCell::Count(table.lookups),
                    SheetCell::Count(table.matches),
                ]);
            }
        }
        rows
    }

    fn workers(self) -> Vec<Vec<SheetCell>> {
        const NANOSECONDS: f64 = 1e9;
        let workers = self.now.workers.iter().map(|worker| {
            let workers = self.before.map(|before| before.workers.iter());
            let before = workers.and_then(|mut old| old.find(|old| old.core == worker.core));
            let busy = self.rate(before.map(|old| old.busy_ns), worker.busy_ns);
            let frames = self.rate(before.map(|old| old.frames), worker.frames);
            let batches = self.rate(before.map(|old| old.batches), worker.batches);
            let sum = |counts: &Counts| counts.values().sum::<u64>();
            let drops = before.map(|old| sum(&old.drops));
            let interpreted = before.map(|old| sum(&old.interpreted));
            vec![
                SheetCell::Count(worker.core as u64),
                SheetCell::Share(busy.map(|busy| busy / NANOSECONDS)),
                SheetCell::Rate(frames),
                SheetCell::Mean(quotient(frames, batches)),
                SheetCell::Rate(self.rate(interpreted, sum(&worker.interpreted))),
                SheetCell::Rate(self.rate(drops, sum(&worker.drops))),
                SheetCell::Word(reasons(before.map(|old| &old.drops), &worker.drops)),
            ]
        });
        workers.collect()
    }

    fn flows(self, only: Option<&str>) -> Vec<Vec<SheetCell>> {
        type RuleRowKey<'a> = (u8, u16, u64, &'a str);
        fn row_key(rule: &RuleTelemetry) -> RuleRowKey<'_> {
            (rule.table, rule.priority, rule.cookie, &rule.matching)
        }
        let mut rows = Vec::new();
        for bridge in self.bridges(only) {
            let before = self.bridge_before(&bridge.name);
            let before = before.into_iter().flat_map(|bridge| &bridge.busiest);
            let before: BTreeMap<_, _> = before.map(|rule| (row_key(rule), rule)).collect();
            for rule in &bridge.busiest {
                let before = before.get(&row_key(rule));
                rows.push(vec![
                    SheetCell::word(&bridge.name),
                    SheetCell::Count(rule.table.into()),
                    SheetCell::Rate(self.rate(before.map(|old| old.packets), rule.packets)),
                    SheetCell::Rate(self.bits(before.map(|old| old.bytes), rule.bytes)),
                    SheetCell::Count(rule.packets),
                    SheetCell::Count(rule.priority.into()),
                    SheetCell::word(&rule.matching),
                    SheetCell::word(&rule.actions),
                ]);
            }
        }
        let mut sheet = Sheet {
            title: "",
            columns: FLOWS,
            rows,
        };
        sheet.sort(BY_RATE);
        sheet.rows
    }

    /// Returns a row for all tracked connections, and one for each zone that has some.
    fn connections(self) -> Vec<Vec<SheetCell>> {
        let now = &self.now.conntrack;
        let before = self.before.map(|before| &before.conntrack.counts);
        let rate = |names: &[&str]| {
            let sum = |counts: &Counts| {
                let counts = names.iter().filter_map(|name| counts.get(*name));
                counts.sum::<u64>()
            };
            SheetCell::Rate(self.rate(before.map(sum), sum(&now.counts)))
        };
        let all = vec![
            SheetCell::word("all"),
            SheetCell::Count(now.connections),
            SheetCell::Count(now.connections_max),
            rate(&["ct_committed"]),
            rate(&ENDED),
            rate(&["ct_invalid_packet"]),
            SheetCell::Word(reasons(before, &now.counts)),
        ];
        let zones = now.zones.iter().map(|(zone, connections)| {
            let mut row = vec![
                SheetCell::word(zone.to_string()),
                SheetCell::Count(*connections),
            ];
            row.resize(CONNECTIONS.len(), SheetCell::word(""));
            row
        });
        std::iter::once(all).chain(zones).collect()
    }

    fn controllers(self, only: Option<&str>) -> Vec<Vec<SheetCell>> {
        let bridges = self.bridges(only);
        let rows = bridges.flat_map(|bridge| {
            bridge.controllers.iter().map(|controller| {
                let role = controller.role.as_deref().unwrap_or("not connected");
                vec![
                    SheetCell::word(&bridge.name),
                    SheetCell::word(&controller.target),
                    SheetCell::word(role),
                ]
            })
        });
        rows.collect()
    }

    /// Returns the sums of the rates of all ports: frames and bits in, frames and bits out.
    pub(super) fn sums(self, only: Option<&str>) -> [Option<f64>; 4] {
        let rows = self.ports(only);
        [4, 5, 6, 7].map(|column| {
            let rates = rows.iter().filter_map(|row| match &row[column] {
                SheetCell::Rate(rate) => *rate,
                _ => None,
            });
            rates.reduce(|sum, rate| sum + rate)
        })
    }
}

/// The default order of rules: the busiest first.
const BY_RATE: super::sheet::RowOrder = super::sheet::RowOrder {
    column: "FRAMES/S",
    reversed: false,
};

fn quotient(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let whole = whole.filter(|whole| *whole > 0.0)?;
    Some(part? / whole)
}

/// Formats the drops since the previous reply by reason; total drops if there is none.
fn reasons(before: Option<&Counts>, now: &Counts) -> String {
    let old = |name: &String| before.and_then(|before| before.get(name));
    let grown = now.iter().map(|(name, count)| {
        let old = old(name).copied().unwrap_or_default();
        (name, count.saturating_sub(old))
    });
    let dropped = grown.filter(|(_, count)| *count > 0);
    let dropped: Vec<_> = dropped
        .map(|(name, count)| format!("{name}={count}"))
        .collect();
    dropped.join(",")
}

#[cfg(test)]
pub(super) mod tests {
    use control_api::telemetry::{
        ConntrackTelemetry, ControllerTelemetry, PortTelemetry, ProcessTelemetry, TableTelemetry,
        WorkerTelemetry,
    };

    use super::*;

    /// A switch that received `frames` frames of 100 bytes in `ms` milliseconds.
    pub(in crate::top) fn switch_with(ms: u64, frames: u64) -> Telemetry {
        let port = |number: &str, name: &str, rx, tx| PortTelemetry {
            number: number.to_owned(),
            name: name.to_owned(),
            up: true,
            carrier: number == "1",
            rx_packets: rx,
            rx_bytes: rx * 100,
            tx_packets: tx,
            tx_bytes: tx * 100,
            ..PortTelemetry::default()
        };
        let rule = |matching: &str, packets| RuleTelemetry {
            matching: matching.to_owned(),
            actions: "output:2".to_owned(),
            priority: 7,
            packets,
            bytes: packets * 100,
            ..RuleTelemetry::default()
        };
        Telemetry {
            version: "9.9".to_owned(),
            uptime_ns: ms * 1_000_000,
            process: ProcessTelemetry {
                resident_bytes: 5 << 20,
                threads: 4,
                ..ProcessTelemetry::default()
            },
            workers: vec![WorkerTelemetry {
                core: 3,
                busy_ns: ms * 250_000,
                batches: frames / 4,
                frames,
                drops: [("no_match".to_owned(), frames / 10)].into(),
                interpreted: Counts::new(),
            }],
            bridges: vec![BridgeTelemetry {
                name: "br0".to_owned(),
                ports: vec![port("1", "eth1", frames, 0), port("2", "eth2", 0, frames)],
                tables: vec![TableTelemetry {
                    table: 5,
                    rules: 2,
                    lookups: frames,
                    matches: frames / 2,
                }],
                controllers: vec![ControllerTelemetry {
                    target: "tcp:10.0.0.9:6653".to_owned(),
                    role: None,
                }],
                busiest: vec![rule("udp", 90_000), rule("tcp", frames)],
                ..BridgeTelemetry::default()
            }],
            conntrack: connections_with(frames),
            ..Telemetry::default()
        }
    }

    fn connections_with(frames: u64) -> ConntrackTelemetry {
        ConntrackTelemetry {
            connections: frames / 100,
            connections_max: 3_000_000,
            zones: [(9, frames / 200)].into(),
            counts: [
                ("ct_committed".to_owned(), frames / 50),
                ("ct_expired".to_owned(), frames / 100),
            ]
            .into(),
        }
    }

    fn rows(sheets: &[Sheet], title: &str) -> Vec<String> {
        let sheet = sheets.iter().find(|sheet| sheet.title == title);
        let rows = sheet.expect("there is such a sheet").rows.iter();
        rows.map(|row| {
            row.iter()
                .map(SheetCell::exact)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
    }

    #[test]
    fn rates_use_time_of_switch_clock() {
        let (before, now) = (switch_with(1000, 1000), switch_with(3500, 6000));
        let change = TelemetryDelta::new(Some(&before), &now);
        assert_eq!(change.time(), Some(Duration::from_millis(2500)));
        let sheets = change.sheets(None);
        assert_eq!(
            rows(&sheets, "PORTS"),
            [
                "br0 eth1 1 up 2000.0 1600000.0 0.0 0.0 0.0 0.0 6000 0 0 0",
                "br0 eth2 2 no-carrier 0.0 0.0 2000.0 1600000.0 0.0 0.0 0 6000 0 0"
            ]
        );
        assert_eq!(
            rows(&sheets, "TABLES"),
            ["br0 5 2 2000.0 1000.0 50.0 6000 3000"]
        );
        assert_eq!(
            rows(&sheets, "WORKERS"),
            ["3 25.0 2000.0 4.0 0.0 200.0 no_match=500"]
        );
        assert_eq!(
            rows(&sheets, "FLOWS"),
            [
                "br0 0 2000.0 1600000.0 6000 7 tcp output:2",
                "br0 0 0.0 0.0 90000 7 udp output:2"
            ]
        );
        assert_eq!(
            rows(&sheets, "CONNECTIONS"),
            [
                "all 60 3000000 40.0 20.0 0.0 ct_committed=100,ct_expired=50",
                "9 30 - - - - -"
            ]
        );
        assert_eq!(
            rows(&sheets, "CONTROLLERS"),
            ["br0 tcp:10.0.0.9:6653 not connected"]
        );
        assert_eq!(change.sums(None)[0], Some(2000.0));
    }

    #[test]
    fn incomparable_replies_have_no_rate() {
        let (old, now) = (switch_with(9000, 1000), switch_with(3500, 6000));
        // The switch has restarted.
        let change = TelemetryDelta::new(Some(&old), &now);
        assert_eq!(change.time(), None);
        let ports = rows(&change.sheets(None), "PORTS");
        assert_eq!(ports[0], "br0 eth1 1 up - - - - - - 6000 0 0 0");
        // Another port has the same number, and its counters start at zero.
        let before = switch_with(1000, 8000);
        let change = TelemetryDelta::new(Some(&before), &now);
        assert!(rows(&change.sheets(None), "PORTS")[0].contains("up - - 0.0"));
    }

    #[test]
    fn selected_bridge_is_shown_alone() {
        let now = switch_with(1000, 8);
        let change = TelemetryDelta::new(None, &now);
        assert!(rows(&change.sheets(Some("br1")), "PORTS").is_empty());
        assert_eq!(rows(&change.sheets(Some("br0")), "PORTS").len(), 2);
    }
}
