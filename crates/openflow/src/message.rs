//! Messages and the selection of their bodies by number.
//!
//! Each body has a file below, with all versions side by side. The `flow` crate defines the meaning
//! of messages; this module encodes and decodes them.

pub(crate) mod asynchronous;
pub(crate) mod bundle;
pub(crate) mod config;
pub(crate) mod conntrack;
pub(crate) mod controller_status;
pub(crate) mod error;
pub(crate) mod features;
pub(crate) mod flow_mod;
pub(crate) mod flow_removed;
pub(crate) mod group_mod;
pub(crate) mod hello;
pub(crate) mod meter_mod;
pub(crate) mod multipart;
pub(crate) mod nicira_setting;
pub(crate) mod packet_in;
mod packet_in_nicira;
pub(crate) mod packet_out;
pub(crate) mod port;
pub(crate) mod port_mod;
pub(crate) mod port_status;
pub(crate) mod property;
pub(crate) mod queue_config;
pub(crate) mod request_forward;
pub(crate) mod role;
pub(crate) mod selection;
pub(crate) mod table_mod;
pub(crate) mod tlv_table;

use base::{PortNo, Xid};
use flow::{
    FlowMod, FlowRemoved, GroupMod, MeterMod, MonitorId, PacketIn, PacketOut, PortMod, PortStatus,
    Refusal, Resume, RoleRequest, SwitchConfig, TableMod, TableStatus, TlvTable, TlvTableMod,
};

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::{Dialect, NiciraSetting};
use crate::header::Header;
use crate::kinds::{self, MessageKind, MessageKindRow, MessageSender, TypeNumber};
use asynchronous::{AsyncChange, AsyncConfig};
use bundle::{BundleAdd, BundleControl};
use conntrack::ConntrackFlush;
use controller_status::ControllerStatus;
use error::ErrorMessage;
use features::FeaturesReply;
use hello::Hello;
use multipart::{MultipartReply, MultipartRequest};
use queue_config::QueueConfigReply;
use request_forward::RequestForward;
use role::{RoleReply, RoleStatus};

/// A message of any version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The versions that the sender supports.
    Hello(Hello),
    /// The reason why a request failed.
    Error(ErrorMessage),
    /// A liveness request with arbitrary data.
    EchoRequest(Vec<u8>),
    /// The reply with the same data.
    EchoReply(Vec<u8>),
    /// A Nicira setting of the connection.
    NiciraSetting(NiciraSetting),
    /// Requests the features of the switch.
    FeaturesRequest,
    /// The features of the switch.
    FeaturesReply(FeaturesReply),
    /// Requests the configuration of the switch.
    GetConfigRequest,
    /// The configuration of the switch.
    GetConfigReply(SwitchConfig),
    /// Sets the configuration of the switch.
    SetConfig(SwitchConfig),
    /// A packet for the controller.
    PacketIn(PacketIn),
    /// Resumes a paused packet (Nicira's).
    Resume(Resume),
    /// Sets the id of the controller, to which rules can send packets (Nicira's).
    ControllerId(u16),
    /// Changes the TLV map of tunnel options (Nicira's).
    TlvTableMod(TlvTableMod),
    /// Requests the TLV map (Nicira's).
    TlvTableRequest,
    /// The TLV map of tunnel options (Nicira's).
    TlvTableReply(TlvTable),
    /// Flushes the tracked connections of a zone (Nicira's).
    FlushZone(u16),
    /// Flushes tracked connections (Nicira's).
    FlushConnections(ConntrackFlush),
    /// The removal of a rule.
    FlowRemoved(FlowRemoved),
    /// A change of a port.
    PortStatus(PortStatus),
    /// A packet to send.
    PacketOut(PacketOut),
    /// Changes the flow tables.
    FlowMod(FlowMod),
    /// Changes the group table (1.1 and later).
    GroupMod(GroupMod),
    /// Changes the configuration of a port.
    PortMod(PortMod),
    /// Changes the configuration of a table (1.1 and later).
    TableMod(TableMod),
    /// Changes the meter table (1.3 and later).
    MeterMod(MeterMod),
    /// Requests statistics or descriptions.
    MultipartRequest(MultipartRequest),
    /// A part of a multipart request except the last: further messages with the same transaction id
    /// continue it.
    MultipartFragment(MultipartRequest),
    /// The reply to a multipart request, or a part of it.
    MultipartReply {
        /// The contents.
        reply: MultipartReply,
        /// Set if another message continues the reply. The encoder splits a long reply by itself.
        more: bool,
    },
    /// Requests a reply after all earlier messages took effect.
    BarrierRequest,
    /// All messages before the barrier request took effect.
    BarrierReply,
    /// Requests the queues of a port.
    QueueConfigRequest(PortNo),
    /// The queues of a port.
    QueueConfigReply(QueueConfigReply),
    /// Requests a role for the controller.
    RoleRequest(RoleRequest),
    /// The role of the controller.
    RoleReply(RoleReply),
    /// A change of the controller's role without its request (1.4 and later).
    RoleStatus(RoleStatus),
    /// Requests the asynchronous configuration (1.3 and later).
    GetAsyncRequest,
    /// The asynchronous configuration of the controller (1.3 and later).
    GetAsyncReply(AsyncConfig),
    /// Sets the asynchronous configuration of the controller.
    SetAsync(AsyncChange),
    /// A step of a bundle, as a request or as a reply (1.3 and later).
    BundleControl(BundleControl),
    /// Adds a message to a bundle (1.3 and later).
    BundleAdd(BundleAdd),
    /// A change of a table's state (1.4 and later).
    TableStatus(TableStatus),
    /// A change of a controller's state (1.5).
    ControllerStatus(ControllerStatus),
    /// A completed request of another controller (1.4 and later).
    RequestForward(RequestForward),
    /// Removes a flow monitor (before 1.4).
    MonitorCancel(MonitorId),
    /// Flow monitor updates pause, since the controller does not read (before 1.4).
    MonitorPaused,
    /// Flow monitor updates resume (before 1.4).
    MonitorResumed,
}

