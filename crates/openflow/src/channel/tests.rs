//! Tests of what nobody outside sees.

use base::PortNo;
use flow::{Action, FlowMod, FlowModCommand, Instructions, Match};

use super::*;

/// A flow-mod with so many actions, as it was read.
fn flow_mod(actions: u32) -> Parcel {
    let outputs = (1..=actions).map(|port| Action::output(PortNo(port)));
    let instructions = Instructions::apply(outputs.collect());
    let command = FlowMod::new(FlowModCommand::Add, 0, Match::any(), instructions);
    Box::new(Received {
        message: Message::FlowMod(command),
        ..Received::default()
    })
}

#[test]
fn of_messages_given_back_the_small_are_kept_and_not_too_many() {
    let mut channel = Channel::new(Side::Switch, Options::default(), Instant::START);
    channel.take_back(vec![flow_mod(100), Parcel::default()]);
    assert_eq!(channel.spare.len(), 0);
    for _ in 0..2 {
        channel.take_back((0..SPARE_MAX).map(|_| flow_mod(1)).collect());
        assert_eq!(channel.spare.len(), SPARE_MAX);
    }
    channel.forget();
    assert_eq!(channel.spare.capacity(), 0);
}
