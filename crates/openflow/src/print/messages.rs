//! The table of printers: for each message type its printer, its name, and the body lengths that
//! Open vSwitch accepts before it decodes the message.

use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use super::{
    bundle, config, controllers, error, flow, forward, group, hello, meter, monitor, multipart,
    packet, packet_nicira, port, queue, table, tlv_table,
};
use crate::codec::Reader;
use crate::kinds::{MessageKind, TypeNumber};
use crate::message::port::{LENGTH_V10, LENGTH_V11};
use crate::version::Version;

/// Writes a message's body.
pub(super) type PrintBody =
    fn(&mut Reader<'_>, &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName>;

/// The accepted length of a body in addition to its minimum.
#[derive(Clone, Copy, Debug)]
pub(super) enum BodyLength {
    /// No additional bytes.
    Exactly,
    /// Any multiple of this number of bytes.
    More(usize),
    /// Ports, in versions that have them here.
    Ports,
}

impl BodyLength {
    /// Returns true if a body may have this length; `least` is its minimum.
    pub(super) const fn takes(self, least: usize, length: usize, version: Version) -> bool {
        let multiple = match self {
            Self::Exactly => return length == least,
            Self::More(multiple) => multiple,
            Self::Ports => match version {
                Version::V10 => LENGTH_V10,
                Version::V11 | Version::V12 => LENGTH_V11,
                Version::V13 | Version::V14 | Version::V15 => return length == least,
            },
        };
        length >= least && (length - least).is_multiple_of(multiple)
    }
}

/// The printer of a message type.
pub(super) struct MessagePrinter {
    kind: MessageKind,
    own: &'static str,
    extension: &'static str,
    pub(super) body: BodyLength,
    pub(super) print: PrintBody,
}

impl MessagePrinter {
    /// The minimum length of a body. It is less than the table's where Open vSwitch leaves the
    /// check to the decoder of the match.
    pub(super) fn body_min(&self, table_min: usize, version: Version) -> usize {
        match (self.kind, version) {
            // Here the decoder of the table description checks the length.
            (MessageKind::TableStatus, _) => 8,
            (MessageKind::PacketIn, Version::V12) => 8,
            (MessageKind::PacketIn, Version::V13 | Version::V14 | Version::V15) => 16,
            _ => table_min,
        }
    }

    /// The name of the message with this number.
    pub(super) fn name(&self, number: TypeNumber) -> String {
        match number {
            TypeNumber::Standard(_) => format!("OFPT_{}", self.own),
            TypeNumber::Nicira(_) => format!("NXT_{}", self.extension),
            TypeNumber::Onf(_) => format!("ONFT_{}", self.extension),
        }
    }
}

/// The row of a message type.
pub(super) fn printer(kind: MessageKind) -> &'static MessagePrinter {
    let found = PRINTERS.iter().find(|row| row.kind == kind);
    found.expect("every kind has its row")
}

const fn row(
    kind: MessageKind,
    own: &'static str,
    extension: &'static str,
    body: BodyLength,
    print: PrintBody,
) -> MessagePrinter {
    MessagePrinter {
        kind,
        own,
        extension,
        body,
        print,
    }
}

/// Prints a message that consists of its name only.
fn print_nothing(_: &mut Reader<'_>, _: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    Ok(())
}