/// The encoding of a message body in every version.
pub(crate) trait WireFormat: Sized {
    /// Decodes all of `r` in the layout of its version.
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Appends the body, or names the part that the version cannot express.
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError>;
}

impl Message {
    /// A complete multipart reply.
    #[must_use]
    pub const fn reply(reply: MultipartReply) -> Self {
        Self::MultipartReply { reply, more: false }
    }

    /// Decodes one whole message, including the header.
    ///
    /// # Errors
    /// The message violates the protocol or requests an unsupported feature. The refusal is the
    /// error to answer with.
    pub fn decode(bytes: &[u8], dialect: impl Into<Dialect>) -> Result<(Xid, Self), Malformed> {
        let mut message = Self::BarrierReply;
        let (xid, _) = message.decode_into(bytes, dialect.into())?;
        Ok((xid, message))
    }

    /// Like [`Self::decode`], but overwrites this message, and also returns the permitted sender. A
    /// flow-mod reuses the memory of the previous one, since a controller may send a million in a
    /// row. After an error the contents of this message are unspecified.
    pub(crate) fn decode_into(
        &mut self,
        bytes: &[u8],
        dialect: Dialect,
    ) -> Result<(Xid, MessageSender), Malformed> {
        let mut r = Reader::new(bytes, dialect);
        let header = Header::decode(&mut r)?;
        let start = |refusal| Malformed { refusal, at: 0 };
        if usize::from(header.length) != bytes.len() {
            return Err(start(Refusal::RequestBadLength));
        }
        // A hello precedes the negotiation, so its version is not checked.
        if header.kind == hello::NUMBER {
            *self = Self::Hello(Hello::decode(header.version, &mut r));
            return Ok((header.xid, MessageSender::Either));
        }
        if header.version != dialect.version.number() {
            return Err(start(Refusal::RequestBadVersion));
        }
        let row = message_row(&header, &mut r)?;
        if r.len() < row.body_min {
            return Err(start(Refusal::RequestBadLength));
        }
        match (row.kind, &mut *self) {
            (MessageKind::FlowMod, Self::FlowMod(read)) => flow_mod::decode_into(read, &mut r)?,
            (MessageKind::BundleAdd, _) => {
                *self = Self::BundleAdd(bundle::decode_add(header.xid, &mut r)?);
            }
            (kind, _) => *self = decode_body(kind, &mut r)?,
        }
        r.end()?;
        Ok((header.xid, row.sender))
    }

