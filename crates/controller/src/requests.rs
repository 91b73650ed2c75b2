//! Requests to a device: one method for each kind, the same for a [`Link`] and a
//! [`Controller`](super::Controller), in every version that can express them.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{GroupId, MeterId, PortNo, QueueId, TableId};
use flow::{
    Action, AggregateStats, FlowMod, FlowModCommand, FlowStats, FlowStatsRequest, GroupDesc,
    GroupStats, Instructions, Match, MeterConfig, MeterStats, PacketOut, PipelineFields, PortDesc,
    PortStats, QueueStats, SwitchConfig, SwitchDescription, SwitchFeatures, TableStats,
};
use openflow::{
    FeaturesReply, FlowFormat, Message, MultipartReply, MultipartRequest, QueueStatsRequest,
    Version,
};

use super::ControllerError;
use super::conversation::IncomingKind;
use super::exchange::RequestOutcome;
use super::link::Link;

/// Returns the deletion of all rules of all tables.
pub(super) fn delete_all() -> FlowMod {
    let command = FlowModCommand::Delete;
    FlowMod {
        table: TableId::ALL,
        ..FlowMod::new(command, 0, Match::any(), Instructions::default())
    }
}

/// Returns a packet-out of `data` with these actions.
#[must_use]
pub fn packet_out(data: Vec<u8>, in_port: PortNo, actions: Vec<Action>) -> Message {
    Message::PacketOut(PacketOut {
        buffer: None,
        registers: PipelineFields::new(in_port),
        actions,
        data,
    })
}

impl RequestOutcome {
    /// Returns the result if no message was refused.
    ///
    /// # Errors
    /// A message was refused.
    pub fn all_done(mut self, request: &'static str) -> Result<Self, ControllerError> {
        if self.refusals.is_empty() {
            return Ok(self);
        }
        let fault = Box::new(self.refusals.swap_remove(0));
        Err(ControllerError::Refused { request, fault })
    }
}

/// A connection that can send messages to a device and wait for a barrier.
pub trait DeviceRequests {
    /// Returns the negotiated version.
    fn version(&self) -> Version;

    /// Sends `messages` and a barrier, and waits for its reply. The result contains the refusals.
    ///
    /// # Errors
    /// The connection is closed, or the device does not answer in time.
    fn request(&mut self, messages: Vec<Message>) -> Result<RequestOutcome, ControllerError>;

    /// Returns the first answer to `message` that `of` accepts.
    ///
    /// # Errors
    /// The device refuses, answers with another message, does not answer, or is disconnected.
    fn answer<T>(
        &mut self,
        request: &'static str,
        message: Message,
        of: impl FnMut(Message) -> Option<T>,
    ) -> Result<T, ControllerError> {
        let done = self.request(vec![message])?.all_done(request)?;
        let answers = done.answers.into_iter().map(|one| one.message);
        answers
            .filter_map(of)
            .next()
            .ok_or(ControllerError::Unanswered(request))
    }

