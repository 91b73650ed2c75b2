//! Old shapes of the data plane's experiments: `echo`, `tcp-throughput`, `forwarding-rate` and
//! `tcp-requests`.

use serde::Deserialize;

use super::{Constants, processor_seconds};
use crate::{Conditions, OpenFlowEvidence, Point, Reading, RoundTrips, Samples, Value};

/// Reason for figures of the device's process.
const NO_PROCESS: &str = "the device is not a process of its own";

#[derive(Deserialize)]
pub(super) struct Echo {
    match_set: String,
    frame_bytes: u64,
    prober: String,
    warm_up: u64,
    round_trip_ns: Samples,
    openflow: Option<OpenFlowEvidence>,
}

impl Echo {
    pub(super) fn reading(self) -> Reading {
        let point = Point::default()
            .with("match_set", Value::Word(self.match_set))
            .with("frame_bytes", Value::Number(self.frame_bytes))
            .with("prober", Value::Word(self.prober))
            .with("warm-up", Value::Number(self.warm_up))
            .with("packets", Value::Number(self.round_trip_ns.len() as u64));
        let mut reading = Reading::at(&point);
        RoundTrips::new(self.round_trip_ns).put_into(&mut reading);
        reading.openflow = self.openflow;
        reading
    }
}

#[derive(Deserialize)]
pub(super) struct LegacyTcp {
    bits_per_second: f64,
    retransmits: u64,
    sender_cpu_percent: f64,
    receiver_cpu_percent: f64,
    each_second: Vec<f64>,
}

impl LegacyTcp {
    pub(super) fn reading(
        self,
        constants: &Constants<'_>,
        conditions: Option<&Conditions>,
    ) -> Reading {
        let names = ["seconds", "streams", "direction"];
        let mut reading = Reading::at(&constants.add_to(Point::default(), &names));
        reading.put("bit_s", self.bits_per_second);
        reading.put("retransmits", self.retransmits as f64);
        reading.put("sender_cpu_percent", self.sender_cpu_percent);
        reading.put("receiver_cpu_percent", self.receiver_cpu_percent);
        let percent = |seconds: f64, of: &Conditions| seconds / of.seconds * 100.0;
        match (processor_seconds(conditions), conditions) {
            (Some([user, system]), Some(of)) => {
                let [user, system] = [user, system].map(|seconds| percent(seconds, of));
                reading.put("cpu_user_percent", user);
                reading.put("cpu_system_percent", system);
                reading.put("cpu_percent", user + system);
            }
            _ => {
                let names = ["cpu_user_percent", "cpu_system_percent", "cpu_percent"];
                reading.lack_each(names, NO_PROCESS);
            }
        }
        let seconds = (1_u32..).map(f64::from).zip(self.each_second);
        let seconds = seconds.map(|(second, rate)| [second, rate]).collect();
        reading.series.insert("bit_s".to_owned(), seconds);
        reading
    }
}

#[derive(Deserialize)]
pub(super) struct LegacyRate {
    frame_bytes: u64,
    intended_pps: Option<u64>,
    seconds: f64,
    offered: u64,
    received: u64,
    path: LegacyRatePath,
    check: LegacyPathCheck,
}

#[derive(Deserialize)]
struct LegacyRatePath {
    client_sent: u64,
    device_in: Option<u64>,
    device_matched: Option<u64>,
    device_out: Option<u64>,
    server_received: u64,
}

#[derive(Deserialize)]
struct LegacyPathCheck {
    intact: u32,
    changed: u32,
    duplicates: u32,
}

impl LegacyRate {
    pub(super) fn reading(
        self,
        constants: &Constants<'_>,
        conditions: Option<&Conditions>,
    ) -> Reading {
        let offer = self.intended_pps.map(Value::Number);
        let point = Point::default()
            .with("offer", offer.unwrap_or_else(|| Value::word("flat-out")))
            .with("frame_bytes", Value::Number(self.frame_bytes));
        let mut reading = Reading::at(&constants.add_to(point, &["millis"]));
        reading.put("offered_pps", self.offered as f64 / self.seconds);
        reading.put("received_pps", self.received as f64 / self.seconds);
        let lost = self.offered.saturating_sub(self.received);
        reading.put_share("loss", lost, self.offered);
        match processor_seconds(conditions) {
            Some([user, system]) => {
                let nanoseconds = (user + system) * 1e9;
                let frames = (self.received as f64).max(1.0);
                reading.put("process_frame_ns", nanoseconds / frames);
            }
            None => reading.lack("process_frame_ns", NO_PROCESS),
        }
        let LegacyRatePath {
            client_sent,
            device_in,
            device_matched,
            device_out,
            server_received,
        } = self.path;
        for (name, frames, reason) in [
            ("sent_share", Some(client_sent), ""),
            ("ingress_share", device_in, "the bare link has no port"),
            ("matched_share", device_matched, "the device has no rules"),
            ("egress_share", device_out, "the bare link has no port"),
            ("received_share", Some(server_received), ""),
        ] {
            match frames {
                Some(frames) => reading.put_share(name, frames, self.offered),
                None => reading.lack(name, reason),
            }
        }
        reading.put("check_intact", self.check.intact.into());
        reading.put("check_modified", self.check.changed.into());
        reading.put("check_duplicates", self.check.duplicates.into());
        reading
    }
}

#[derive(Deserialize)]
pub(super) struct Requests {
    answered: u64,
    seconds: f64,
}

impl Requests {
    pub(super) fn reading(self) -> Reading {
        let packets = Value::Number(self.answered);
        let mut reading = Reading::at(&Point::default().with("packets", packets));
        reading.put("requests_s", self.answered as f64 / self.seconds);
        reading
    }
}
