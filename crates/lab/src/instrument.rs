//! The instrument: it offers frames at set times, and books what comes of each.
//!
//! What is offered are [`Stream`]s: a [`Mix`] of frames, each made after a [`Template`]; a [`Pace`]
//! that says when each is due; and the ends of the device between which they go. Each frame carries a
//! [`Signature`] of 12 bytes at its very end: which stream, which number, sent when. By it the receiver
//! knows each frame again, whatever headers a device has pushed, popped or rewritten.
//!
//! [`measure()`] does all of it between [`End`]s, whatever these are made of: packet sockets
//! ([`End::packet`]), AF_XDP, memory ([`memory`], for tests with a simulated clock), or one of
//! these with a far end that sends back ([`End::reflected`]).
//!
//! What is configured is never taken for what was done: intended and achieved rates are both recorded,
//! and a [`Refusal`] says why a measurement must not be used.
//!
//! Not here: which device, by which rules, and what a row of a report is made of.

mod arrivals;
mod calibrate;
pub(crate) mod checksum;
mod delays;
mod emitter;
mod expected;
mod heard;
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
mod shared;
mod signature;
mod source;
mod stream;
pub mod template;
mod time;
mod variation;
mod wire;
mod xdp;

pub use arrivals::{Arrival, Arrivals};
pub use calibrate::{Calibration, Floor, LoadPoint, SizeLimit, Sweep, calibrate};
pub use heard::{Found, Heard};
pub use live::{Glance, Live};
pub use measure::{Keep, Length, MeasureError, Request, Threads, measure, measure_live};
pub use outcome::{EndOutcome, Extent, Kept, LossRuns, Measurement, Rates, Refusal, StreamOutcome};
pub use pace::{Pace, Schedule};
pub use rate::{OVERHEAD_BYTES, Rate};
pub use recording::{BadRecording, Recording};
pub use reflector::Reflector;
pub use signature::Signature;
pub use source::Source;
pub use stream::{EndNo, Expectation, Stream, Verification};
pub use template::{BadTemplate, Mix, Template};
pub use time::Time;
pub use variation::pdv_ns;
pub use wire::{End, Receive, Stamps, Transmit, Way};