    /// Returns the statistics that answer a request.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn statistics<T>(
        &mut self,
        request: &'static str,
        multipart: MultipartRequest,
        mut of: impl FnMut(MultipartReply) -> Option<T>,
    ) -> Result<T, ControllerError> {
        self.answer(
            request,
            Message::MultipartRequest(multipart),
            |message| match message {
                Message::MultipartReply { reply, .. } => of(reply),
                _ => None,
            },
        )
    }

    /// Returns the features of the device.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn features(&mut self) -> Result<SwitchFeatures, ControllerError> {
        Ok(features_and_ports(self)?.features)
    }

    /// Returns the ports by name; a port without a name by its number.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn ports(&mut self) -> Result<BTreeMap<String, PortDesc>, ControllerError> {
        let ports = match self.version() {
            Version::V10 | Version::V11 | Version::V12 => features_and_ports(self)?.ports,
            Version::V13 | Version::V14 | Version::V15 => {
                let multipart = MultipartRequest::PortDesc(PortNo::ANY);
                self.statistics("its ports", multipart, |reply| match reply {
                    MultipartReply::PortDesc(ports) => Some(ports),
                    _ => None,
                })?
            }
        };
        let named = ports.into_iter().map(|port| match port.name.as_str() {
            "" => (port.number.0.to_string(), port),
            name => (name.to_owned(), port),
        });
        Ok(named.collect())
    }

    /// Returns the description of the device: manufacturer, hardware and software.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn description(&mut self) -> Result<SwitchDescription, ControllerError> {
        self.statistics(
            "its description",
            MultipartRequest::Description,
            |reply| match reply {
                MultipartReply::Description(description) => Some(description),
                _ => None,
            },
        )
    }

    /// Returns the switch configuration.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn config(&mut self) -> Result<SwitchConfig, ControllerError> {
        let message = Message::GetConfigRequest;
        self.answer("its configuration", message, |message| match message {
            Message::GetConfigReply(config) => Some(config),
            _ => None,
        })
    }

    /// Sets the number of bytes of a frame in packet-ins by table-miss (OpenFlow 1.0).
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn set_miss_send_len(&mut self, bytes: u16) -> Result<(), ControllerError> {
        let config = SwitchConfig {
            miss_send_len: bytes,
            ..SwitchConfig::default()
        };
        let done = self.request(vec![Message::SetConfig(config)])?;
        done.all_done("a configuration").map(drop)
    }

    /// Deletes all rules.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn clear(&mut self) -> Result<(), ControllerError> {
        let done = self.request(vec![Message::FlowMod(delete_all())])?;
        done.all_done("the deletion of all rules").map(drop)
    }

    /// Returns the selected rules with their counters.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn flows(&mut self, selection: FlowStatsRequest) -> Result<Vec<FlowStats>, ControllerError> {
        let multipart = MultipartRequest::Flow(FlowFormat::Standard, selection);
        self.statistics("flow statistics", multipart, |reply| match reply {
            MultipartReply::Flow(_, flows) => Some(flows),
            _ => None,
        })
    }

    /// Returns the sums over the selected rules.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn aggregate(
        &mut self,
        selection: FlowStatsRequest,
    ) -> Result<AggregateStats, ControllerError> {
        let multipart = MultipartRequest::Aggregate(FlowFormat::Standard, selection);
        self.statistics("aggregate statistics", multipart, |reply| match reply {
            MultipartReply::Aggregate(_, sums) => Some(sums),
            _ => None,
        })
    }

    /// Returns the table counters.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn tables(&mut self) -> Result<Vec<TableStats>, ControllerError> {
        let multipart = MultipartRequest::Table;
        self.statistics("table statistics", multipart, |reply| match reply {
            MultipartReply::Table(tables) => Some(tables),
            _ => None,
        })
    }

    /// Returns the counters of a port, or of all ports with [`PortNo::ANY`].
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn port_counts(&mut self, port: PortNo) -> Result<Vec<PortStats>, ControllerError> {
        let multipart = MultipartRequest::Port(port);
        self.statistics("port statistics", multipart, |reply| match reply {
            MultipartReply::Port(ports) => Some(ports),
            _ => None,
        })
    }

    /// Returns the counters of all queues of all ports.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn queues(&mut self) -> Result<Vec<QueueStats>, ControllerError> {
        let all = QueueStatsRequest {
            port: PortNo::ANY,
            queue: QueueId::ALL,
        };
        let multipart = MultipartRequest::Queue(all);
        self.statistics("queue statistics", multipart, |reply| match reply {
            MultipartReply::Queue(queues) => Some(queues),
            _ => None,
        })
    }

    /// Returns the counters of all groups (1.1).
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn groups(&mut self) -> Result<Vec<GroupStats>, ControllerError> {
        let multipart = MultipartRequest::Group(GroupId::ALL);
        self.statistics("group statistics", multipart, |reply| match reply {
            MultipartReply::Group(groups) => Some(groups),
            _ => None,
        })
    }

    /// Returns the descriptions of all groups (1.1).
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn group_descriptions(&mut self) -> Result<Vec<GroupDesc>, ControllerError> {
        let multipart = MultipartRequest::GroupDesc(GroupId::ALL);
        self.statistics("its groups", multipart, |reply| match reply {
            MultipartReply::GroupDesc(groups) => Some(groups),
            _ => None,
        })
    }

    /// Returns the counters of all meters (1.3).
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn meters(&mut self) -> Result<Vec<MeterStats>, ControllerError> {
        let multipart = MultipartRequest::Meter(MeterId::ALL);
        self.statistics("meter statistics", multipart, |reply| match reply {
            MultipartReply::Meter(meters) => Some(meters),
            _ => None,
        })
    }

    /// Returns the configurations of all meters (1.3).
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn meter_configs(&mut self) -> Result<Vec<MeterConfig>, ControllerError> {
        let multipart = MultipartRequest::MeterConfig(MeterId::ALL);
        self.statistics("its meters", multipart, |reply| match reply {
            MultipartReply::MeterConfig(meters) => Some(meters),
            _ => None,
        })
    }

    /// Returns the round-trip time of an echo with this payload: from the hand-over of the request
    /// to the system until the arrival of the reply.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn echo(&mut self, data: Vec<u8>) -> Result<Duration, ControllerError> {
        let done = self.request(vec![Message::EchoRequest(data)])?;
        let done = done.all_done("an echo")?;
        let reply = done.answers.into_iter().find_map(|one| match one.message {
            Message::EchoReply(_) => Some(one.arrival.at.since(one.handed?)),
            _ => None,
        });
        reply.ok_or(ControllerError::Unanswered("an echo"))
    }
}

impl DeviceRequests for Link {
    fn version(&self) -> Version {
        Self::version(self).expect("a link is negotiated before it is returned")
    }

    fn request(&mut self, messages: Vec<Message>) -> Result<RequestOutcome, ControllerError> {
        Self::request(self, messages)
    }

    /// Measures an echo without a barrier after it.
    fn echo(&mut self, data: Vec<u8>) -> Result<Duration, ControllerError> {
        let xid = self.send(&Message::EchoRequest(data))?;
        let mut took = None;
        self.listen_until(|incoming| {
            if (incoming.kind, incoming.xid) != (IncomingKind::EchoReply, xid) {
                return Ok(false);
            }
            took = incoming
                .handed
                .map(|handed| incoming.arrival.at.since(handed));
            Ok(true)
        })?;
        took.ok_or(ControllerError::Unanswered("an echo"))
    }
}

fn features_and_ports<A: DeviceRequests + ?Sized>(
    device: &mut A,
) -> Result<FeaturesReply, ControllerError> {
    let message = Message::FeaturesRequest;
    device.answer("its features", message, |message| match message {
        Message::FeaturesReply(reply) => Some(reply),
        _ => None,
    })
}