    /// Appends the message to `out`, including the header. A reply that exceeds one message becomes
    /// several.
    ///
    /// # Errors
    /// The version cannot express the message, or it exceeds the maximum length. Then nothing is
    /// appended.
    pub fn encode(
        &self,
        xid: Xid,
        dialect: impl Into<Dialect>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let (dialect, start) = (dialect.into(), out.len());
        let done = match self {
            Self::MultipartReply { reply, more } => {
                multipart::encode_reply(reply, *more, xid, dialect, out)
            }
            Self::Hello(hello) => hello.encode(xid, out),
            Self::BundleAdd(add) => bundle::encode_add(add, xid, dialect, out),
            Self::RequestForward(forward) => request_forward::encode(forward, xid, dialect, out),
            _ => {
                let kind = self.kind(dialect);
                encode_framed(kind, xid, dialect, out, |w| encode_body(self, w))
            }
        };
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    /// The kind of body that the message has in `dialect`.
    fn kind(&self, dialect: Dialect) -> MessageKind {
        match self {
            Self::Hello(_) => MessageKind::Hello,
            Self::Error(_) => MessageKind::Error,
            Self::EchoRequest(_) => MessageKind::EchoRequest,
            Self::EchoReply(_) => MessageKind::EchoReply,
            Self::NiciraSetting(extension) => nicira_setting::kind(*extension),
            Self::FeaturesRequest => MessageKind::FeaturesRequest,
            Self::FeaturesReply(_) => MessageKind::FeaturesReply,
            Self::GetConfigRequest => MessageKind::GetConfigRequest,
            Self::GetConfigReply(_) => MessageKind::GetConfigReply,
            Self::SetConfig(_) => MessageKind::SetConfig,
            Self::PacketIn(_) => packet_in::kind(dialect),
            Self::Resume(_) => MessageKind::Resume,
            Self::ControllerId(_) => MessageKind::ControllerId,
            Self::TlvTableMod(_) => MessageKind::TlvTableMod,
            Self::TlvTableRequest => MessageKind::TlvTableRequest,
            Self::TlvTableReply(_) => MessageKind::TlvTableReply,
            Self::FlushZone(_) => MessageKind::FlushZone,
            Self::FlushConnections(_) => MessageKind::FlushConnections,
            Self::FlowRemoved(_) => flow_removed::kind(dialect),
            Self::PortStatus(_) => MessageKind::PortStatus,
            Self::PacketOut(_) => MessageKind::PacketOut,
            Self::FlowMod(flow_mod) => flow_mod::kind(flow_mod, dialect),
            Self::GroupMod(_) => MessageKind::GroupMod,
            Self::PortMod(_) => MessageKind::PortMod,
            Self::TableMod(_) => MessageKind::TableMod,
            Self::MeterMod(_) => MessageKind::MeterMod,
            Self::MultipartRequest(_) | Self::MultipartFragment(_) => MessageKind::MultipartRequest,
            Self::MultipartReply { .. } => MessageKind::MultipartReply,
            Self::BarrierRequest => MessageKind::BarrierRequest,
            Self::BarrierReply => MessageKind::BarrierReply,
            Self::QueueConfigRequest(_) => MessageKind::QueueConfigRequest,
            Self::QueueConfigReply(_) => MessageKind::QueueConfigReply,
            Self::RoleRequest(_) => MessageKind::RoleRequest,
            Self::RoleReply(_) => MessageKind::RoleReply,
            Self::RoleStatus(_) => MessageKind::RoleStatus,
            Self::GetAsyncRequest => MessageKind::GetAsyncRequest,
            Self::GetAsyncReply(_) => MessageKind::GetAsyncReply,
            Self::SetAsync(change) => asynchronous::kind(change, dialect.version),
            Self::TableStatus(_) => MessageKind::TableStatus,
            Self::ControllerStatus(_) => MessageKind::ControllerStatus,
            Self::RequestForward(_) => MessageKind::RequestForward,
            Self::BundleControl(_) => MessageKind::BundleControl,
            Self::BundleAdd(_) => MessageKind::BundleAdd,
            Self::MonitorCancel(_) => MessageKind::MonitorCancel,
            Self::MonitorPaused => MessageKind::MonitorPaused,
            Self::MonitorResumed => MessageKind::MonitorResumed,
        }
    }
}

impl From<MultipartReply> for Message {
    fn from(reply: MultipartReply) -> Self {
        Self::reply(reply)
    }
}

/// The row of a message with a decoded header. Advances `r` to the start of the body.
pub(crate) fn message_row(
    header: &Header,
    r: &mut Reader<'_>,
) -> Result<&'static MessageKindRow, Malformed> {
    let (version, at) = (r.version(), 0);
    let number = u16::from(header.kind);
    if number != kinds::EXPERIMENTER_MESSAGE {
        return MessageKindRow::by_number(TypeNumber::Standard(number), version).ok_or(Malformed {
            refusal: Refusal::RequestBadType,
            at,
        });
    }
    let experimenter = r.u32()?;
    if TypeNumber::of(experimenter, 0).is_none() {
        let refusal = Refusal::RequestBadExperimenter;
        return Err(Malformed { refusal, at });
    }
    let number = TypeNumber::of(experimenter, r.u32()?);
    let row = number.and_then(|number| MessageKindRow::by_number(number, version));
    row.ok_or(Malformed {
        refusal: Refusal::RequestBadExperimenterType,
        at,
    })
}

