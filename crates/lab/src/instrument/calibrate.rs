//! Calibration of the instrument, over its own link or the user's.

use std::fmt::Write;
use std::str::FromStr;
use std::time::Duration;

use record::nearest;
use report::format::{micros, percent};
use serde_json::{Value, json};
use testbed::Interrupt;
use testbed::{Clock, Namespace};
use trafficgen::{Calibration, Floor, Sweep, Template, TestPort, Threads, calibrate};

use super::ends::open;
use super::progress_report::pps;
use super::{BadWord, InstrumentError, IoMethod, PortName};

/// Parameter of a calibration that varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SweepParameter {
    /// Frame size, and then load.
    #[default]
    Both,
    /// Frame size: the highest rate of each, and delays at a tenth of it.
    Size,
    /// Load in per cent of the highest rate of one size.
    Load,
}

impl FromStr for SweepParameter {
    type Err = BadWord;

    fn from_str(text: &str) -> Result<Self, BadWord> {
        match text {
            "size" => Ok(Self::Size),
            "load" => Ok(Self::Load),
            "both" => Ok(Self::Both),
            _ => Err(BadWord(format!(
                "unknown sweep '{text}'{}: expected size, load or both",
                nearest(text, ["size", "load", "both"])
            ))),
        }
    }
}

/// Parameters of a calibration.
#[derive(Clone, Debug)]
pub struct Calibrator {
    /// Ends of a link; `None` for a link between new namespaces.
    pub between: Option<[PortName; 2]>,
    /// Parameter that varies.
    pub swept: SweepParameter,
    /// Frame sizes; loads use the first.
    pub sizes: Vec<u16>,
    /// Loads in per cent.
    pub loads: Vec<u32>,
    /// Duration of each trial.
    pub trial: Duration,
    /// Transmit and receive method.
    pub by: IoMethod,
    /// Empty: one thread; two cores: a sending and a receiving thread.
    pub cores: Vec<usize>,
}

/// Results of a calibration.
#[derive(Clone, Debug)]
pub struct CalibrationTally {
    found: Calibration,
    by: IoMethod,
    is_interrupted: bool,
}

/// Steps of a binary search: the final interval is a hundredth of the highest rate.
const HALVES: u32 = 7;
/// MTU of the calibration's own link: the longest frame that AF_XDP supports at both ends.
const MTU: u32 = 3_498;

/// Link between new namespaces, removed on drop.
struct Cable {
    sides: [Namespace; 2],
}

impl Cable {
    fn lay(clock: &Clock) -> Result<Self, InstrumentError> {
        let sides = [Namespace::new()?, Namespace::new()?];
        let [near, far] = &sides;
        near.join("eth0", far, "eth0")?;
        for side in &sides {
            side.set_mtu("eth0", MTU)?;
            side.set_up("eth0")?;
        }
        let carries = || Ok(near.carries("eth0")?.then_some(()));
        clock.wait_for("a cable", Duration::from_secs(10), carries)?;
        Ok(Self { sides })
    }

    fn end(
        &self,
        side: usize,
        by: IoMethod,
        longest: u16,
        clock: &Clock,
    ) -> Result<TestPort, InstrumentError> {
        let side = &self.sides[side];
        Ok(match by {
            IoMethod::PacketSockets => TestPort::packet(side, "eth0", longest, *clock)?,
            IoMethod::Xdp => TestPort::xdp(side, "eth0", *clock)?,
        })
    }
}

impl Calibrator {
    /// Runs the calibration.
    ///
    /// # Errors
    /// See [`InstrumentError`].
    pub fn run(
        &self,
        clock: &Clock,
        interrupt: &Interrupt,
    ) -> Result<CalibrationTally, InstrumentError> {
        let longest = self.sizes.iter().copied().max().unwrap_or(0);
        let cable;
        let mut ends = match &self.between {
            Some([one, other]) => [
                open(one, self.by, longest, clock)?,
                open(other, self.by, longest, clock)?,
            ],
            None => {
                cable = Cable::lay(clock)?;
                [
                    cable.end(0, self.by, longest, clock)?,
                    cable.end(1, self.by, longest, clock)?,
                ]
            }
        };
        let found = calibrate(&mut ends, &self.sweep()?, clock, interrupt)?;
        Ok(CalibrationTally {
            found,
            by: self.by,
            is_interrupted: interrupt.is_set(),
        })
    }

