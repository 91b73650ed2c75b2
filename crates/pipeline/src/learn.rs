//! Rules that frames make (`ovs-actions(7)`, learn). The tables belong to whoever
//! writes them, so a frame only says what rule it would have; until that is there,
//! the frames behind it say the same.

use std::cmp::Reverse;
use std::time::Duration;

use base::PortNo;
use flow::field::widen;
use flow::{
    Action, Consistency, Extension, FlowFlags, FlowMod, FlowModCommand, Instructions, Learn,
    LearnFlags, LearnSource, LearnSpec, Match, Refusal,
};
use packet::Packet;

use crate::actions::{low_u16, low_u64};
use crate::interpreter::Run;
use crate::rule::Identity;

/// How long a rule that is learned again is left as it is: its hard timeout begins
/// anew with each frame, but not to a finer grain than timeouts have.
const REFRESH: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Says what rule the frame would have, unless it is there. One that cannot be
    /// is not learned.
    pub(crate) fn learn(&mut self, packet: &Packet<'_>, learn: &Learn) {
        if let Ok(command) = self.learned(packet, learn)
            && !self.knows(&command)
        {
            self.verdict.learned.push(command);
        }
    }

    fn learned(&mut self, packet: &Packet<'_>, learn: &Learn) -> Result<FlowMod, Refusal> {
        let (mut matching, mut actions) = (Match::any(), Vec::new());
        for spec in &learn.specs {
            match *spec {
                LearnSpec::Match { to, from } => {
                    let value = to.place(self.source(packet, from));
                    matching = matching.with_masked(to.field(), value, to.mask())?;
                }
                LearnSpec::Load { to, from } => {
                    let value = self.source(packet, from);
                    actions.push(match u64::try_from(value) {
                        Ok(value) if to.bits() <= 64 => {
                            Action::Extended(Extension::Load { to, value })
                        }
                        _ => Action::SetField {
                            field: to.field(),
                            value: to.place(value),
                            mask: to.mask(),
                        },
                    });
                }
                LearnSpec::Output(from) => {
                    let number = low_u64(self.part(packet, from));
                    let port = low_u16(number.into());
                    actions.push(Action::output(PortNo(widen(port))));
                }
            }
        }
        let instructions = Instructions::apply(actions);
        let mut command = FlowMod::new(FlowModCommand::Add, learn.priority, matching, instructions);
        command.table = learn.table;
        command.cookie = learn.cookie;
        command.idle_timeout_s = learn.idle_timeout_s;
        command.hard_timeout_s = learn.hard_timeout_s;
        command.consistency = Consistency::Waived;
        if learn.flags.contains(LearnFlags::SEND_FLOW_REMOVED) {
            command.flags = FlowFlags::SEND_FLOW_REMOVED;
        }
        Ok(command)
    }

    fn source(&mut self, packet: &Packet<'_>, from: LearnSource) -> u128 {
        match from {
            LearnSource::Part(part) => self.part(packet, part),
            LearnSource::Value(value) => value,
        }
    }

    /// Whether the tables have the rule, and its hard timeout needs no new start.
    fn knows(&self, command: &FlowMod) -> bool {
        let identity = Identity {
            table: command.table,
            priority: Reverse(command.priority),
            matching: command.matching.clone(),
        };
        self.pipeline.find(&identity).is_some_and(|rule| {
            *rule.instructions == command.instructions
                && rule.cookie == command.cookie
                && rule.idle_timeout_s == command.idle_timeout_s
                && rule.hard_timeout_s == command.hard_timeout_s
                && (rule.hard_timeout_s == 0 || self.now < rule.created + REFRESH)
        })
    }
}
