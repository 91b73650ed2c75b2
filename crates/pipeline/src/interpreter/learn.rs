//! Rules that frames make (`ovs-actions(7)`, learn). The tables belong to whoever
//! writes them, so a frame only says what rule it would have; until that is there,
//! the frames behind it say the same.

use std::sync::Arc;
use std::time::Duration;

use base::PortNo;
use flow::field::widen;
use flow::{
    Action, Consistency, Extension, Field, FlowFlags, FlowMod, FlowModCommand, Instructions, Learn,
    LearnFlags, LearnSource, LearnSpec, Match, MatchBuilder, OptionTerm, Refusal, Subfield, Wide,
};
use packet::Packet;

use super::Execution;
use super::actions::{low_u16, low_u64};
use crate::rules::Rule;
use crate::rules::rule::shorter;
use crate::verdict::{DropReason, LearnRequest};

/// How long a rule that is learned again is left as it is: its hard timeout begins
/// anew with each frame, but not to a finer grain than timeouts have.
const REFRESH: Duration = Duration::from_secs(1);

/// The flags of TCP by which a connection ends.
const FIN_OR_RST: u128 = 0b101;

impl Execution<'_> {
    /// Says what rule the frame would have, unless it is there. One that cannot be
    /// is not learned.
    pub(crate) fn learn(
        &mut self,
        packet: &mut Packet<'_>,
        learn: &Learn,
    ) -> Result<(), DropReason> {
        let is_there = match self.learned(packet, learn) {
            Ok(command) => self.want(command, learn),
            Err(_) => false,
        };
        match learn.result {
            Some(to) => self.set_part(packet, to, is_there.into()),
            None => Ok(()),
        }
    }

    /// Wants a rule, unless it is there already or there are too many. Answers whether it
    /// is there or will be.
    fn want(&mut self, command: FlowMod, learn: &Learn) -> bool {
        let pipeline = self.pipeline;
        let limit = learn.limit;
        match pipeline.learned_rule(&command) {
            Some(rule) if self.is_fresh(rule, &command, learn) => return true,
            Some(_) => {}
            None if limit != 0 && pipeline.is_at_learn_limit(&command, limit) => {
                self.drop(DropReason::LearnLimit);
                return false;
            }
            None => {}
        }
        self.verdict
            .learn_requests
            .push(LearnRequest::Rule { command, limit });
        true
    }

    /// A frame that ends a TCP connection shortens the timeouts of the rule at hand.
    pub(crate) fn end_of_tcp(&mut self, packet: &Packet<'_>, idle_s: u16, hard_s: u16) {
        let flags = self.field(packet, Field::TcpFlags).unwrap_or(0);
        if let Some(rule) = self.rule
            && flags & FIN_OR_RST != 0
            && rule.shortened_timeouts(idle_s, hard_s) != rule.timeouts()
        {
            let rule = Box::new(rule.copy());
            self.verdict.learn_requests.push(LearnRequest::Timeouts {
                rule,
                idle_s,
                hard_s,
            });
        }
    }

    fn learned(&mut self, packet: &Packet<'_>, learn: &Learn) -> Result<FlowMod, Refusal> {
        let (mut matching, mut actions) = (Match::any(), Vec::new());
        let (idle_s, hard_s) = (learn.fin_idle_timeout_s, learn.fin_hard_timeout_s);
        if (idle_s, hard_s) != (0, 0) {
            actions.push(Action::Extended(Extension::FinTimeout { idle_s, hard_s }));
        }
        for spec in &learn.specs {
            match *spec {
                LearnSpec::Match { to, from } => {
                    matching = asking(matching, to, self.source(packet, from))?;
                }
                LearnSpec::Load { to, from } => {
                    actions.push(writing(to, self.source(packet, from)));
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

    fn source(&mut self, packet: &Packet<'_>, from: LearnSource) -> Wide {
        match from {
            LearnSource::Subfield(part) => self.wide_part(packet, part),
            LearnSource::Value(value) => value,
        }
    }

    /// Whether a rule is what is wanted, and its hard timeout needs no new start. One
    /// whose connection has ended gets none.
    fn is_fresh(&self, rule: &Rule, wanted: &FlowMod, learn: &Learn) -> bool {
        let given = (wanted.idle_timeout_s, wanted.hard_timeout_s);
        let ended = (
            shorter(given.0, learn.fin_idle_timeout_s),
            shorter(given.1, learn.fin_hard_timeout_s),
        );
        let is_new = given.1 == 0 || self.now < rule.created + REFRESH;
        **rule.instructions == wanted.instructions
            && rule.cookie == wanted.cookie
            && (rule.timeouts() == given && is_new || ended != given && rule.timeouts() == ended)
    }
}

/// The match that also asks for these bits.
fn asking(matching: Match, to: Subfield, bits: Wide) -> Result<Match, Refusal> {
    if to.is_tunnel_option() {
        let mut building = MatchBuilder::from(&matching);
        building.add_option(to.field(), to.wide_place(bits), to.wide_mask())?;
        return Ok(building.build());
    }
    matching.with_masked(to.field(), to.place(bits.low()), to.mask())
}

/// The action that writes these bits.
fn writing(to: Subfield, bits: Wide) -> Action {
    let field = to.field();
    match u64::try_from(bits.low()) {
        Ok(value) if to.bits() <= 64 => Action::Extended(Extension::Load { to, value }),
        _ if to.is_tunnel_option() => {
            let (value, mask) = (to.wide_place(bits), to.wide_mask());
            let term = OptionTerm { field, value, mask };
            Action::Extended(Extension::SetOption(Arc::new(term)))
        }
        _ => Action::SetField {
            field,
            value: to.place(bits.low()),
            mask: to.mask(),
        },
    }
}
