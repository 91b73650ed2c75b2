//! A refused message as a value: the message, and the error in the protocol's terms, so that a
//! table can explain an empty cell.

use std::fmt;

use base::Xid;
use flow::FlowModCommand;
use openflow::{EncodeError, ErrorCode, Message, MultipartRequest, Version};
use testbed::Arrival;

/// A refused message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The position among the messages of the request.
    pub position: usize,
    /// The transaction id.
    pub xid: Xid,
    /// The name of the message.
    pub message: &'static str,
    /// The reason.
    pub reason: Reason,
}

/// The reason for a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The device answered with an error.
    Error {
        /// The error type and code.
        fault: ErrorCode,
        /// The version that defines them.
        version: Version,
        /// The arrival time.
        arrival: Arrival,
    },
    /// The version cannot express the message, so it was not sent.
    NotSent(EncodeError),
}

impl Refusal {
    /// Returns the specification's name of the error, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        match &self.reason {
            Reason::Error { fault, version, .. } => fault.name(*version),
            Reason::NotSent(_) => None,
        }
    }

    /// Returns whether the device reports a full table.
    #[must_use]
    pub fn is_table_full(&self) -> bool {
        self.name().is_some_and(|name| name == "OFPFMFC_TABLE_FULL")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Error { fault, version, .. } => {
                let words = describe_fault(*fault, *version);
                write!(f, "{}: {words}", self.message)
            }
            Reason::NotSent(error) => {
                write!(f, "{}, which was not sent: {error}", self.message)
            }
        }
    }
}

/// Returns the name and the numbers of an error.
pub(super) fn describe_fault(fault: ErrorCode, version: Version) -> String {
    match fault.name(version) {
        Some(name) => format!("{name} ({fault})"),
        None => fault.to_string(),
    }
}

/// Returns the name of a message.
pub(super) const fn message_name(message: &Message) -> &'static str {
    match message {
        Message::FlowMod(change) => match change.command {
            FlowModCommand::Add => "the addition of a rule",
            FlowModCommand::Modify | FlowModCommand::ModifyStrict => "the modification of a rule",
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => "the deletion of rules",
        },
        Message::GroupMod(_) => "a change to a group",
        Message::MeterMod(_) => "a change to a meter",
        Message::PortMod(_) => "a change to a port",
        Message::TableMod(_) => "a change to a table",
        Message::PacketOut(_) => "a packet-out",
        Message::SetConfig(_) => "a configuration",
        Message::FeaturesRequest => "the features request",
        Message::GetConfigRequest => "the configuration request",
        Message::EchoRequest(_) => "an echo request",
        Message::BarrierRequest => "a barrier",
        Message::MultipartRequest(request) => match request {
            MultipartRequest::Flow(..) => "the flow statistics request",
            MultipartRequest::Aggregate(..) => "the aggregate statistics request",
            MultipartRequest::Table => "the table statistics request",
            MultipartRequest::Port(_) => "the port statistics request",
            MultipartRequest::PortDesc(_) => "the ports request",
            MultipartRequest::Queue(_) => "the queue statistics request",
            MultipartRequest::Group(_) | MultipartRequest::GroupDesc(_) => "the groups request",
            MultipartRequest::Meter(_) | MultipartRequest::MeterConfig(_) => "the meters request",
            _ => "a multipart request",
        },
        _ => "a message",
    }
}