    fn sweep(&self) -> Result<Sweep, InstrumentError> {
        let threads = match *self.cores {
            [] => Threads::Solo,
            [send, receive] => Threads::Pair { send, receive },
            _ => {
                let wanted = "expected two cores: --cores SEND,RECEIVE".to_owned();
                return Err(InstrumentError::Invalid(wanted));
            }
        };
        let (sizes, loads) = match self.swept {
            SweepParameter::Both => (self.sizes.clone(), self.loads.clone()),
            SweepParameter::Size => (self.sizes.clone(), Vec::new()),
            SweepParameter::Load => (
                self.sizes.iter().copied().take(1).collect(),
                self.loads.clone(),
            ),
        };
        Ok(Sweep {
            template: Template::udp(64),
            sizes,
            loads,
            trial: self.trial,
            halves: HALVES,
            threads,
        })
    }
}

impl CalibrationTally {
    /// Returns true if the user interrupted the calibration.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Returns the results as text.
    #[must_use]
    pub fn text(&self) -> String {
        let way = match self.by {
            IoMethod::PacketSockets => "packet sockets",
            IoMethod::Xdp => "AF_XDP",
        };
        let mut text = format!(
            "By {way}, on a cable without a device\n  \
             size    highest rate    sent flat out   delay: median    99.9 %   longest µs, at a tenth\n"
        );
        for size in &self.found.sizes {
            let _ = writeln!(
                text,
                "  {:<7} {:>13}   {:>13}   {}",
                size.frame_bytes,
                pps(size.pps as f64),
                pps(size.sent_pps),
                floor(&size.floor)
            );
        }
        if !self.found.loads.is_empty() {
            text += "\n  load        intended         achieved   lost        delay: median    99.9 %   longest µs\n";
        }
        for load in &self.found.loads {
            let _ = writeln!(
                text,
                "  {:>3} %   {:>13}   {:>13}   {:<8}   {}{}",
                load.percent,
                pps(load.intended_pps),
                pps(load.achieved_pps),
                percent(load.loss_ratio),
                floor(&load.floor),
                if load.refused { "   not valid" } else { "" }
            );
        }
        text
    }

    /// Returns the results as a line of JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let floor = |floor: &Floor| json!({ "p50": floor.p50_ns, "p999": floor.p999_ns, "longest": floor.max_ns });
        let sizes = self.found.sizes.iter().map(|one| {
            json!({
                "frame_bytes": one.frame_bytes,
                "pps": one.pps,
                "sent_flat_out_pps": one.sent_pps,
                "delay_ns": floor(&one.floor),
            })
        });
        let loads = self.found.loads.iter().map(|one| {
            json!({
                "percent": one.percent,
                "intended_pps": one.intended_pps,
                "achieved_pps": one.achieved_pps,
                "loss_ratio": one.loss_ratio,
                "delay_ns": floor(&one.floor),
                "refused": one.refused,
            })
        });
        json!({
            "kind": "tally",
            "interrupted": self.is_interrupted,
            "way": match self.by { IoMethod::PacketSockets => "packet", IoMethod::Xdp => "xdp" },
            "sizes": sizes.collect::<Vec<_>>(),
            "loads": loads.collect::<Vec<_>>(),
        })
    }
}

fn floor(floor: &Floor) -> String {
    let [p50, p999, max] =
        [floor.p50_ns, floor.p999_ns, floor.max_ns].map(|value| micros(value as f64));
    format!("{p50:>13}   {p999:>7}   {max:>7}")
}
