//! Telemetry as text for Prometheus (OpenMetrics 1.0). Every metric is a row of [`METRICS`]; the
//! text and the test of the dashboard derive from the table.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use control_api::telemetry::{BridgeTelemetry, Counts, PortTelemetry, Telemetry, WorkerTelemetry};

/// The content type in HTTP (OpenMetrics 1.0, "Protocol Negotiation").
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Nanoseconds per second.
const SECOND_NS: f64 = 1e9;

/// A metric and the source of its samples.
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: MetricKind,
    samples: fn(&Telemetry, &mut Sink<'_>) -> fmt::Result,
}

#[derive(Clone, Copy)]
enum MetricKind {
    /// A value that only grows; its samples end in `_total`.
    Counter,
    /// A current value.
    Gauge,
}

use MetricKind::{Counter, Gauge};

/// The value of a sample.
#[derive(Clone, Copy)]
enum MetricValue {
    Whole(u64),
    Real(f64),
}

use MetricValue::{Real, Whole};

/// Receives samples, each with its labels.
type Sink<'a> = dyn FnMut(&[(&str, &str)], MetricValue) -> fmt::Result + 'a;

#[rustfmt::skip]
const METRICS: [Metric; 38] = [
    Metric { name: "comporta_build", help: "Version of the program", kind: Gauge, samples: build },
    Metric { name: "comporta_uptime_seconds", help: "Time since the start", kind: Gauge,
             samples: |t, sink| sink(&[], Real(t.uptime_ns as f64 / SECOND_NS)) },
    Metric { name: "process_resident_memory_bytes", help: "Resident memory", kind: Gauge,
             samples: |t, sink| sink(&[], Whole(t.process.resident_bytes)) },
    Metric { name: "process_virtual_memory_bytes", help: "Virtual memory", kind: Gauge,
             samples: |t, sink| sink(&[], Whole(t.process.virtual_bytes)) },
    Metric { name: "process_threads", help: "Threads", kind: Gauge,
             samples: |t, sink| sink(&[], Whole(t.process.threads)) },
    Metric { name: "process_open_fds", help: "Open files", kind: Gauge,
             samples: |t, sink| sink(&[], Whole(t.process.open_files)) },
    Metric { name: "comporta_control_events", help: "Events in the control thread, by name", kind: Counter,
             samples: |t, sink| counts(&t.control, &[], "event", sink) },
    Metric { name: "comporta_connections", help: "Tracked connections", kind: Gauge,
             samples: |t, sink| sink(&[], Whole(t.conntrack.connections)) },
    Metric { name: "comporta_connections_max", help: "Largest number of tracked connections", kind: Gauge,
             samples: |t, sink| sink(&[], Whole(t.conntrack.connections_max)) },
    Metric { name: "comporta_zone_connections", help: "Tracked connections of a zone", kind: Gauge,
             samples: |t, sink| t.conntrack.zones.iter().try_for_each(|(zone, count)|
                 sink(&[("zone", &zone.to_string())], Whole(*count))) },
    Metric { name: "comporta_conntrack_events", help: "Events of the connection tracker, by name", kind: Counter,
             samples: |t, sink| counts(&t.conntrack.counts, &[], "event", sink) },
    Metric { name: "comporta_worker_busy_seconds", help: "Time of the turns with frames", kind: Counter,
             samples: |t, sink| workers(t, sink, |w| Real(w.busy_ns as f64 / SECOND_NS)) },
    Metric { name: "comporta_worker_batches", help: "Batches of frames", kind: Counter,
             samples: |t, sink| workers(t, sink, |w| Whole(w.batches)) },
    Metric { name: "comporta_worker_frames", help: "Frames received by workers", kind: Counter,
             samples: |t, sink| workers(t, sink, |w| Whole(w.frames)) },
    Metric { name: "comporta_drops", help: "Frames and events that workers dropped, by reason", kind: Counter,
             samples: |t, sink| by_reason(t, sink, |w| &w.drops) },
    Metric { name: "comporta_interpreted", help: "Frames that continued in the interpreter, by reason", kind: Counter,
             samples: |t, sink| by_reason(t, sink, |w| &w.interpreted) },
    Metric { name: "comporta_bridge", help: "Bridges, by datapath id", kind: Gauge,
             samples: |t, sink| t.bridges.iter().try_for_each(|b|
                 sink(&[("bridge", &b.name), ("datapath_id", &b.datapath_id)], Whole(1))) },
    Metric { name: "comporta_bridge_rules", help: "Rules of all tables", kind: Gauge,
             samples: |t, sink| bridges(t, sink, |b| b.rules) },
    Metric { name: "comporta_bridge_stations", help: "Entries of the forwarding database", kind: Gauge,
             samples: |t, sink| bridges(t, sink, |b| b.stations) },
    Metric { name: "comporta_bridge_events", help: "Events of a bridge, by name", kind: Counter,
             samples: |t, sink| t.bridges.iter().try_for_each(|b| counts(&b.counts, &[("bridge", &b.name)], "event", sink)) },
    Metric { name: "comporta_port_up", help: "1 if a port is open and administratively up", kind: Gauge,
             samples: |t, sink| ports(t, sink, |p| p.up.into()) },
    Metric { name: "comporta_port_carrier", help: "1 if a port has carrier", kind: Gauge,
             samples: |t, sink| ports(t, sink, |p| p.carrier.into()) },
    Metric { name: "comporta_port_receive_packets", help: "Frames received", kind: Counter,
             samples: |t, sink| ports(t, sink, |p| p.rx_packets) },
    Metric { name: "comporta_port_receive_bytes", help: "Bytes received", kind: Counter,
             samples: |t, sink| ports(t, sink, |p| p.rx_bytes) },
    Metric { name: "comporta_port_receive_dropped", help: "Received frames dropped", kind: Counter,
             samples: |t, sink| ports(t, sink, |p| p.rx_dropped) },
    Metric { name: "comporta_port_receive_errors", help: "Frames received with errors", kind: Counter,
             samples: |t, sink| ports(t, sink, |p| count_of(p, "rx_errors")) },
    Metric { name: "comporta_port_transmit_packets", help: "Frames sent", kind: Counter,
             samples: |t, sink| ports(t, sink, |p| p.tx_packets) },
    Metric { name: "comporta_port_transmit_bytes", help: "Bytes sent", kind: Counter,
             samples: |t, sink| ports(t, sink, |p| p.tx_bytes) },
    Metric { name: "comporta_port_transmit_dropped", help: "Transmit frames dropped", kind: Counter,
             samples: |t, sink| ports(t, sink, |p| p.tx_dropped) },
    Metric { name: "comporta_port_transmit_errors", help: "Frames that the system refused to send", kind: Counter,
             samples: |t, sink| ports(t, sink, |p| count_of(p, "tx_errors")) },
    Metric { name: "comporta_port_events", help: "Other events of a port, including drops by reason", kind: Counter,
             samples: |t, sink| each_port(t, &mut |b, p|
                 counts(&p.counts, &[("bridge", &b.name), ("port", &p.name), ("number", &p.number)], "event", sink)) },
    Metric { name: "comporta_table_rules", help: "Rules of a table", kind: Gauge,
             samples: |t, sink| tables(t, sink, |table| table.rules) },
    Metric { name: "comporta_table_lookups", help: "Frames looked up in a table", kind: Counter,
             samples: |t, sink| tables(t, sink, |table| table.lookups) },
    Metric { name: "comporta_table_matches", help: "Frames that found a rule in a table", kind: Counter,
             samples: |t, sink| tables(t, sink, |table| table.matches) },
    Metric { name: "comporta_bridge_lookups", help: "Frames looked up in all tables of a bridge", kind: Counter,
             samples: |t, sink| bridges(t, sink, |b| b.tables.iter().map(|table| table.lookups).sum()) },
    Metric { name: "comporta_bridge_matches", help: "Frames that found a rule, in all tables of a bridge", kind: Counter,
             samples: |t, sink| bridges(t, sink, |b| b.tables.iter().map(|table| table.matches).sum()) },
    Metric { name: "comporta_controller_connected", help: "1 if a controller is connected", kind: Gauge,
             samples: |t, sink| controllers(t, sink) },
    Metric { name: "comporta_controller_role", help: "Role of a controller", kind: Gauge,
             samples: |t, sink| roles(t, sink) },
];

