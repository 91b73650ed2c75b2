//! Applications of a controller: none, fixed rules, a hub, or learning.

use base::{PortNo, TableId};
use flow::{Action, FlowMod, FlowModCommand, Instructions, Match, PacketIn, SwitchConfig};
use openflow::{Message, Version};

use super::learning::Learning;
use super::requests::packet_out;

/// The application of a controller.
#[derive(Clone, Debug, Default)]
pub enum Application {
    /// No application.
    #[default]
    Silent,
    /// Installs these rules when the device connects, and nothing later.
    Rules(Vec<FlowMod>),
    /// Floods every packet-in.
    Hub,
    /// Learns the ports of stations, and installs a rule for each conversation.
    Learning(Learning),
}

impl Application {
    /// Returns whether the application ignores packet-ins.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        matches!(self, Self::Silent | Self::Rules(_))
    }

    /// Returns the messages for a newly connected device.
    #[must_use]
    pub fn begin(&self, version: Version) -> Vec<Message> {
        match self {
            Self::Silent => Vec::new(),
            Self::Rules(rules) => rules.iter().cloned().map(Message::FlowMod).collect(),
            Self::Hub | Self::Learning(_) => reactive(version),
        }
    }

    /// Returns the messages that answer a packet-in.
    pub fn packet_in(&mut self, frame: &PacketIn, version: Version) -> Vec<Message> {
        match self {
            Self::Silent | Self::Rules(_) => Vec::new(),
            Self::Hub => flood(frame).into_iter().collect(),
            Self::Learning(learning) => learning.packet_in(frame, version),
        }
    }
}

/// Returns the messages after which a table miss sends the whole frame to the controller. In 1.0 a
/// miss does so by itself, truncated to the configured length; from 1.3 on a table-miss rule is
/// necessary (OF 1.3.5, 5.4).
fn reactive(version: Version) -> Vec<Message> {
    let config = SwitchConfig {
        miss_send_len: u16::MAX,
        ..SwitchConfig::default()
    };
    let mut messages = vec![Message::SetConfig(config)];
    if version >= Version::V13 {
        messages.push(Message::FlowMod(table_miss()));
    }
    messages
}

/// Returns the table-miss rule, which sends whole frames to the controller.
#[must_use]
pub fn table_miss() -> FlowMod {
    let up = Action::output(PortNo::CONTROLLER);
    let mut rule = FlowMod::new(
        FlowModCommand::Add,
        0,
        Match::any(),
        Instructions::apply(vec![up]),
    );
    rule.table = TableId::FIRST;
    rule
}

/// Returns a packet-out that floods the frame; `None` if the packet-in is truncated.
pub(super) fn flood(frame: &PacketIn) -> Option<Message> {
    forward(frame, PortNo::FLOOD)
}

/// Returns a packet-out to this port; `None` if the packet-in is truncated.
pub(super) fn forward(frame: &PacketIn, port: PortNo) -> Option<Message> {
    let is_whole = frame.data.len() >= usize::from(frame.total_len);
    let in_port = frame.registers.in_port;
    is_whole.then(|| packet_out(frame.data.clone(), in_port, vec![Action::output(port)]))
}