/// Decodes the body of a message.
fn decode_body(kind: MessageKind, r: &mut Reader<'_>) -> Result<Message, Malformed> {
    Ok(match kind {
        MessageKind::Hello => Message::Hello(Hello::decode(r.version().number(), r)),
        MessageKind::Error => Message::Error(WireFormat::decode(r)?),
        MessageKind::EchoRequest => Message::EchoRequest(r.rest().to_vec()),
        MessageKind::EchoReply => Message::EchoReply(r.rest().to_vec()),
        MessageKind::FeaturesRequest => Message::FeaturesRequest,
        MessageKind::FeaturesReply => Message::FeaturesReply(WireFormat::decode(r)?),
        MessageKind::GetConfigRequest => Message::GetConfigRequest,
        MessageKind::GetConfigReply => Message::GetConfigReply(config::decode_reply(r)?),
        MessageKind::SetConfig => Message::SetConfig(config::decode_set(r)?),
        MessageKind::PacketIn => Message::PacketIn(packet_in::decode(r)?),
        MessageKind::NxPacketIn => Message::PacketIn(packet_in_nicira::decode(r)?),
        MessageKind::NxPacketIn2 => Message::PacketIn(packet_in_nicira::decode_second(r)?),
        MessageKind::Resume => Message::Resume(WireFormat::decode(r)?),
        MessageKind::ControllerId => {
            Message::ControllerId(nicira_setting::decode_controller_id(r)?)
        }
        MessageKind::TlvTableMod => Message::TlvTableMod(WireFormat::decode(r)?),
        MessageKind::TlvTableRequest => Message::TlvTableRequest,
        MessageKind::TlvTableReply => Message::TlvTableReply(WireFormat::decode(r)?),
        MessageKind::FlushZone => Message::FlushZone(conntrack::decode_zone(r)?),
        MessageKind::FlushConnections => Message::FlushConnections(WireFormat::decode(r)?),
        MessageKind::FlowRemoved => Message::FlowRemoved(flow_removed::decode(r)?),
        MessageKind::NxFlowRemoved => Message::FlowRemoved(flow_removed::decode_nicira(r)?),
        MessageKind::PortStatus => Message::PortStatus(WireFormat::decode(r)?),
        MessageKind::PacketOut => Message::PacketOut(WireFormat::decode(r)?),
        MessageKind::FlowMod => Message::FlowMod(flow_mod::decode(r)?),
        MessageKind::NxFlowMod => Message::FlowMod(flow_mod::decode_nicira(r)?),
        MessageKind::GroupMod => Message::GroupMod(WireFormat::decode(r)?),
        MessageKind::PortMod => Message::PortMod(WireFormat::decode(r)?),
        MessageKind::TableMod => Message::TableMod(WireFormat::decode(r)?),
        MessageKind::MeterMod => Message::MeterMod(WireFormat::decode(r)?),
        MessageKind::MultipartRequest => MultipartRequest::decode_message(r)?,
        MessageKind::MultipartReply => MultipartReply::decode_message(r)?,
        MessageKind::BarrierRequest => Message::BarrierRequest,
        MessageKind::BarrierReply => Message::BarrierReply,
        MessageKind::QueueConfigRequest => {
            Message::QueueConfigRequest(queue_config::decode_request(r)?)
        }
        MessageKind::QueueConfigReply => Message::QueueConfigReply(WireFormat::decode(r)?),
        MessageKind::RoleRequest => Message::RoleRequest(WireFormat::decode(r)?),
        MessageKind::RoleReply => Message::RoleReply(WireFormat::decode(r)?),
        MessageKind::RoleStatus => Message::RoleStatus(WireFormat::decode(r)?),
        MessageKind::GetAsyncRequest => Message::GetAsyncRequest,
        MessageKind::GetAsyncReply => Message::GetAsyncReply(WireFormat::decode(r)?),
        MessageKind::SetAsync => Message::SetAsync(WireFormat::decode(r)?),
        MessageKind::SetAsyncProperties => Message::SetAsync(asynchronous::decode_properties(r)?),
        MessageKind::TableStatus => Message::TableStatus(WireFormat::decode(r)?),
        MessageKind::ControllerStatus => Message::ControllerStatus(WireFormat::decode(r)?),
        MessageKind::RequestForward => Message::RequestForward(request_forward::decode(r)?),
        MessageKind::BundleControl => Message::BundleControl(WireFormat::decode(r)?),
        MessageKind::BundleAdd => unreachable!("the caller decodes it, with the transaction id"),
        MessageKind::MonitorCancel => Message::MonitorCancel(MonitorId(r.u32()?)),
        MessageKind::MonitorPaused => Message::MonitorPaused,
        MessageKind::MonitorResumed => Message::MonitorResumed,
        MessageKind::FlowFormat | MessageKind::TableIds | MessageKind::PacketInFormat => {
            Message::NiciraSetting(nicira_setting::decode(kind, r)?)
        }
    })
}

