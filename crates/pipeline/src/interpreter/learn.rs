//! Rules that packets request (`ovs-actions(7)`, learn). Only the control thread changes tables, so
//! a packet only records a request; until the rule exists, later packets record the same.

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

/// Minimum age at which a learned rule is renewed: its hard timeout restarts with each packet, but
/// timeouts are in seconds.
const REFRESH: Duration = Duration::from_secs(1);

/// The TCP flags that end a connection.
const FIN_OR_RST: u128 = 0b101;

impl Execution<'_> {
    /// Requests the rule of a `learn` action, unless it exists. An invalid rule is not learned.
    pub(crate) fn learn(
        &mut self,
        packet: &mut Packet<'_>,
        learn: &Learn,
    ) -> Result<(), DropReason> {
        let is_there = match self.build_learned_rule(packet, learn) {
            Ok(command) => self.request_rule(command, learn),
            Err(_) => false,
        };
        match learn.result {
            Some(to) => self.set_part(packet, to, is_there.into()),
            None => Ok(()),
        }
    }

    /// Requests a rule, unless it exists or its limit is reached. Returns true if it exists or
    /// will.
    fn request_rule(&mut self, command: FlowMod, learn: &Learn) -> bool {
        let pipeline = self.pipeline;
        let limit = learn.limit;
        match pipeline.learned_rule(&command) {
            Some(rule) if self.is_up_to_date(rule, &command, learn) => return true,
            Some(_) => {}
            None if limit != 0 && pipeline.is_at_learn_limit(&command, limit) => {
                self.drop(DropReason::LearnLimit);
                return false;
            }
            None => {}
        }
        self.verdict
            .push_learn_request(LearnRequest::Rule { command, limit });
        true
    }

    /// Requests shorter timeouts of the present rule, if the packet ends a TCP connection.
    pub(crate) fn request_shorter_timeouts(
        &mut self,
        packet: &Packet<'_>,
        idle_s: u16,
        hard_s: u16,
    ) {
        let flags = self.field(packet, Field::TcpFlags).unwrap_or(0);
        if let Some(rule) = self.rule
            && flags & FIN_OR_RST != 0
            && rule.shortened_timeouts(idle_s, hard_s) != rule.timeouts()
        {
            let rule = Box::new(rule.copy());
            self.verdict.push_learn_request(LearnRequest::Timeouts {
                rule,
                idle_s,
                hard_s,
            });
        }
    }

    fn build_learned_rule(
        &mut self,
        packet: &Packet<'_>,
        learn: &Learn,
    ) -> Result<FlowMod, Refusal> {
        let (mut matching, mut actions) = (Match::any(), Vec::new());
        let (idle_s, hard_s) = (learn.fin_idle_timeout_s, learn.fin_hard_timeout_s);
        if (idle_s, hard_s) != (0, 0) {
            actions.push(Action::Extended(Extension::FinTimeout { idle_s, hard_s }));
        }
        for spec in &learn.specs {
            match *spec {
                LearnSpec::Match { to, from } => {
                    matching = with_match_bits(matching, to, self.source(packet, from))?;
                }
                LearnSpec::Load { to, from } => {
                    actions.push(write_action(to, self.source(packet, from)));
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

    /// True if the existing rule equals the requested one and its hard timeout need not restart. A
    /// rule whose connection has ended is not renewed.
    fn is_up_to_date(&self, rule: &Rule, wanted: &FlowMod, learn: &Learn) -> bool {
        let given = (wanted.idle_timeout_s, wanted.hard_timeout_s);
        let ended = (
            shorter(given.0, learn.fin_idle_timeout_s),
            shorter(given.1, learn.fin_hard_timeout_s),
        );
        let is_new = given.1 == 0 || self.now < rule.modified + REFRESH;
        let has_ended = ended != given && rule.timeouts() == ended;
        **rule.instructions == wanted.instructions
            && rule.cookie == wanted.cookie
            && (is_new || has_ended)
    }
}

/// Adds these bits to a match.
fn with_match_bits(matching: Match, to: Subfield, bits: Wide) -> Result<Match, Refusal> {
    if to.is_tunnel_option() {
        let mut building = MatchBuilder::from(&matching);
        building.add_option(to.field(), to.wide_place(bits), to.wide_mask())?;
        return Ok(building.build());
    }
    matching.with_masked(to.field(), to.place(bits.low()), to.mask())
}

/// Returns the action that writes these bits.
fn write_action(to: Subfield, bits: Wide) -> Action {
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
