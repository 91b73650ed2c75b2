//! Packet capture over the control socket: the commands and the types of their replies, as
//! `comporta capture` uses them.
//!
//! A client starts a capture, reads it repeatedly, and stops it; a capture that is not read for
//! [`SILENCE_MAX`] ends by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// The command that starts a capture. Arguments: a bridge, a flow in the syntax of `ovs-ofctl`, and
/// the number of bytes of each frame to capture. The reply is the number of the capture.
pub const START: &str = "comporta/capture-start";

/// The command that returns a [`CaptureReading`] as JSON: the frames since the last read.
pub const READ: &str = "comporta/capture-read";

/// The command that ends a capture.
pub const STOP: &str = "comporta/capture-stop";

/// The time after which a capture that is not read ends.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The maximum number of bytes of a frame to capture.
pub const SNAPLEN_MAX: usize = 65_535;

/// The frames since the last read of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureReading {
    /// The names of the bridge's ports, by number.
    pub ports: BTreeMap<String, String>,
    /// Frames since the start of the capture that were not reported, for lack of space.
    pub missed: u64,
    /// True if the next read returns more frames immediately.
    pub more: bool,
    /// The frames, in order of arrival.
    pub frames: Vec<CapturedFrame>,
}

/// A captured frame with its path through the bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedFrame {
    /// The time at which a worker received it, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The number of the ingress port.
    pub port: String,
    /// The frame as received.
    pub frame: TruncatedFrame,
    /// The tables that processed it, in order; none if there is no controller and the bridge
    /// forwards without tables.
    pub rules: Vec<TableMatch>,
    /// The copies that left.
    pub exits: Vec<Exit>,
    /// The reasons why the frame was dropped, or an action had no effect.
    pub drops: Vec<String>,
}

/// A truncated copy of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruncatedFrame {
    /// The original length in bytes.
    pub length: usize,
    /// The number of frames on the wire that it represents before segmentation.
    pub segments: u64,
    /// Its first bytes, in Base64.
    bytes: String,
}

/// A table that processed a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableMatch {
    /// The table.
    pub table: u8,
    /// The rule that matched; none on a miss.
    pub rule: Option<RuleName>,
}

/// The attributes that identify a rule in its table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleName {
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Its match, in the syntax of `ovs-ofctl`.
    pub matching: String,
}

/// A copy of a frame that left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The number of the egress port; `CONTROLLER` for a packet-in.
    pub port: String,
    /// The frame as sent.
    pub frame: TruncatedFrame,
    /// The number of tables that had processed the frame at that point.
    pub rules: usize,
}

impl TruncatedFrame {
    /// Returns the copy of a frame of `length` bytes that begins with `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8], length: usize, segments: u64) -> Self {
        Self {
            length,
            segments,
            bytes: STANDARD.encode(bytes),
        }
    }

    /// Returns its first bytes; none if the reply was not valid Base64.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        STANDARD.decode(&self.bytes).unwrap_or_default()
    }
}