/// Appends the body of a message.
fn encode_body(message: &Message, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match message {
        Message::FeaturesRequest
        | Message::GetConfigRequest
        | Message::BarrierRequest
        | Message::BarrierReply
        | Message::GetAsyncRequest
        | Message::TlvTableRequest
        | Message::MonitorPaused
        | Message::MonitorResumed => {}
        Message::MonitorCancel(monitor) => w.u32(monitor.0),
        Message::EchoRequest(data) | Message::EchoReply(data) => w.bytes(data),
        Message::Error(body) => body.encode(w)?,
        Message::NiciraSetting(body) => nicira_setting::encode(*body, w),
        Message::FeaturesReply(body) => body.encode(w)?,
        Message::GetConfigReply(body) | Message::SetConfig(body) => config::encode(body, w),
        Message::PacketIn(body) => packet_in::encode(body, w)?,
        Message::Resume(body) => body.encode(w)?,
        Message::ControllerId(id) => {
            w.zeros(6);
            w.u16(*id);
        }
        Message::TlvTableMod(body) => body.encode(w)?,
        Message::TlvTableReply(body) => body.encode(w)?,
        Message::FlushZone(zone) => conntrack::encode_zone(*zone, w),
        Message::FlushConnections(body) => body.encode(w)?,
        Message::FlowRemoved(body) => flow_removed::encode(body, w)?,
        Message::PortStatus(body) => body.encode(w)?,
        Message::PacketOut(body) => body.encode(w)?,
        Message::FlowMod(body) => flow_mod::encode(body, w)?,
        Message::GroupMod(body) => body.encode(w)?,
        Message::PortMod(body) => body.encode(w)?,
        Message::TableMod(body) => body.encode(w)?,
        Message::MeterMod(body) => body.encode(w)?,
        Message::MultipartRequest(body) => multipart::encode_request(body, false, w)?,
        Message::MultipartFragment(body) => multipart::encode_request(body, true, w)?,
        Message::QueueConfigRequest(port) => queue_config::encode_request(*port, w)?,
        Message::QueueConfigReply(body) => body.encode(w)?,
        Message::RoleRequest(body) => body.encode(w)?,
        Message::RoleReply(body) => body.encode(w)?,
        Message::GetAsyncReply(body) => body.encode(w)?,
        Message::SetAsync(body) => match asynchronous::kind(body, w.version()) {
            MessageKind::SetAsyncProperties => asynchronous::encode_properties(body, w)?,
            _ => body.encode(w)?,
        },
        Message::TableStatus(body) => body.encode(w)?,
        Message::RoleStatus(body) => body.encode(w)?,
        Message::ControllerStatus(body) => body.encode(w)?,
        Message::BundleControl(body) => body.encode(w)?,
        Message::Hello(_)
        | Message::MultipartReply { .. }
        | Message::BundleAdd(_)
        | Message::RequestForward(_) => {
            unreachable!("these encode their own header")
        }
    }
    Ok(())
}

/// Appends a message: the header, the experimenter header if there is one, and a body.
pub(crate) fn encode_framed(
    kind: MessageKind,
    xid: Xid,
    dialect: Dialect,
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let mut w = Writer::new(out, dialect);
    let row = MessageKindRow::by_kind(kind, dialect.version)
        .ok_or_else(|| w.unsupported("this message"))?;
    w.nested(2, |w| {
        let number = match row.number {
            TypeNumber::Standard(number) => number,
            TypeNumber::Nicira(_) | TypeNumber::Onf(_) => kinds::EXPERIMENTER_MESSAGE,
        };
        w.u8(dialect.version.number());
        w.number(1, number.into());
        w.u16(0);
        w.u32(xid.0);
        if let Some((experimenter, subtype)) = row.number.experimenter() {
            w.u32(experimenter);
            w.u32(subtype);
        }
        body(w)
    })
    .map(drop)
}
