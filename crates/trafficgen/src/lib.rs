//! Traffic generator and receiver: sends signed frames on schedule and counts loss, delay, order
//! and duplicates per stream.
//!
//! The offered traffic is a set of [`Stream`]s: a [`Mix`] of frames, each built from a [`Template`];
//! a [`Pace`] that gives the due time of each; and the test ports between which they travel. Each
//! frame carries a [`Signature`] of 12 bytes at its very end: stream, sequence number, time of
//! sending. The receiver identifies every frame by it, even if a device pushed, popped or
//! rewrote headers.
//!
//! [`measure()`] runs the streams between [`TestPort`]s: packet sockets ([`TestPort::packet`]), AF_XDP, memory
//! ([`memory`], for tests with simulated time), or one of these whose far end reflects
//! ([`TestPort::reflected`]).
//!
//! Intended and achieved rates are both recorded, and a [`Refusal`] gives the reason why a
//! measurement must not be used.
//!
//! Not here: the device, its rules, and the layout of a report.

mod arrivals;
mod calibrate;
pub mod checksum;
mod delays;
mod emitter;
mod expected;
mod layers;
mod live;
mod measure;
pub mod memory;
mod outcome;
mod pace;
mod packet;
mod rate;
mod receiver;
mod recording;
mod reflector;
mod sequence;
mod signature;
mod source;
mod stream;
mod stream_monitor;
mod stream_state;
pub mod template;
mod time;
mod variation;
mod wire;
mod xdp;

pub use arrivals::{Arrival, Arrivals};
pub use calibrate::{Calibration, Floor, LoadPoint, SizeLimit, Sweep, calibrate};
pub use live::{Live, LiveTotals};
pub use measure::{Keep, Length, MeasureError, Request, Threads, measure, measure_live};
pub use outcome::{
    Extent, FrameRecord, LossRuns, Measurement, Rates, Refusal, StreamOutcome, TestPortOutcome,
};
pub use pace::{Pace, Schedule};
pub use rate::{OVERHEAD_BYTES, Rate};
pub use recording::{BadRecording, Recording};
pub use reflector::Reflector;
pub use signature::Signature;
pub use source::Source;
pub use stream::{Expectation, Stream, TestPortNo, Verification};
pub use stream_monitor::{StreamCounts, StreamMonitor};
pub use template::{BadTemplate, Mix, Template};
pub use time::Time;
pub use variation::pdv_ns;
pub use wire::{Receive, SendMethod, Stamps, TestPort, Transmit};
