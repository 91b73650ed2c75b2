//! Many stations at one port: they are made known, and then frames for them are sent from another
//! port. What comes out at the third was flooded: its station was not known.

use trafficgen::template::{FlowField, Flows};
use trafficgen::{Length, Pace, Rate, Stream, Template, TestPortNo};

use super::{request, station};
use crate::catalogue::lines::{Offer, fell_short, is_void};
use crate::trial::TrialError;

/// Hosts by their numbers from 0: where the stations are, where frames for them are sent, and
/// where nothing should come out.
const LEARNING: usize = 0;
const TESTING: usize = 1;
pub(super) const HOSTS: usize = 3;
/// The host whose own station has to be known before.
pub(super) const KNOWN: std::ops::Range<usize> = TESTING..TESTING + 1;

/// Sets of stations that have nothing in common: a byte of their addresses tells them apart.
pub(super) const SETS: u64 = 200;

/// Some stations, by the numbers of their addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stations {
    /// Which set they are of.
    pub(super) set: u64,
    /// How many.
    pub(super) count: u64,
}

/// What came of frames for stations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tested {
    /// Frames that came out where nothing should.
    pub(super) flooded: u64,
    /// Frames that came out nowhere.
    pub(super) lost: u64,
}

/// What came of frames of stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Introduced {
    /// Frames that came out nowhere.
    pub(super) lost: u64,
    /// Whether they came more slowly than they should.
    pub(super) is_slow: bool,
}

/// The address of a set's first station.
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

    /// Each sends a frame to the tester's station, at this rate.
    pub(super) fn introduce(
        self,
        pps: u64,
        lines: &mut dyn Offer,
    ) -> Result<Introduced, TrialError> {
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
            None => Ok(Introduced {
                lost: measured.streams[0].lost,
                is_slow: fell_short(&measured),
            }),
        }
    }

    /// Each is sent a frame by the tester's station; again and slower where some come out nowhere,
    /// three times in all. It teaches a switch nothing of them.
    pub(super) fn test_until_answered(
        self,
        pps: u64,
        lines: &mut dyn Offer,
    ) -> Result<Tested, TrialError> {
        let mut tested = self.test(pps, lines)?;
        for slower in [pps / 2, pps / 4] {
            if tested.lost == 0 {
                break;
            }
            tested = self.test(slower.max(1), lines)?;
        }
        Ok(tested)
    }

    /// Each is sent a frame by the tester's station.
    pub(super) fn test(self, pps: u64, lines: &mut dyn Offer) -> Result<Tested, TrialError> {
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
            None => Ok(Tested {
                flooded: measured.streams[0].misdelivered,
                lost: measured.streams[0].lost,
            }),
        }
    }
}
