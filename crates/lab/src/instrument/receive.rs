//! Reception of frames on an interface: their number, and the losses among frames with a signature.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use report::format::{count, micros};
use serde_json::{Value, json};
use testbed::Clock;
use testbed::Interrupt;
use trafficgen::template::{FCS, FRAME_BYTES};
use trafficgen::{Arrival, Arrivals, Signature, StreamMonitor, TestPort};

use super::ends::open;
use super::progress_report::{bits, pps};
use super::{InstrumentError, IoMethod, Listener, PortName, ProgressReport};

/// Parameters of a reception.
#[derive(Clone, Debug)]
pub struct Reception {
    /// Interface.
    pub at: PortName,
    /// Duration; until the user interrupts it if `None`.
    pub time: Option<Duration>,
    /// Number of frames that ends the reception.
    pub frames: Option<u64>,
    /// Receive method.
    pub by: IoMethod,
}

/// Results of a reception.
#[derive(Debug, Default)]
pub struct ReceptionTally {
    at: String,
    stamps: &'static str,
    frames: u64,
    bytes: u64,
    /// Frames by the size classes of RFC 2819.
    sizes: [u64; SIZES.len()],
    unsigned: u64,
    first_ns: u64,
    last_ns: u64,
    dropped: u64,
    streams: BTreeMap<u8, StreamMonitor>,
    is_interrupted: bool,
}

/// Upper limits of the size classes in bytes, with the checksum (RFC 2819, 5).
const SIZES: [u64; 7] = [64, 127, 255, 511, 1_023, 1_518, u64::MAX];

/// Time without a frame after which the receiver sleeps between polls.
const BUSY: Duration = Duration::from_millis(1);
/// Sleep between polls; the ring has room for the frames that arrive in that time.
const REST: Duration = Duration::from_micros(100);
/// Interval of progress reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

impl Reception {
    /// Receives frames until the end of the duration, the number of frames, or an interruption.
    ///
    /// # Errors
    /// See [`InstrumentError`].
    pub fn run(
        &self,
        clock: &Clock,
        interrupt: &Interrupt,
        report: &mut Listener<'_>,
    ) -> Result<ReceptionTally, InstrumentError> {
        let mut end = open(&self.at, self.by, *FRAME_BYTES.end(), clock)?;
        let failed = |cause| InstrumentError::Io {
            what: "receive frames",
            cause,
        };
        end.receive.take_drops().map_err(failed)?;
        let mut tally = ReceptionTally {
            at: self.at.to_string(),
            ..ReceptionTally::default()
        };
        self.listen(&mut end, &mut tally, clock, interrupt, report)
            .map_err(failed)?;
        tally.dropped = end.receive.take_drops().map_err(failed)?;
        tally.stamps = end.receive.stamps().name();
        tally.is_interrupted = interrupt.is_set();
        Ok(tally)
    }

    fn listen(
        &self,
        end: &mut TestPort,
        tally: &mut ReceptionTally,
        clock: &Clock,
        interrupt: &Interrupt,
        report: &mut Listener<'_>,
    ) -> std::io::Result<()> {
        let began = clock.now();
        let (mut reported, mut last_arrival) = (began, began);
        let mut before = (0, 0);
        let mut arrivals = Arrivals::new();
        while !interrupt.is_set() && self.frames.is_none_or(|most| tally.frames < most) {
            arrivals.clear();
            end.receive.receive(&mut arrivals)?;
            let now = clock.now();
            for arrival in arrivals.iter() {
                tally.book(arrival);
                last_arrival = now;
            }
            if self.time.is_some_and(|time| now.since(began) >= time) {
                break;
            }
            if now.since(reported) >= REPORT_INTERVAL {
                report(&ProgressReport {
                    at_seconds: now.since(began).as_secs_f64(),
                    seconds: now.since(reported).as_secs_f64(),
                    sent: None,
                    bytes: tally.bytes - before.1,
                    received: Some(tally.frames - before.0),
                    delay_ns: None,
                });
                (reported, before) = (now, (tally.frames, tally.bytes));
            }
            if now.since(last_arrival) >= BUSY {
                clock.sleep_until(now + REST);
            }
        }
        Ok(())
    }
}