/// Formats all metrics.
pub(crate) fn text(telemetry: Telemetry) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposition(telemetry)));
    let mut text = String::new();
    text::encode(&mut text, &registry).expect("a string has room");
    text
}

/// Returns the names of all samples, as queries use them.
#[cfg(test)]
fn names() -> impl Iterator<Item = String> {
    METRICS.iter().map(|metric| match metric.kind {
        Counter => format!("{}_total", metric.name),
        Gauge => metric.name.to_owned(),
    })
}

#[derive(Debug)]
struct Exposition(Telemetry);

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in &METRICS {
            let kind = match metric.kind {
                Counter => MetricType::Counter,
                Gauge => MetricType::Gauge,
            };
            let mut family = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            (metric.samples)(&self.0, &mut |labels, value| {
                let sample = family.encode_family(&labels)?;
                encode(metric.kind, value, sample)
            })?;
        }
        Ok(())
    }
}

fn encode(kind: MetricKind, value: MetricValue, sample: MetricEncoder<'_>) -> fmt::Result {
    match (kind, value) {
        (Counter, Whole(number)) => ConstCounter::new(number).encode(sample),
        (Counter, Real(number)) => ConstCounter::new(number).encode(sample),
        (Gauge, Whole(number)) => ConstGauge::new(number).encode(sample),
        (Gauge, Real(number)) => ConstGauge::new(number).encode(sample),
    }
}

