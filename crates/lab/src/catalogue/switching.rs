//! RFC 2889: forwarding of a learning switch. The devices forward by themselves, without a
//! controller; three or four hosts are connected to one bridge.

pub(super) mod address_caching;
pub(super) mod broadcast;
pub(super) mod congestion;
pub(super) mod learning_rate;
pub(super) mod meshed;
mod stations;

use std::time::Duration;

use testbed::{DeviceKind, Mode, Topology};
use trafficgen::template::Party;
use trafficgen::{
    Length, Measurement, OVERHEAD_BYTES, Pace, Rate, Request, Stream, Template, TestPortNo,
};

use super::bisection::Bisection;
use super::lines::{DRAIN, Offer, fell_short, is_void, offer_well};
use crate::catalogue::prelude::*;
use crate::trial::{TrialError, TrialResult};

/// Returns true if a device can be a switch without a controller, between four hosts.
fn is_switch(device: DeviceKind, _: &Point) -> bool {
    let four = Topology::star(4).expect("there may be sixteen");
    device.modes().contains(&Mode::Legacy) && device.check_topology(&four).is_ok()
}

/// Returns a topology of one bridge between `hosts` hosts.
fn star(hosts: usize) -> Topology {
    Topology::star(hosts).expect("there are no more than four")
}

/// Returns a setup of a device that forwards by itself.
fn legacy() -> DedicatedSetup {
    DedicatedSetup {
        mode: Some(Mode::Legacy),
        ..DedicatedSetup::default()
    }
}

/// Frame sizes of RFC 2889, 4.
const SIZE: Parameter = Parameter::axis(
    "size",
    "frame size in bytes, with the checksum (FCS)",
    Values::numbers(
        &[64],
        &[64, 512, 1_518],
        &[64, 128, 256, 512, 1_024, 1_280, 1_518],
        [64, 1_518],
    ),
);

/// Rate of a virtual line, which limits the load on a virtual link as a real line would.
const LINE: Parameter = Parameter::constant(
    "line",
    "rate of each virtual line in Mbit/s, preambles and gaps included; the upper limit of the load",
    Values::numbers(&[1_000], &[1_000], &[1_000], [10, 400_000]),
);

const TRIAL_MILLIS: Parameter = Parameter::constant(
    "trial-millis",
    "duration of a trial in milliseconds (RFC 2889: 30 s)",
    Values::numbers(&[40], &[1_000], &[30_000], [10, 300_000]),
);

const WIDTH_PERCENT: Parameter = Parameter::constant(
    "width-percent",
    "final width of the search interval in per cent of its upper bound",
    Values::Numbers {
        quick: &[30],
        paper: &[5],
        rfc: &[1],
        bound: Bound { least: 1, most: 90 },
    },
);

/// Least rate of searches, in frames per second from each sending port.
const RATE_MIN: u64 = 2_000;
/// Share of the tester's highest rate that searches use: at the limit itself it falls short.
const REACHED: f64 = 0.9;

/// Returns a stream of frames of this size between the tester's stations at two hosts, numbered
/// from 0.
fn between(size: u64, pace: Pace, from: usize, to: usize) -> Stream {
    Stream::new(
        template(size, from, to),
        pace,
        TestPortNo(from),
        TestPortNo(to),
    )
}

/// Returns a frame of this size between the tester's stations at two hosts.
fn template(size: u64, from: usize, to: usize) -> Template {
    let mut template = Template::udp(u16::try_from(size).expect("the experiment's bounds say so"));
    template.source = station(from);
    template.destination = station(to);
    template
}

/// Returns the tester's station at a host.
pub(super) fn station(host: usize) -> Party {
    Party::numbered(u8::try_from(host + 1).expect("there are few hosts"))
}

fn request(streams: Vec<Stream>, length: Length) -> Request {
    let mut request = Request::new(streams, length);
    request.drain = DRAIN;
    request
}

fn trial_length(point: &Point) -> Duration {
    Duration::from_millis(point.number("trial-millis"))
}

fn width(point: &Point) -> f64 {
    point.number("width-percent") as f64 / 100.0
}

/// Returns the highest rate of each of `streams`, in frames per second: the tester's or the line's,
/// whichever is less.
fn greatest(
    point: &Point,
    lines: &mut dyn Offer,
    streams: &dyn Fn(Pace) -> Vec<Stream>,
) -> Result<u64, TrialError> {
    let flat_out = lines.offer(&request(
        streams(Pace::FlatOut),
        Length::of(Duration::from_millis(30)),
    ))?;
    let sent = flat_out.streams.iter().map(|one| one.achieved.pps());
    let alike = sent.sum::<f64>() / flat_out.streams.len() as f64 * REACHED;
    let line = Rate::Line(point.number("line") * 1_000_000);
    let line = line.frames_per_second(point.number("size") as f64);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive and far below 2^53"
    )]
    let rate = alike.min(line) as u64;
    Ok(rate.max(RATE_MIN))
}

/// Returns the highest rate of each of `streams` for which `lost` returns 0.
fn throughput(
    point: &Point,
    lines: &mut dyn Offer,
    streams: &dyn Fn(Pace) -> Vec<Stream>,
    lost: &dyn Fn(&Measurement) -> u64,
) -> Result<Bisection, TrialError> {
    let most = greatest(point, lines, streams)?;
    let length = Length::of(trial_length(point));
    Bisection::new(RATE_MIN, most, width(point)).run(|rate| {
        let pace = Pace::Constant(Rate::Frames(rate));
        let measured = offer_well(lines, &request(streams(pace), length))?;
        Ok(!fell_short(&measured) && is_void(&measured).is_none() && lost(&measured) == 0)
    })
}

/// Returns the rate on the line in Mbit/s for a rate in frames per second.
fn megabits(frames: f64, size: u64) -> f64 {
    frames * (size + u64::from(OVERHEAD_BYTES)) as f64 * 8.0 / 1e6
}

/// Reason for a search without result.
const NOTHING: &str =
    "at the least rate frames were lost, or the tester was late in three attempts";

/// Adds a note if the search ended at the limit of the tester or the line.
fn note_open(found: &Bisection, measured: &mut TrialResult) {
    if found.is_open() {
        measured.note(
            "the limit of the line or of the tester was reached; the capacity of the device may be higher"
                .to_owned(),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue::prelude::*;
    use record::Profile;
    use record::Settings;

    /// Returns the first point of the quick profile.
    pub(super) fn point(experiment: &'static Experiment) -> Point {
        let settings = Settings {
            profile: Profile::Quick,
            ..Settings::default()
        };
        settings.points(&experiment.description).unwrap().remove(0)
    }
}
