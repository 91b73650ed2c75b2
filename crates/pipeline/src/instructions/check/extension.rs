//! Checks of Nicira actions.

use base::{PortNo, TableId};
use flow::{Action, Extension, Learn, LearnSource, LearnSpec, Match, Refusal, Subfield};

use crate::instructions::action_facts::{is_clause, written_subfield};
use crate::instructions::field_facts::FieldFacts;

use super::check_set_field;

/// Minimum length of a truncated output: an Ethernet header.
const TRUNCATED_MIN: u32 = 14;

/// Number of clauses of a conjunction (`ovs-fields(7)`).
const CLAUSES: std::ops::RangeInclusive<u8> = 2..=64;

/// Checks an action by itself. The inner actions of `clone` are checked apart.
pub(crate) fn check_argument(extension: &Extension) -> Result<(), Refusal> {
    let within = |fits: bool| fits.then_some(()).ok_or(Refusal::ActionBadArgument);
    match extension {
        Extension::Load { .. }
        | Extension::Move { .. }
        | Extension::Pop(_)
        | Extension::CheckPacketLarger { .. }
        | Extension::Multipath(_)
        | Extension::Bundle(_) => written_subfield(extension).map_or(Ok(()), writable),
        Extension::OutputTruncated { port, max_len } => {
            let one = *port == PortNo::IN_PORT || *port == PortNo::LOCAL || port.is_assignable();
            let one = one.then_some(()).ok_or(Refusal::ActionBadOutPort);
            one.and_then(|()| within(*max_len >= TRUNCATED_MIN))
        }
        Extension::Conjunction {
            clause, clauses, ..
        } if clause >= clauses || !CLAUSES.contains(clauses) => Err(Refusal::ActionBadConjunction),
        Extension::Encap(encap) if !encap.is_possible() => Err(Refusal::ActionBadProperty),
        Extension::Sample(sample) => within(sample.probability != 0),
        // Only tunnel options can be deleted (`ovs-actions(7)`).
        Extension::DeleteField(field) if field.option().is_none() => {
            Err(Refusal::ActionBadArgument)
        }
        Extension::Learn(learn) => check_learn(learn),
        Extension::Conntrack(ct) => ct
            .check()
            .and_then(|()| ct.actions.iter().try_for_each(check_connection_write)),
        // Only `ct` has it.
        Extension::Nat(_) => Err(Refusal::ActionBadSetArgument),
        // Only rules have clauses.
        Extension::Clone(inside) if inside.iter().any(is_clause) => {
            Err(Refusal::ActionUnsupportedOrder)
        }
        Extension::Controller(_)
        | Extension::Resubmit { .. }
        | Extension::ResubmitConnection { .. }
        | Extension::Push(_)
        | Extension::OutputReg { .. }
        | Extension::DecTtl(_)
        | Extension::FinTimeout { .. }
        | Extension::PopQueue
        | Extension::Encap(_)
        | Extension::Decap { .. }
        | Extension::DecNshTtl
        | Extension::SetOption(_)
        | Extension::DeleteField(_)
        | Extension::Conjunction { .. }
        | Extension::Note(_)
        | Extension::Exit
        | Extension::ConntrackClear
        | Extension::DebugSlow
        | Extension::DebugRecirc
        | Extension::Clone(_) => Ok(()),
    }
}

/// Checks an action on a connection by itself.
fn check_connection_write(action: &Action) -> Result<(), Refusal> {
    match action {
        Action::SetField { field, value, mask } => check_set_field(*field, *value, *mask),
        _ => Ok(()),
    }
}

fn writable(to: Subfield) -> Result<(), Refusal> {
    let writable = to.field().info().writable;
    writable.then_some(()).ok_or(Refusal::ActionBadSetType)
}

/// The specs of a learned rule have the prerequisites of an ordinary rule. Values that are copied
/// from the packet are unknown, so a prerequisite must be a constant.
fn check_learn(learn: &Learn) -> Result<(), Refusal> {
    if learn.table > TableId::LAST {
        return Err(Refusal::ActionBadArgument);
    }
    learn.result.map_or(Ok(()), writable)?;
    let mut matching = Match::any();
    for spec in &learn.specs {
        match *spec {
            LearnSpec::Match { to, from } => {
                if !FieldFacts::of(&matching).fulfils(to.field().info().prerequisite) {
                    return Err(Refusal::ActionMatchInconsistent);
                }
                if let LearnSource::Value(value) = from {
                    let more = matching.clone();
                    let more = more.with_masked(to.field(), to.place(value.low()), to.mask());
                    matching = more.unwrap_or(matching);
                }
            }
            LearnSpec::Load { to, .. } => writable(to)?,
            LearnSpec::Output(_) => {}
        }
    }
    Ok(())
}

/// Checks that a clause of a conjunction is combined with no other action than notes.
pub(crate) fn check_conjunctions(actions: &[Action]) -> Result<(), Refusal> {
    let is_clause =
        |action: &Action| matches!(action, Action::Extended(Extension::Conjunction { .. }));
    let is_note = |action: &Action| matches!(action, Action::Extended(Extension::Note(_)));
    let others = actions.iter().any(|a| !is_clause(a) && !is_note(a));
    if others && actions.iter().any(is_clause) {
        return Err(Refusal::ActionUnsupportedOrder);
    }
    Ok(())
}

/// True if the action may be in an action set or bucket, where most kinds are executed once and in
/// the order of the set (`ovs-actions(7)`, Action Sets).
pub(crate) const fn may_be_written(extension: &Extension) -> bool {
    matches!(
        extension,
        Extension::Load { .. }
            | Extension::Move { .. }
            | Extension::SetOption(_)
            | Extension::DecTtl(_)
            | Extension::Encap(_)
            | Extension::Decap { .. }
            | Extension::DecNshTtl
            | Extension::Resubmit { .. }
            | Extension::ResubmitConnection { .. }
            | Extension::Conntrack(_)
            | Extension::ConntrackClear
    )
}