#[rustfmt::skip]
static PRINTERS: &[MessagePrinter] = { use {MessageKind::*, BodyLength::*}; &[
    //  kind               own                     extension's          body      printer
    row(Hello,              "HELLO",                    "",                     More(1), hello::print),
    row(Error,              "ERROR",                    "",                     More(1), error::print),
    row(EchoRequest,        "ECHO_REQUEST",             "",                     More(1), hello::print_echo),
    row(EchoReply,          "ECHO_REPLY",               "",                     More(1), hello::print_echo),
    row(FeaturesRequest,    "FEATURES_REQUEST",         "",                     Exactly, print_nothing),
    row(FeaturesReply,      "FEATURES_REPLY",           "",                     Ports,   port::print_features),
    row(GetConfigRequest,   "GET_CONFIG_REQUEST",       "",                     Exactly, print_nothing),
    row(GetConfigReply,     "GET_CONFIG_REPLY",         "",                     Exactly, config::print),
    row(SetConfig,          "SET_CONFIG",               "",                     Exactly, config::print_set),
    row(PacketIn,           "PACKET_IN",                "",                     More(1), packet::print_in),
    row(FlowRemoved,        "FLOW_REMOVED",             "",                     More(8), flow::print_removed),
    row(NxFlowRemoved,      "",                         "FLOW_REMOVED",         More(8), flow::print_removed_nicira),
    row(PortStatus,         "PORT_STATUS",              "",                     More(8), port::print_status),
    row(PacketOut,          "PACKET_OUT",               "",                     More(1), packet::print_out),
    row(FlowMod,            "FLOW_MOD",                 "",                     More(8), flow::print_mod),
    row(NxFlowMod,          "",                         "FLOW_MOD",             More(8), flow::print_mod_nicira),
    row(GroupMod,           "GROUP_MOD",                "GROUP_MOD",            More(8), group::print_mod),
    row(PortMod,            "PORT_MOD",                 "",                     More(8), port::print_mod),
    row(TableMod,           "TABLE_MOD",                "",                     More(8), table::print_mod),
    row(MeterMod,           "METER_MOD",                "",                     More(8), meter::print_mod),
    row(MultipartRequest,   "",                         "",                     More(1), multipart::print_request),
    row(MultipartReply,     "",                         "",                     More(1), multipart::print_reply),
    row(BarrierRequest,     "BARRIER_REQUEST",          "",                     Exactly, print_nothing),
    row(BarrierReply,       "BARRIER_REPLY",            "",                     Exactly, print_nothing),
    row(QueueConfigRequest, "QUEUE_GET_CONFIG_REQUEST", "",                     Exactly, queue::print_config_request),
    row(QueueConfigReply,   "QUEUE_GET_CONFIG_REPLY",   "",                     More(8), queue::print_config_reply),
    row(RoleRequest,        "ROLE_REQUEST",             "ROLE_REQUEST",         Exactly, config::print_role_request),
    row(RoleReply,          "ROLE_REPLY",               "ROLE_REPLY",           Exactly, config::print_role_reply),
    row(RoleStatus,         "ROLE_STATUS",              "ROLE_STATUS",          More(8), config::print_role_status),
    row(GetAsyncRequest,    "GET_ASYNC_REQUEST",        "",                     Exactly, print_nothing),
    row(GetAsyncReply,      "GET_ASYNC_REPLY",          "",                     More(8), config::print_async_reply),
    row(SetAsync,           "SET_ASYNC",                "SET_ASYNC_CONFIG",     More(8), config::print_async),
    row(FlowFormat,         "",                         "SET_FLOW_FORMAT",      Exactly, config::print_flow_format),
    row(TableIds,           "",                         "FLOW_MOD_TABLE_ID",    Exactly, config::print_table_ids),
    row(PacketInFormat,     "",                         "SET_PACKET_IN_FORMAT", Exactly, config::print_packet_in_format),
    row(NxPacketIn,         "",                         "PACKET_IN",            More(1), packet_nicira::print),
    row(NxPacketIn2,        "",                         "PACKET_IN2",           More(8), packet_nicira::print_second),
    row(Resume,             "",                         "RESUME",               More(8), packet_nicira::print_second),
    row(TlvTableMod,        "",                         "TLV_TABLE_MOD",        More(8), tlv_table::print_mod),
    row(TlvTableRequest,    "",                         "TLV_TABLE_REQUEST",    Exactly, print_nothing),
    row(TlvTableReply,      "",                         "TLV_TABLE_REPLY",      More(8), tlv_table::print_reply),
    row(FlushZone,          "",                         "CT_FLUSH_ZONE",        Exactly, config::print_flush_zone),
    row(FlushConnections,   "",                         "CT_FLUSH",             More(8), config::print_flush),
    row(ControllerId,       "",                         "SET_CONTROLLER_ID",    Exactly, config::print_controller_id),
    row(SetAsyncProperties, "",                         "SET_ASYNC_CONFIG2",    More(8), config::print_async_properties),
    row(MonitorCancel,      "",                         "FLOW_MONITOR_CANCEL",  Exactly, monitor::print_cancel),
    row(MonitorPaused,      "",                         "FLOW_MONITOR_PAUSED",  Exactly, print_nothing),
    row(MonitorResumed,     "",                         "FLOW_MONITOR_RESUMED", Exactly, print_nothing),
    row(TableStatus,        "TABLE_STATUS",             "",                     More(8), table::print_status),
    row(RequestForward,     "REQUESTFORWARD",           "REQUESTFORWARD",       More(8), forward::print),
    row(ControllerStatus,   "CONTROLLER_STATUS",        "",                     More(8), controllers::print_status),
    row(BundleControl,      "BUNDLE_CONTROL",           "BUNDLE_CONTROL",       More(8), bundle::print_control),
    row(BundleAdd,          "BUNDLE_ADD_MESSAGE",       "BUNDLE_ADD_MESSAGE",   More(1), bundle::print_add),
]};
