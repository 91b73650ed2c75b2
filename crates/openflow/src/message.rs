//! Messages: what they are, and which body has which number.
//!
//! One file for each body below, all versions of it side by side. The meaning of
//! a message lives in `flow`; here it becomes bytes and bytes become it.

pub(crate) mod asynchronous;
pub(crate) mod bundle;
pub(crate) mod config;
pub(crate) mod controller_status;
pub(crate) mod error;
pub(crate) mod extension;
pub(crate) mod features;
pub(crate) mod flow_mod;
pub(crate) mod flow_removed;
pub(crate) mod group_mod;
pub(crate) mod hello;
pub(crate) mod meter_mod;
pub(crate) mod multipart;
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
use crate::kinds::{self, Kind, Number, Row, Sender};
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
pub(crate) trait Body: Sized {
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
        let (xid, _) = message.decode_over(bytes, dialect.into())?;
        Ok((xid, message))
    }

    /// As [`Self::decode`], in place of this message; and who may send such a one. A flow-mod
    /// takes over the memory of the one that was here: there may be a million, one after the
    /// other. After an error what is here means nothing.
    pub(crate) fn decode_over(
        &mut self,
        bytes: &[u8],
        dialect: Dialect,
    ) -> Result<(Xid, Sender), Malformed> {
        let mut r = Reader::new(bytes, dialect);
        let header = Header::decode(&mut r)?;
        let start = |refusal| Malformed { refusal, at: 0 };
        if usize::from(header.length) != bytes.len() {
            return Err(start(Refusal::RequestBadLength));
        }
        // A hello comes before there is an agreement to break.
        if header.kind == hello::NUMBER {
            *self = Self::Hello(Hello::decode(header.version, &mut r));
            return Ok((header.xid, Sender::Either));
        }
        if header.version != dialect.version.number() {
            return Err(start(Refusal::RequestBadVersion));
        }
        let row = row_of(&header, &mut r)?;
        if r.len() < row.least {
            return Err(start(Refusal::RequestBadLength));
        }
        match (row.kind, &mut *self) {
            (Kind::FlowMod, Self::FlowMod(read)) => flow_mod::decode_over(read, &mut r)?,
            (Kind::BundleAdd, _) => {
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
            Self::RequestForward(told) => request_forward::encode(told, xid, dialect, out),
            _ => {
                let kind = self.kind(dialect);
                frame(kind, xid, dialect, out, |w| encode_body(self, w))
            }
        };
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    /// Which body the message has in `dialect`.
    fn kind(&self, dialect: Dialect) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Error(_) => Kind::Error,
            Self::EchoRequest(_) => Kind::EchoRequest,
            Self::EchoReply(_) => Kind::EchoReply,
            Self::NiciraSetting(extension) => extension::kind(*extension),
            Self::FeaturesRequest => Kind::FeaturesRequest,
            Self::FeaturesReply(_) => Kind::FeaturesReply,
            Self::GetConfigRequest => Kind::GetConfigRequest,
            Self::GetConfigReply(_) => Kind::GetConfigReply,
            Self::SetConfig(_) => Kind::SetConfig,
            Self::PacketIn(_) => packet_in::kind(dialect),
            Self::Resume(_) => Kind::Resume,
            Self::ControllerId(_) => Kind::ControllerId,
            Self::TlvTableMod(_) => Kind::TlvTableMod,
            Self::TlvTableRequest => Kind::TlvTableRequest,
            Self::TlvTableReply(_) => Kind::TlvTableReply,
            Self::FlowRemoved(_) => flow_removed::kind(dialect),
            Self::PortStatus(_) => Kind::PortStatus,
            Self::PacketOut(_) => Kind::PacketOut,
            Self::FlowMod(flow_mod) => flow_mod::kind(flow_mod, dialect),
            Self::GroupMod(_) => Kind::GroupMod,
            Self::PortMod(_) => Kind::PortMod,
            Self::TableMod(_) => Kind::TableMod,
            Self::MeterMod(_) => Kind::MeterMod,
            Self::MultipartRequest(_) | Self::MultipartFragment(_) => Kind::MultipartRequest,
            Self::MultipartReply { .. } => Kind::MultipartReply,
            Self::BarrierRequest => Kind::BarrierRequest,
            Self::BarrierReply => Kind::BarrierReply,
            Self::QueueConfigRequest(_) => Kind::QueueConfigRequest,
            Self::QueueConfigReply(_) => Kind::QueueConfigReply,
            Self::RoleRequest(_) => Kind::RoleRequest,
            Self::RoleReply(_) => Kind::RoleReply,
            Self::RoleStatus(_) => Kind::RoleStatus,
            Self::GetAsyncRequest => Kind::GetAsyncRequest,
            Self::GetAsyncReply(_) => Kind::GetAsyncReply,
            Self::SetAsync(change) => asynchronous::kind(change, dialect.version),
            Self::TableStatus(_) => Kind::TableStatus,
            Self::ControllerStatus(_) => Kind::ControllerStatus,
            Self::RequestForward(_) => Kind::RequestForward,
            Self::BundleControl(_) => Kind::BundleControl,
            Self::BundleAdd(_) => Kind::BundleAdd,
            Self::MonitorCancel(_) => Kind::MonitorCancel,
            Self::MonitorPaused => Kind::MonitorPaused,
            Self::MonitorResumed => Kind::MonitorResumed,
        }
    }
}

impl From<MultipartReply> for Message {
    fn from(reply: MultipartReply) -> Self {
        Self::reply(reply)
    }
}

