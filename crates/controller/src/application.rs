//! What a controller does by itself: nothing, fixed rules, a hub, or learning.

use base::{PortNo, TableId};
use flow::{Action, FlowMod, FlowModCommand, Instructions, Match, PacketIn, SwitchConfig};
use openflow::{Message, Version};

use super::ask::packet_out;
use super::learning::Learning;

/// What a controller does by itself.
#[derive(Clone, Debug, Default)]
pub enum Application {
    /// Nothing.
    #[default]
    Silent,
    /// Installs these rules when the device calls, and then nothing.
    Rules(Vec<FlowMod>),
    /// Has every frame that comes up leave by all ports but its own.
    Hub,
    /// Learns where stations are, and installs a rule for each conversation.
    Learning(Learning),
}

impl Application {
    /// Whether packet-ins are nothing to it.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        matches!(self, Self::Silent | Self::Rules(_))
    }

    /// What is said to a device that has called.
    #[must_use]
    pub fn begin(&self, version: Version) -> Vec<Message> {
        match self {
            Self::Silent => Vec::new(),
            Self::Rules(rules) => rules.iter().cloned().map(Message::FlowMod).collect(),
            Self::Hub | Self::Learning(_) => reactive(version),
        }
    }

    /// What is said about a frame that came up.
    pub fn packet_in(&mut self, frame: &PacketIn, version: Version) -> Vec<Message> {
        match self {
            Self::Silent | Self::Rules(_) => Vec::new(),
            Self::Hub => flood(frame).into_iter().collect(),
            Self::Learning(learning) => learning.packet_in(frame, version),
        }
    }
}

/// Has whatever matches no rule come up whole. In 1.0 it comes up by itself, cut to what the
/// configuration says; from 1.3 on a rule that matches all has to say so (OF 1.3.5, 5.4).
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

/// The rule by which frames without another come up whole.
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

/// The frame leaves by all ports but its own; none of it if it did not come up whole.
pub(super) fn flood(frame: &PacketIn) -> Option<Message> {
    forward(frame, PortNo::FLOOD)
}

/// The frame leaves by this port; none of it if it did not come up whole.
pub(super) fn forward(frame: &PacketIn, port: PortNo) -> Option<Message> {
    let is_whole = frame.data.len() >= usize::from(frame.total_len);
    let in_port = frame.registers.in_port;
    is_whole.then(|| packet_out(frame.data.clone(), in_port, vec![Action::output(port)]))
}