fn build(telemetry: &Telemetry, sink: &mut Sink<'_>) -> fmt::Result {
    let dpdk = if dpdk::IS_ENABLED { "yes" } else { "no" };
    let labels = [("version", telemetry.version.as_str()), ("dpdk", dpdk)];
    sink(&labels, Whole(1))
}

/// Emits a sample for each counter, with its name in the label `by`.
fn counts(counts: &Counts, labels: &[(&str, &str)], by: &str, sink: &mut Sink<'_>) -> fmt::Result {
    counts.iter().try_for_each(|(name, count)| {
        let named = [(by, name.as_str())];
        let labels: Vec<_> = labels.iter().copied().chain(named).collect();
        sink(&labels, Whole(*count))
    })
}

fn count_of(port: &PortTelemetry, name: &str) -> u64 {
    port.counts.get(name).copied().unwrap_or(0)
}

fn each_worker(
    telemetry: &Telemetry,
    emit: &mut dyn FnMut(&str, &str, &WorkerTelemetry) -> fmt::Result,
) -> fmt::Result {
    let mut workers = telemetry.workers.iter().enumerate();
    workers
        .try_for_each(|(index, worker)| emit(&index.to_string(), &worker.core.to_string(), worker))
}

fn workers(
    telemetry: &Telemetry,
    sink: &mut Sink<'_>,
    value: fn(&WorkerTelemetry) -> MetricValue,
) -> fmt::Result {
    each_worker(telemetry, &mut |index, core, worker| {
        sink(&[("worker", index), ("core", core)], value(worker))
    })
}

fn by_reason(
    telemetry: &Telemetry,
    sink: &mut Sink<'_>,
    of: fn(&WorkerTelemetry) -> &Counts,
) -> fmt::Result {
    each_worker(telemetry, &mut |index, core, worker| {
        counts(
            of(worker),
            &[("worker", index), ("core", core)],
            "reason",
            sink,
        )
    })
}

fn bridges(
    telemetry: &Telemetry,
    sink: &mut Sink<'_>,
    value: fn(&BridgeTelemetry) -> u64,
) -> fmt::Result {
    let mut bridges = telemetry.bridges.iter();
    bridges.try_for_each(|bridge| sink(&[("bridge", &bridge.name)], Whole(value(bridge))))
}

fn each_port(
    telemetry: &Telemetry,
    emit: &mut dyn FnMut(&BridgeTelemetry, &PortTelemetry) -> fmt::Result,
) -> fmt::Result {
    let mut bridges = telemetry.bridges.iter();
    bridges.try_for_each(|bridge| bridge.ports.iter().try_for_each(|port| emit(bridge, port)))
}

fn ports(
    telemetry: &Telemetry,
    sink: &mut Sink<'_>,
    value: fn(&PortTelemetry) -> u64,
) -> fmt::Result {
    each_port(telemetry, &mut |bridge, port| {
        let (bridge, name, number) = (&bridge.name, &port.name, &port.number);
        let labels = [
            ("bridge", bridge.as_str()),
            ("port", name),
            ("number", number),
        ];
        sink(&labels, Whole(value(port)))
    })
}

fn tables(
    telemetry: &Telemetry,
    sink: &mut Sink<'_>,
    value: fn(&control_api::telemetry::TableTelemetry) -> u64,
) -> fmt::Result {
    let mut bridges = telemetry.bridges.iter();
    bridges.try_for_each(|bridge| {
        bridge.tables.iter().try_for_each(|table| {
            let number = table.table.to_string();
            let labels = [("bridge", bridge.name.as_str()), ("table", &number)];
            sink(&labels, Whole(value(table)))
        })
    })
}

fn controllers(telemetry: &Telemetry, sink: &mut Sink<'_>) -> fmt::Result {
    telemetry.bridges.iter().try_for_each(|bridge| {
        bridge.controllers.iter().try_for_each(|controller| {
            let labels = [
                ("bridge", bridge.name.as_str()),
                ("target", &controller.target),
            ];
            sink(&labels, Whole(controller.role.is_some().into()))
        })
    })
}

fn roles(telemetry: &Telemetry, sink: &mut Sink<'_>) -> fmt::Result {
    telemetry.bridges.iter().try_for_each(|bridge| {
        bridge.controllers.iter().try_for_each(|controller| {
            let Some(role) = &controller.role else {
                return Ok(());
            };
            let (bridge, target) = (bridge.name.as_str(), controller.target.as_str());
            sink(
                &[("bridge", bridge), ("target", target), ("role", role)],
                Whole(1),
            )
        })
    })
}

#[cfg(test)]
mod tests;
