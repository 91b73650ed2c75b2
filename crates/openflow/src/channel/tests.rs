//! Tests of the channel's private state.

use base::PortNo;
use flow::{Action, FlowMod, FlowModCommand, Instructions, Match};

use super::*;

/// A received flow-mod with `actions` actions.
fn flow_mod(actions: u32) -> BoxedMessage {
    let outputs = (1..=actions).map(|port| Action::output(PortNo(port)));
    let instructions = Instructions::apply(outputs.collect());
    let command = FlowMod::new(FlowModCommand::Add, 0, Match::any(), instructions);
    Box::new(ReceivedMessage {
        message: Message::FlowMod(command),
        ..ReceivedMessage::default()
    })
}

#[test]
fn recycled_messages_are_small_and_bounded() {
    let mut channel = Channel::new(
        ChannelSide::Switch,
        ChannelOptions::default(),
        Instant::START,
    );
    channel.recycle(vec![flow_mod(100), BoxedMessage::default()]);
    assert_eq!(channel.spare.len(), 0);
    for _ in 0..2 {
        channel.recycle((0..SPARE_MAX).map(|_| flow_mod(1)).collect());
        assert_eq!(channel.spare.len(), SPARE_MAX);
    }
    channel.release_spare();
    assert_eq!(channel.spare.capacity(), 0);
}