/// The row of a message whose header has been read; `r` then stands at its body.
pub(crate) fn row_of(header: &Header, r: &mut Reader<'_>) -> Result<&'static Row, Malformed> {
    let (version, at) = (r.version(), 0);
    let number = u16::from(header.kind);
    if number != kinds::EXPERIMENTER_MESSAGE {
        return Row::numbered(Number::Own(number), version).ok_or(Malformed {
            refusal: Refusal::RequestBadType,
            at,
        });
    }
    let experimenter = r.u32()?;
    if Number::of(experimenter, 0).is_none() {
        let refusal = Refusal::RequestBadExperimenter;
        return Err(Malformed { refusal, at });
    }
    let number = Number::of(experimenter, r.u32()?);
    let row = number.and_then(|number| Row::numbered(number, version));
    row.ok_or(Malformed {
        refusal: Refusal::RequestBadExperimenterType,
        at,
    })
}

/// Reads the body of a message.
fn decode_body(kind: Kind, r: &mut Reader<'_>) -> Result<Message, Malformed> {
    Ok(match kind {
        Kind::Hello => Message::Hello(Hello::decode(r.version().number(), r)),
        Kind::Error => Message::Error(Body::decode(r)?),
        Kind::EchoRequest => Message::EchoRequest(r.rest().to_vec()),
        Kind::EchoReply => Message::EchoReply(r.rest().to_vec()),
        Kind::FeaturesRequest => Message::FeaturesRequest,
        Kind::FeaturesReply => Message::FeaturesReply(Body::decode(r)?),
        Kind::GetConfigRequest => Message::GetConfigRequest,
        Kind::GetConfigReply => Message::GetConfigReply(config::decode_reply(r)?),
        Kind::SetConfig => Message::SetConfig(config::decode_set(r)?),
        Kind::PacketIn => Message::PacketIn(packet_in::decode(r)?),
        Kind::NxPacketIn => Message::PacketIn(packet_in_nicira::decode(r)?),
        Kind::NxPacketIn2 => Message::PacketIn(packet_in_nicira::decode_second(r)?),
        Kind::Resume => Message::Resume(Body::decode(r)?),
        Kind::ControllerId => Message::ControllerId(extension::decode_controller_id(r)?),
        Kind::TlvTableMod => Message::TlvTableMod(Body::decode(r)?),
        Kind::TlvTableRequest => Message::TlvTableRequest,
        Kind::TlvTableReply => Message::TlvTableReply(Body::decode(r)?),
        Kind::FlowRemoved => Message::FlowRemoved(flow_removed::decode(r)?),
        Kind::NxFlowRemoved => Message::FlowRemoved(flow_removed::decode_nicira(r)?),
        Kind::PortStatus => Message::PortStatus(Body::decode(r)?),
        Kind::PacketOut => Message::PacketOut(Body::decode(r)?),
        Kind::FlowMod => Message::FlowMod(flow_mod::decode(r)?),
        Kind::NxFlowMod => Message::FlowMod(flow_mod::decode_nicira(r)?),
        Kind::GroupMod => Message::GroupMod(Body::decode(r)?),
        Kind::PortMod => Message::PortMod(Body::decode(r)?),
        Kind::TableMod => Message::TableMod(Body::decode(r)?),
        Kind::MeterMod => Message::MeterMod(Body::decode(r)?),
        Kind::MultipartRequest => match multipart::decode_request(r)? {
            (request, false) => Message::MultipartRequest(request),
            (request, true) => Message::MultipartFragment(request),
        },
        Kind::MultipartReply => {
            let (reply, more) = multipart::decode_reply(r)?;
            Message::MultipartReply { reply, more }
        }
        Kind::BarrierRequest => Message::BarrierRequest,
        Kind::BarrierReply => Message::BarrierReply,
        Kind::QueueConfigRequest => Message::QueueConfigRequest(queue_config::decode_request(r)?),
        Kind::QueueConfigReply => Message::QueueConfigReply(Body::decode(r)?),
        Kind::RoleRequest => Message::RoleRequest(Body::decode(r)?),
        Kind::RoleReply => Message::RoleReply(Body::decode(r)?),
        Kind::RoleStatus => Message::RoleStatus(Body::decode(r)?),
        Kind::GetAsyncRequest => Message::GetAsyncRequest,
        Kind::GetAsyncReply => Message::GetAsyncReply(Body::decode(r)?),
        Kind::SetAsync => Message::SetAsync(Body::decode(r)?),
        Kind::SetAsyncProperties => Message::SetAsync(asynchronous::decode_properties(r)?),
        Kind::TableStatus => Message::TableStatus(Body::decode(r)?),
        Kind::ControllerStatus => Message::ControllerStatus(Body::decode(r)?),
        Kind::RequestForward => Message::RequestForward(request_forward::decode(r)?),
        Kind::BundleControl => Message::BundleControl(Body::decode(r)?),
        Kind::BundleAdd => unreachable!("its transaction id is needed, which the caller has"),
        Kind::MonitorCancel => Message::MonitorCancel(MonitorId(r.u32()?)),
        Kind::MonitorPaused => Message::MonitorPaused,
        Kind::MonitorResumed => Message::MonitorResumed,
        Kind::FlowFormat | Kind::TableIds | Kind::PacketInFormat => {
            Message::NiciraSetting(extension::decode(kind, r)?)
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
        Message::NiciraSetting(body) => extension::encode(*body, w),
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
            Kind::SetAsyncProperties => asynchronous::encode_properties(body, w)?,
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
pub(crate) fn frame(
    kind: Kind,
    xid: Xid,
    dialect: Dialect,
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let mut w = Writer::new(out, dialect);
    let row = Row::of(kind, dialect.version).ok_or_else(|| w.cannot("this message"))?;
    w.nested(2, |w| {
        let number = match row.number {
            Number::Own(number) => number,
            Number::Nicira(_) | Number::Onf(_) => kinds::EXPERIMENTER_MESSAGE,
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
