//! Many stations at one port: they send a frame each, then another port sends frames to them. A
//! frame that arrives at the third port was flooded, because the switch had not learned its
//! station.

use trafficgen::template::{FlowField, Flows};
use trafficgen::{Length, Pace, Rate, Stream, Template, TestPortNo};

use super::{request, station};
use crate::catalogue::lines::{Offer, fell_short, is_void};
use crate::trial::TrialError;

/// Hosts, numbered from 0: the port of the stations, the port that sends to them, and the number of
/// hosts; the third one should receive nothing.
const LEARNING: usize = 0;
const TESTING: usize = 1;
pub(super) const HOSTS: usize = 3;
/// Host with a station that the switch must know before the trial.
pub(super) const KNOWN: std::ops::Range<usize> = TESTING..TESTING + 1;

/// Number of disjoint sets of stations; a byte of the addresses distinguishes them.
pub(super) const SETS: u64 = 200;

/// Stations with consecutive addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stations {
    /// Number of the set.
    pub(super) set: u64,
    /// Number of stations.
    pub(super) count: u64,
}

/// Results of frames to the stations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FloodCount {
    /// Frames that arrived at the wrong port.
    pub(super) flooded: u64,
    /// Lost frames.
    pub(super) lost: u64,
}

/// Results of frames from the stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Introduction {
    /// Lost frames.
    pub(super) lost: u64,
    /// True if the rate was lower than intended.
    pub(super) is_slow: bool,
}

/// Returns the address of the first station of a set.
fn address(set: u64) -> [u8; 6] {
    let set = u8::try_from(set % SETS).expect("it is a byte's value");
    [0x02, 0x01, set, 0, 0, 0]
}

impl Stations {
    fn flows(self, field: FlowField) -> Flows {
        let count = u32::try_from(self.count).expect("the experiment's bounds say so");
        Flows::sequential(count, &[field])
    }

    fn length(self) -> Length {
        Length::Frames(self.count)
    }

    /// Sends one frame from each station to the tester's station, at this rate.
    pub(super) fn introduce(
        self,
        pps: u64,
        lines: &mut dyn Offer,
    ) -> Result<Introduction, TrialError> {
        let mut template = Template::udp(64);
        template.source = station(LEARNING);
        template.source.mac = address(self.set);
        template.destination = station(TESTING);
        template.flows = self.flows(FlowField::SourceMac);
        let pace = Pace::Constant(Rate::Frames(pps));
        let stream = Stream::new(template, pace, TestPortNo(LEARNING), TestPortNo(TESTING));
        let measured = lines.offer(&request(vec![stream], self.length()))?;
        match is_void(&measured) {
            Some(reason) => Err(TrialError::Impossible(reason)),
            None => Ok(Introduction {
                lost: measured.streams[0].lost,
                is_slow: fell_short(&measured),
            }),
        }
    }

    /// Sends one frame from the tester's station to each; after losses, twice more at lower rates.
    /// The switch learns none of the stations from these frames.
    pub(super) fn test_until_answered(
        self,
        pps: u64,
        lines: &mut dyn Offer,
    ) -> Result<FloodCount, TrialError> {
        let mut tested = self.test(pps, lines)?;
        for slower in [pps / 2, pps / 4] {
            if tested.lost == 0 {
                break;
            }
            tested = self.test(slower.max(1), lines)?;
        }
        Ok(tested)
    }

    /// Sends one frame from the tester's station to each.
    pub(super) fn test(self, pps: u64, lines: &mut dyn Offer) -> Result<FloodCount, TrialError> {
        let mut template = Template::udp(64);
        template.source = station(TESTING);
        template.destination = station(LEARNING);
        template.destination.mac = address(self.set);
        template.flows = self.flows(FlowField::DestinationMac);
        let pace = Pace::Constant(Rate::Frames(pps));
        let stream = Stream::new(template, pace, TestPortNo(TESTING), TestPortNo(LEARNING));
        let measured = lines.offer(&request(vec![stream], self.length()))?;
        match is_void(&measured) {
            Some(reason) => Err(TrialError::Impossible(reason)),
            None => Ok(FloodCount {
                flooded: measured.streams[0].misdelivered,
                lost: measured.streams[0].lost,
            }),
        }
    }
}