impl ReceptionTally {
    fn book(&mut self, arrival: Arrival<'_>) {
        let bytes = arrival.bytes.len() as u64 + u64::from(FCS);
        if self.frames == 0 {
            self.first_ns = arrival.at_ns;
        }
        self.last_ns = arrival.at_ns;
        self.frames += 1;
        self.bytes += bytes;
        let class = SIZES.iter().position(|most| bytes <= *most);
        self.sizes[class.expect("the last has room for all")] += 1;
        match Signature::of(arrival.bytes) {
            Some(signature) => {
                let heard = self.streams.entry(signature.stream).or_default();
                heard.record(signature, arrival.at_ns);
            }
            None => self.unsigned += 1,
        }
    }

    /// Returns true if the user interrupted the reception.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Returns true if the receiver itself lost no frames.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.dropped == 0
    }

    fn seconds(&self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9
    }

    /// Returns the frames per second between the first and the last; `None` for fewer than two
    /// frames.
    fn pps(&self) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| (self.frames - 1) as f64 / seconds)
    }

    /// Returns the results as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}\n  received   {} frames, {} bytes",
            self.at,
            count(self.frames),
            count(self.bytes)
        );
        if let Some(rate) = self.pps() {
            let speed = 8.0 * self.bytes as f64 / self.seconds();
            let _ = write!(
                text,
                " in {:.3} s: {}, {}",
                self.seconds(),
                pps(rate),
                bits(speed)
            );
        }
        text.push('\n');
        if self.frames > 0 {
            let _ = writeln!(text, "  sizes      {}", self.sizes_in_words());
        }
        for (number, heard) in &self.streams {
            let found = heard.counts();
            let _ = writeln!(
                text,
                "  stream {number:<3} {} received, {} lost between them, {} duplicated, {} reordered; jitter {} µs",
                count(found.received),
                count(found.lost),
                count(found.duplicated),
                count(found.reordered),
                micros(found.jitter_ns),
            );
        }
        let _ = writeln!(
            text,
            "  tester     {}, lost {} itself",
            self.stamps,
            count(self.dropped)
        );
        text
    }

    fn sizes_in_words(&self) -> String {
        let mut least = 0;
        let mut words = Vec::new();
        for (most, frames) in SIZES.iter().zip(self.sizes) {
            let range = match (least, *most) {
                (0, most) => format!("up to {most}"),
                (least, u64::MAX) => format!("{least} and more"),
                (least, most) => format!("{least} to {most}"),
            };
            if frames > 0 {
                words.push(format!("{range}: {}", count(frames)));
            }
            least = most.saturating_add(1);
        }
        words.join(", ")
    }

    /// Returns the results as a line of JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let stream = |(number, heard): (&u8, &StreamMonitor)| {
            let found = heard.counts();
            json!({
                "stream": number,
                "received": found.received,
                "lost": found.lost,
                "duplicated": found.duplicated,
                "reordered": found.reordered,
                "jitter_ns": found.jitter_ns,
            })
        };
        let sizes = SIZES.iter().zip(self.sizes);
        let sizes = sizes.map(|(most, frames)| {
            let most = (*most < u64::MAX).then_some(*most);
            json!({ "up_to": most, "frames": frames })
        });
        json!({
            "kind": "tally",
            "interrupted": self.is_interrupted,
            "valid": self.is_valid(),
            "interface": self.at,
            "stamps": self.stamps,
            "frames": self.frames,
            "bytes": self.bytes,
            "seconds": self.seconds(),
            "pps": self.pps(),
            "unsigned": self.unsigned,
            "sizes": sizes.collect::<Vec<_>>(),
            "streams": self.streams.iter().map(stream).collect::<Vec<_>>(),
            "tester_dropped": self.dropped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_by_size_and_by_signature() {
        let mut tally = ReceptionTally {
            at: "eth0".to_owned(),
            ..ReceptionTally::default()
        };
        for (at_ns, length) in [(1_000, 60), (2_000_001_000, 61), (1_000_001_000, 1_514)] {
            let bytes = vec![0; length];
            tally.book(Arrival {
                bytes: &bytes,
                at_ns,
            });
        }
        assert_eq!((tally.frames, tally.unsigned), (3, 3));
        assert_eq!(tally.bytes, 64 + 65 + 1_518);
        assert_eq!(tally.sizes, [1, 1, 0, 0, 0, 1, 0]);
        let text = tally.text();
        let sizes = "sizes      up to 64: 1, 65 to 127: 1, 1024 to 1518: 1\n";
        assert!(text.contains(sizes), "{text}");
        assert_eq!(tally.json()["pps"], 2.0);
    }

    #[test]
    fn rate_of_no_frames_is_absent() {
        let tally = ReceptionTally::default();
        assert_eq!(tally.json()["pps"], Value::Null);
        assert!(tally.text().contains("0 frames, 0 bytes\n"));
    }
}
