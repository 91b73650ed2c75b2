//! What can be asked of a device: one method a question, the same for a [`Link`] and a
//! [`Controller`](super::Controller), in every version that has words for it.

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
use super::conversation::Kind;
use super::exchange::Done;
use super::link::Link;

/// The deletion of all rules of all tables.
pub(super) fn delete_all() -> FlowMod {
    let command = FlowModCommand::Delete;
    FlowMod {
        table: TableId::ALL,
        ..FlowMod::new(command, 0, Match::any(), Instructions::default())
    }
}

/// The frame `data` for these actions.
#[must_use]
pub fn packet_out(data: Vec<u8>, in_port: PortNo, actions: Vec<Action>) -> Message {
    Message::PacketOut(PacketOut {
        buffer: None,
        registers: PipelineFields::new(in_port),
        actions,
        data,
    })
}

impl Done {
    /// The same, if nothing was refused.
    ///
    /// # Errors
    /// Something was.
    pub fn all_done(mut self, request: &'static str) -> Result<Self, ControllerError> {
        if self.refusals.is_empty() {
            return Ok(self);
        }
        let fault = Box::new(self.refusals.swap_remove(0));
        Err(ControllerError::Refused { request, fault })
    }
}

/// Somebody who can say messages to a device and wait for the barrier behind them.
pub trait Ask {
    /// The version agreed on.
    fn version(&self) -> Version;

    /// Has all of `messages` done, and waits for the barrier behind them. What the device
    /// would not do is in what comes of it.
    ///
    /// # Errors
    /// The connection is over, or the device is silent for longer than it may be.
    fn request(&mut self, messages: Vec<Message>) -> Result<Done, ControllerError>;

    /// The first answer to `message` that `of` accepts.
    ///
    /// # Errors
    /// The device refuses, or answers something else, or is silent or gone.
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

