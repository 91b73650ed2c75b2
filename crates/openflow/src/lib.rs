//! The OpenFlow protocol: encoding and decoding of messages in all versions, and the channel
//! between a switch and a controller as a state machine.
//!
//! Sans-I/O: this crate opens no socket, reads no clock and stores no rules. `flow` defines the
//! meaning of messages; `pipeline` and `switch` execute them.
//!
//! Layers, from the outside in: [`Channel`] splits the stream into messages and supervises the
//! connection; [`Message`] selects the body by its number (`kinds`); each body has a file under
//! `message`; `oxm`, `match10`, `match11`, `oxs`, `action` and `instruction` are parts that bodies
//! share; `codec` reads and writes bytes. `checkpoint` stores tables as messages. `error_codes` has
//! the numbers of errors.

mod action;
mod channel;
mod checkpoint;
mod codec;
#[cfg(test)]
mod conformance;
pub mod continuation;
mod dialect;
mod duration;
mod error_codes;
mod experimenter;
mod fidelity;
mod header;
mod instruction;
mod kinds;
mod match10;
mod match11;
mod message;
mod message_part;
mod oxm;
mod oxm_text;
mod oxs;
mod port_no;
mod print;
mod version;

pub use channel::{
    BoxedMessage, Channel, ChannelEvent, ChannelOptions, ChannelSide, DownReason, Excerpt,
    ReceivedMessage,
};
pub use checkpoint::{
    Checkpoint, CheckpointAddress, CheckpointBridge, CheckpointCounts, CheckpointError,
    CheckpointWriter, RecordProblem,
};
pub use codec::{EncodeError, Malformed};
pub use dialect::{Dialect, FlowFormat, NiciraSetting, PacketInFormat};
pub use error_codes::ErrorCode;
pub use header::{BadMessageLength, SplitStream, split_message};
pub use message::Message;
pub use message::asynchronous::{AsyncChange, AsyncConfig, AsyncMasks, MaskChange};
pub use message::bundle::{BundleAdd, BundleControl, BundleFlags, BundleId, BundleStep, WallTime};
pub use message::conntrack::{ConntrackFlush, ConntrackTuple};
pub use message::controller_status::{ControlChannelStatus, ControllerReason, ControllerStatus};
pub use message::error::ErrorMessage;
pub use message::features::FeaturesReply;
pub use message::hello::Hello;
pub use message::multipart::{
    BundleFeatures, BundleFeaturesRequest, BundleTimes, MultipartReply, MultipartRequest,
    QueueStatsRequest, TableFeatures, TableFeaturesCommand,
};
pub use message::queue_config::{QueueConfig, QueueConfigReply, QueueDesc};
pub use message::request_forward::{ForwardedRequest, RequestForward};
pub use message::role::{RoleReason, RoleReply, RoleStatus};
pub use message_part::{
    MessagePart, encode_actions, encode_instructions, encode_match, print_part,
};
pub use oxm_text::{OxmTextError, parse_oxm_text};
pub use print::{Detail, describe_frame, print, print_named};
pub use version::{ParseVersionError, Version, VersionSet};
