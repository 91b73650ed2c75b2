//! Messages: what they are, and which body has which number.
//!
//! One file for each body below, all versions of it side by side. The meaning of
//! a message lives in `flow`; here it becomes bytes and bytes become it.

pub(crate) mod asynchronous;
pub(crate) mod bundle;
pub(crate) mod config;
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
use controller_status::ControllerStatus;
use error::ErrorMessage;
use features::FeaturesReply;
use hello::Hello;
use multipart::{MultipartReply, MultipartRequest};
use queue_config::QueueConfigReply;
use request_forward::RequestForward;
use role::{RoleReply, RoleStatus};

/// A message, of whatever version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Which versions the sender speaks.
    Hello(Hello),
    /// Why a request was not done.
    Error(ErrorMessage),
    /// A question whether the peer is there, with anything in it.
    EchoRequest(Vec<u8>),
    /// The answer, with the same in it.
    EchoReply(Vec<u8>),
    /// A Nicira switch that the controller turns.
    NiciraSetting(NiciraSetting),
    /// What are you?
    FeaturesRequest,
    /// What the switch is.
    FeaturesReply(FeaturesReply),
    /// How are you configured?
    GetConfigRequest,
    /// How the switch is configured.
    GetConfigReply(SwitchConfig),
    /// How the switch is to be configured.
    SetConfig(SwitchConfig),
    /// A frame for the controller.
    PacketIn(PacketIn),
    /// A frame that waited for its controller goes on (Nicira's).
    Resume(Resume),
    /// Which id a controller gives itself, so that rules can send to it (Nicira's).
    ControllerId(u16),
    /// A change to the map of tunnel options (Nicira's).
    TlvTableMod(TlvTableMod),
    /// Which field holds which tunnel option (Nicira's)?
    TlvTableRequest,
    /// The map of tunnel options (Nicira's).
    TlvTableReply(TlvTable),
    /// A rule is gone.
    FlowRemoved(FlowRemoved),
    /// Something happened to a port.
    PortStatus(PortStatus),
    /// A frame to send.
    PacketOut(PacketOut),
    /// A change to the flow tables.
    FlowMod(FlowMod),
    /// A change to the group table (1.1 and later).
    GroupMod(GroupMod),
    /// A change to a port's behaviour.
    PortMod(PortMod),
    /// A change to a table's behaviour (1.1 and later).
    TableMod(TableMod),
    /// A change to the meters (1.3).
    MeterMod(MeterMod),
    /// A question about statistics or descriptions.
    MultipartRequest(MultipartRequest),
    /// The beginning of a question, or a part of its middle: other messages of the same
    /// number go on with it.
    MultipartFragment(MultipartRequest),
    /// The answer to it, or a part of it.
    MultipartReply {
        /// What is told.
        reply: MultipartReply,
        /// Whether more of it follows in another message. Whatever is too long for
        /// one message is split over several by itself.
        more: bool,
    },
    /// Tell me when all before this is done.
    BarrierRequest,
    /// All before the request is done.
    BarrierReply,
    /// Which queues has this port?
    QueueConfigRequest(PortNo),
    /// The queues of a port.
    QueueConfigReply(QueueConfigReply),
    /// A controller's wish for a role.
    RoleRequest(RoleRequest),
    /// The role it has.
    RoleReply(RoleReply),
    /// The controller has another role now, though it did not ask (1.4).
    RoleStatus(RoleStatus),
    /// What am I told unasked? (1.3)
    GetAsyncRequest,
    /// What a controller is told unasked (1.3).
    GetAsyncReply(AsyncConfig),
    /// What a controller wants to be told unasked.
    SetAsync(AsyncChange),
    /// A step of a bundle's life: asked for by a controller, or done by a switch (1.3 on).
    BundleControl(BundleControl),
    /// A message for a bundle (1.3 on).
    BundleAdd(BundleAdd),
    /// News of a table (1.4).
    TableStatus(TableStatus),
    /// News of a controller that the switch goes to (1.5).
    ControllerStatus(ControllerStatus),
    /// What another controller asked, and was done (1.4).
    RequestForward(RequestForward),
    /// Take this flow monitor away (before 1.4).
    MonitorCancel(MonitorId),
    /// Monitors tell nothing for a while, since the controller does not read (before 1.4).
    MonitorPaused,
    /// Monitors tell all again (before 1.4).
    MonitorResumed,
}

/// How one body is read and written, in every version, side by side.
pub(crate) trait WireFormat: Sized {
    /// Reads the whole of `r`, as its version lays it out.
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Appends the body, or names what the version has no words for.
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError>;
}

impl Message {
    /// The answer to a request for statistics or descriptions, all of it.
    #[must_use]
    pub const fn reply(reply: MultipartReply) -> Self {
        Self::MultipartReply { reply, more: false }
    }

    /// Reads one whole message, header included.
    ///
    /// # Errors
    /// It breaks the protocol, or asks for what nobody here does; the fault is
    /// the answer that it deserves.
    pub fn decode(bytes: &[u8], dialect: impl Into<Dialect>) -> Result<(Xid, Self), Malformed> {
        let mut message = Self::BarrierReply;
        let (xid, _) = message.decode_into(bytes, dialect.into())?;
        Ok((xid, message))
    }

    /// As [`Self::decode`], in place of this message; and who may send such a one. A flow-mod
    /// takes over the memory of the one that was here: there may be a million, one after the
    /// other. After an error what is here means nothing.
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
        // A hello comes before there is an agreement to break.
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

    /// Appends the message to `out`, header included. Statistics that are too long
    /// for one message become several.
    ///
    /// # Errors
    /// The version has no words for it, or it is too long for any message; then
    /// nothing was appended.
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

    /// Which body the message has in `dialect`.
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

/// The row of a message whose header has been read; `r` then stands at its body.
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

/// Reads the body of a message.
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
        MessageKind::MultipartRequest => match multipart::decode_request(r)? {
            (request, false) => Message::MultipartRequest(request),
            (request, true) => Message::MultipartFragment(request),
        },
        MessageKind::MultipartReply => {
            let (reply, more) = multipart::decode_reply(r)?;
            Message::MultipartReply { reply, more }
        }
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
        MessageKind::BundleAdd => {
            unreachable!("its transaction id is needed, which the caller has")
        }
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
            unreachable!("these frame themselves")
        }
    }
    Ok(())
}

/// Appends a message: its header, the experimenter's if it is one's, and a body.
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