    /// The statistics that answer a question.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn statistics<T>(
        &mut self,
        request: &'static str,
        question: MultipartRequest,
        mut of: impl FnMut(MultipartReply) -> Option<T>,
    ) -> Result<T, ControllerError> {
        self.answer(
            request,
            Message::MultipartRequest(question),
            |message| match message {
                Message::MultipartReply { reply, .. } => of(reply),
                _ => None,
            },
        )
    }

    /// What the device is.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn features(&mut self) -> Result<SwitchFeatures, ControllerError> {
        Ok(features_and_ports(self)?.features)
    }

    /// Its ports, by their names; one without a name by its number.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn ports(&mut self) -> Result<BTreeMap<String, PortDesc>, ControllerError> {
        let ports = match self.version() {
            Version::V10 | Version::V11 | Version::V12 => features_and_ports(self)?.ports,
            Version::V13 | Version::V14 | Version::V15 => {
                let question = MultipartRequest::PortDesc(PortNo::ANY);
                self.statistics("its ports", question, |reply| match reply {
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

    /// Who made it.
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

    /// How it is configured.
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

    /// Has packet-ins by table-miss carry so many bytes of a frame (OpenFlow 1.0).
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

    /// Has it forget all rules.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn clear(&mut self) -> Result<(), ControllerError> {
        let done = self.request(vec![Message::FlowMod(delete_all())])?;
        done.all_done("the deletion of all rules").map(drop)
    }

    /// The rules that are asked after, with their counts.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn flows(&mut self, asked: FlowStatsRequest) -> Result<Vec<FlowStats>, ControllerError> {
        let question = MultipartRequest::Flow(FlowFormat::Standard, asked);
        self.statistics("flow statistics", question, |reply| match reply {
            MultipartReply::Flow(_, flows) => Some(flows),
            _ => None,
        })
    }

    /// The sums over the rules that are asked after.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn aggregate(&mut self, asked: FlowStatsRequest) -> Result<AggregateStats, ControllerError> {
        let question = MultipartRequest::Aggregate(FlowFormat::Standard, asked);
        self.statistics("aggregate statistics", question, |reply| match reply {
            MultipartReply::Aggregate(_, sums) => Some(sums),
            _ => None,
        })
    }

    /// What its tables have counted.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn tables(&mut self) -> Result<Vec<TableStats>, ControllerError> {
        let question = MultipartRequest::Table;
        self.statistics("table statistics", question, |reply| match reply {
            MultipartReply::Table(tables) => Some(tables),
            _ => None,
        })
    }

    /// What a port has counted; [`PortNo::ANY`] for all of them.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn port_counts(&mut self, port: PortNo) -> Result<Vec<PortStats>, ControllerError> {
        let question = MultipartRequest::Port(port);
        self.statistics("port statistics", question, |reply| match reply {
            MultipartReply::Port(ports) => Some(ports),
            _ => None,
        })
    }

    /// What all queues of all ports have counted.
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn queues(&mut self) -> Result<Vec<QueueStats>, ControllerError> {
        let all = QueueStatsRequest {
            port: PortNo::ANY,
            queue: QueueId::ALL,
        };
        let question = MultipartRequest::Queue(all);
        self.statistics("queue statistics", question, |reply| match reply {
            MultipartReply::Queue(queues) => Some(queues),
            _ => None,
        })
    }

    /// What all groups have counted (1.1).
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn groups(&mut self) -> Result<Vec<GroupStats>, ControllerError> {
        let question = MultipartRequest::Group(GroupId::ALL);
        self.statistics("group statistics", question, |reply| match reply {
            MultipartReply::Group(groups) => Some(groups),
            _ => None,
        })
    }

    /// What all groups are (1.1).
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn group_descriptions(&mut self) -> Result<Vec<GroupDesc>, ControllerError> {
        let question = MultipartRequest::GroupDesc(GroupId::ALL);
        self.statistics("its groups", question, |reply| match reply {
            MultipartReply::GroupDesc(groups) => Some(groups),
            _ => None,
        })
    }

    /// What all meters have counted (1.3).
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn meters(&mut self) -> Result<Vec<MeterStats>, ControllerError> {
        let question = MultipartRequest::Meter(MeterId::ALL);
        self.statistics("meter statistics", question, |reply| match reply {
            MultipartReply::Meter(meters) => Some(meters),
            _ => None,
        })
    }

    /// What all meters are (1.3).
    ///
    /// # Errors
    /// As [`Self::answer`].
    fn meter_configs(&mut self) -> Result<Vec<MeterConfig>, ControllerError> {
        let question = MultipartRequest::MeterConfig(MeterId::ALL);
        self.statistics("its meters", question, |reply| match reply {
            MultipartReply::MeterConfig(meters) => Some(meters),
            _ => None,
        })
    }

    /// How long an echo of this takes: from handing over the request until the answer came.
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

impl Ask for Link {
    fn version(&self) -> Version {
        Self::version(self).expect("a link is agreed on before it is handed out")
    }

    fn request(&mut self, messages: Vec<Message>) -> Result<Done, ControllerError> {
        Self::request(self, messages)
    }

    /// As said, with no barrier behind it.
    fn echo(&mut self, data: Vec<u8>) -> Result<Duration, ControllerError> {
        let xid = self.say(&Message::EchoRequest(data))?;
        let mut took = None;
        self.listen_until(|heard| {
            if (heard.kind, heard.xid) != (Kind::EchoReply, xid) {
                return Ok(false);
            }
            took = heard.handed.map(|handed| heard.arrival.at.since(handed));
            Ok(true)
        })?;
        took.ok_or(ControllerError::Unanswered("an echo"))
    }
}

fn features_and_ports<A: Ask + ?Sized>(device: &mut A) -> Result<FeaturesReply, ControllerError> {
    let message = Message::FeaturesRequest;
    device.answer("its features", message, |message| match message {
        Message::FeaturesReply(reply) => Some(reply),
        _ => None,
    })
}
