//! Frames on their way through a bridge, as the control socket tells them to whoever captures
//! them, as `comporta capture` does.
//!
//! A capture is started, read again and again, and stopped; one that is not read for
//! [`SILENCE_MAX`] ends by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// The command of the control socket that starts a capture: a bridge, a flow in the words of
/// `ovs-ofctl`, and how many bytes of each frame are wanted. It answers the capture's number.
pub const START: &str = "comporta/capture-start";

/// The command that answers a [`Reading`] as JSON: what has come since it was asked last.
pub const READ: &str = "comporta/capture-read";

/// The command that ends a capture.
pub const STOP: &str = "comporta/capture-stop";

/// A capture that is not read for so long ends.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The most bytes of a frame that can be asked for.
pub const SNAPLEN_MAX: usize = 65_535;

/// What has come since a capture was read last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The names of the bridge's ports, by number.
    pub ports: BTreeMap<String, String>,
    /// Frames that nobody was told of since the capture began, for want of room.
    pub missed: u64,
    /// Whether there is more to be read at once.
    pub more: bool,
    /// The frames, in the order in which they came.
    pub frames: Vec<Captured>,
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// When the worker took it, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The number of the port that it came in by.
    pub port: String,
    /// The frame as it came.
    pub frame: Snapped,
    /// The tables that it came to, one after the other; none where there is no controller and
    /// the bridge forwards without tables.
    pub rules: Vec<RuleTaken>,
    /// What left.
    pub exits: Vec<Exit>,
    /// Why nothing, or something that was to be done, was not.
    pub drops: Vec<String>,
}

/// A frame as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapped {
    /// How many bytes it had.
    pub length: usize,
    /// For how many frames on the wire it stands.
    pub segments: u64,
    /// Its first bytes, in Base64.
    bytes: String,
}

/// A table that a frame came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleTaken {
    /// The table.
    pub table: u8,
    /// The rule that took it; none if there was none.
    pub rule: Option<RuleName>,
}

/// What makes a rule the one it is in its table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleName {
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Its match, in the words of `ovs-ofctl`.
    pub matching: String,
}

/// A frame that left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The number of the port; `CONTROLLER` if it went to the controllers.
    pub port: String,
    /// The frame as it left.
    pub frame: Snapped,
    /// How many of the tables it had come to until then.
    pub rules: usize,
}

impl Snapped {
    /// The first bytes of a frame that had so many.
    #[must_use]
    pub fn new(bytes: &[u8], length: usize, segments: u64) -> Self {
        Self {
            length,
            segments,
            bytes: STANDARD.encode(bytes),
        }
    }

    /// Its first bytes; none if what was told is no Base64.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        STANDARD.decode(&self.bytes).unwrap_or_default()
    }
}
