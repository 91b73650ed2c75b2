//! Checks of instructions and action lists, before anything is changed.
//!
//! A port that does not exist is no error: it may be added later (OF 1.3.5, 7.3.4.1). Neither is a
//! queue: a port without it sends regardless (`ovs-actions(7)`, set_queue). The group and meter
//! tables check that groups and meters exist.

pub(crate) mod extension;

use base::{PortNo, TableId};
use flow::field::{Prerequisite, VID_PRESENT};
use flow::{
    Action, ConntrackAction, Consistency, Continuation, Extension, Field, Instructions, Match,
    NESTING_MAX, NatAddresses, Refusal, writes_connection,
};

use super::SharedInstructions;
use super::action_facts::{conntrack_fields, fields_of, is_ethernet_field};
use super::action_set::ActionSet;
use super::field_facts::FieldFacts;
use crate::limits::{ACTIONS_MAX, BUCKET_ACTIONS_MAX};
use extension::{check_conjunctions, may_be_written};

/// The context of an action list, which decides which checks apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActionContext {
    /// `apply_actions`: the match and earlier actions are known.
    Apply,
    /// `write_actions`: the actions of other tables are unknown, so that any action may fit; but
    /// set-field needs its prerequisites in the match (OF 1.3.5, 7.2.5).
    Write,
    /// A bucket, which receives the packets of any rule: any action may fit.
    Bucket,
    /// A packet-out, which has no match; `TABLE` is a port.
    PacketOut,
}

/// Checks the instructions of a rule in `table`, or with [`TableId::ALL`] in any table.
pub(crate) fn check_instructions(
    instructions: &SharedInstructions,
    matching: &Match,
    table: TableId,
    consistency: Consistency,
) -> Result<(), Refusal> {
    match &instructions.facts().verdict {
        Some(verdict) => (*verdict)?,
        None => check_actions(instructions, FieldFacts::of(matching), consistency)?,
    }
    match instructions.goto {
        Some(next) if next > TableId::LAST => Err(Refusal::InstructionBadTable),
        Some(next) if table != TableId::ALL && next <= table => Err(Refusal::InstructionBadTable),
        _ => Ok(()),
    }
}

/// Returns the result of the checks of a rule's actions, if it does not depend on the match.
pub(crate) fn verdict_on(instructions: &Instructions) -> Option<Result<(), Refusal>> {
    let judge = || check_actions(instructions, FieldFacts::default(), Consistency::Required);
    instructions.actions().all(fits_any).then(judge)
}

fn check_actions(
    instructions: &Instructions,
    mut known: FieldFacts,
    consistency: Consistency,
) -> Result<(), Refusal> {
    check_count(instructions.actions())?;
    check_conjunctions(&instructions.apply)?;
    check_list(
        &instructions.apply,
        &mut known,
        ActionContext::Apply,
        consistency,
    )?;
    let mut set = ActionSet::default();
    set.write(&instructions.write);
    check_list(set.actions(), &mut known, ActionContext::Write, consistency)
}

/// Checks the actions of a bucket.
pub(crate) fn check_bucket(actions: &[Action]) -> Result<(), Refusal> {
    if actions.len() > BUCKET_ACTIONS_MAX {
        return Err(Refusal::ActionTooMany);
    }
    let mut known = FieldFacts::default();
    check_list(
        actions,
        &mut known,
        ActionContext::Bucket,
        Consistency::Waived,
    )
}

/// Checks the actions of a packet-out.
pub(crate) fn check_packet_out(actions: &[Action]) -> Result<(), Refusal> {
    check_count(actions.iter())?;
    let mut known = FieldFacts::default();
    check_list(
        actions,
        &mut known,
        ActionContext::PacketOut,
        Consistency::Waived,
    )
}

/// Checks the rest of a paused packet's actions: it may hold those of a packet-out and of
/// instructions.
pub(crate) fn check_continuation(continuation: &Continuation) -> Result<(), Refusal> {
    let actions = continuation.actions();
    check_count(actions.clone())?;
    let mut known = FieldFacts::default();
    for action in actions {
        let one = std::slice::from_ref(action);
        check_list(
            one,
            &mut known,
            ActionContext::PacketOut,
            Consistency::Waived,
        )?;
    }
    let written = continuation.written();
    let may_be_written = |action: &Action| match action {
        Action::Extended(extension) => may_be_written(extension),
        _ => true,
    };
    if !written.into_iter().all(may_be_written) {
        return Err(Refusal::ActionBadExperimenterType);
    }
    let mut steps = continuation.steps.iter();
    let nowhere = steps.any(|step| {
        let goto = step.rest.goto.unwrap_or(TableId::FIRST);
        step.table > TableId::LAST || goto > TableId::LAST
    });
    if nowhere {
        return Err(Refusal::InstructionBadTable);
    }
    Ok(())
}

/// Checks the number of actions, inner ones included, and their nesting.
fn check_count<'a>(actions: impl Iterator<Item = &'a Action> + Clone) -> Result<(), Refusal> {
    let shallow = actions
        .clone()
        .all(|action| action.nesting() <= NESTING_MAX);
    let few = shallow && actions.map(count).sum::<usize>() <= ACTIONS_MAX;
    few.then_some(()).ok_or(Refusal::ActionTooMany)
}

/// Returns the number of actions in an action, itself included.
fn count(action: &Action) -> usize {
    match action {
        Action::Extended(Extension::Clone(inside)) => 1 + inside.iter().map(count).sum::<usize>(),
        Action::Extended(Extension::Conntrack(ct)) => {
            1 + ct.actions.iter().map(count).sum::<usize>()
        }
        _ => 1,
    }
}

fn check_list(
    actions: &[Action],
    known: &mut FieldFacts,
    place: ActionContext,
    consistency: Consistency,
) -> Result<(), Refusal> {
    for action in actions {
        check_argument(action, place)?;
        if let Action::Extended(Extension::Clone(inside)) = action {
            // Facts that hold inside do not hold outside.
            check_list(inside, &mut known.clone(), place, consistency)?;
        }
        check_consistency(action, known, place, consistency)?;
        known.after(action);
    }
    Ok(())
}

/// Checks an action by itself.
fn check_argument(action: &Action, place: ActionContext) -> Result<(), Refusal> {
    let within = |fits: bool| fits.then_some(()).ok_or(Refusal::ActionBadArgument);
    match action {
        // Only within `ct`, whose actions are checked with it.
        action if writes_connection(action) => Err(Refusal::ActionBadSetArgument),
        Action::Output { port, .. } => check_port(*port, place),
        Action::Enqueue { port, .. } => {
            let one = port.is_assignable() || [PortNo::IN_PORT, PortNo::LOCAL].contains(port);
            one.then_some(()).ok_or(Refusal::ActionBadOutPort)
        }
        Action::SetField { field, value, mask } => check_set_field(*field, *value, *mask),
        Action::SetVlanVid(vid) => within(*vid <= 0x0fff),
        Action::SetVlanPcp(pcp) => within(*pcp <= 7),
        Action::SetNwTos(tos) => within(tos & 3 == 0),
        Action::PushVlan(tpid) => tag(matches!(tpid, 0x8100 | 0x88a8)),
        Action::PushMpls(eth_type) => tag(matches!(eth_type, 0x8847 | 0x8848)),
        Action::PushPbb(eth_type) => tag(*eth_type == 0x88e7),
        Action::Extended(extension) => {
            check_place(extension, place).and_then(|()| extension::check_argument(extension))
        }
        Action::SetNwSrc(_)
        | Action::SetNwDst(_)
        | Action::SetTpSrc(_)
        | Action::SetTpDst(_)
        | Action::PopVlan
        | Action::PopPbb
        | Action::PopMpls(_)
        | Action::SetMplsTtl(_)
        | Action::DecMplsTtl
        | Action::SetIpTtl(_)
        | Action::DecIpTtl
        | Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::SetQueue(_)
        | Action::Meter(_)
        | Action::Group(_) => Ok(()),
    }
}

/// Checks that a Nicira action is permitted in this context.
fn check_place(extension: &Extension, place: ActionContext) -> Result<(), Refusal> {
    match place {
        ActionContext::Write | ActionContext::Bucket if !may_be_written(extension) => {
            Err(Refusal::ActionBadExperimenterType)
        }
        // Only rules have clauses.
        ActionContext::PacketOut if matches!(extension, Extension::Conjunction { .. }) => {
            Err(Refusal::ActionUnsupportedOrder)
        }
        ActionContext::Apply
        | ActionContext::Write
        | ActionContext::Bucket
        | ActionContext::PacketOut => Ok(()),
    }
}

fn tag(known: bool) -> Result<(), Refusal> {
    known.then_some(()).ok_or(Refusal::ActionBadTag)
}

fn check_port(port: PortNo, place: ActionContext) -> Result<(), Refusal> {
    let meaningful = match port {
        PortNo::TABLE => place == ActionContext::PacketOut,
        PortNo::IN_PORT
        | PortNo::NORMAL
        | PortNo::FLOOD
        | PortNo::ALL
        | PortNo::CONTROLLER
        | PortNo::LOCAL => true,
        // As in Open vSwitch, a bucket may name any port number.
        PortNo(0) => place == ActionContext::Bucket,
        ordinary => ordinary.is_assignable(),
    };
    meaningful.then_some(()).ok_or(Refusal::ActionBadOutPort)
}

pub(crate) fn check_set_field(field: Field, value: u128, mask: u128) -> Result<(), Refusal> {
    if !field.info().writable {
        return Err(Refusal::ActionBadSetType);
    }
    let fits = mask != 0 && mask & !field.full_mask() == 0 && value & !mask == 0;
    // A VLAN id without the present bit would mean to remove the tag.
    let present = u128::from(VID_PRESENT);
    let untags = field == Field::VlanVid && mask & present != 0 && value & present == 0;
    // The lower two bits of the byte do not belong to the DSCP.
    let spills = field == Field::IpTos && value & 3 != 0;
    if !fits || untags || spills {
        return Err(Refusal::ActionBadSetArgument);
    }
    Ok(())
}

/// True if the action fits any packet and does not modify it: no facts are needed.
const fn fits_any(action: &Action) -> bool {
    matches!(
        action,
        Action::Output { .. }
            | Action::Enqueue { .. }
            | Action::SetQueue(_)
            | Action::Group(_)
            | Action::Meter(_)
    )
}

/// Checks an action against the facts of the packets that it will receive.
fn check_consistency(
    action: &Action,
    known: &FieldFacts,
    place: ActionContext,
    consistency: Consistency,
) -> Result<(), Refusal> {
    let must_fit = match (place, consistency) {
        (ActionContext::Bucket | ActionContext::PacketOut, _) => false,
        (ActionContext::Apply, Consistency::Required) => true,
        (ActionContext::Apply, Consistency::Waived) | (ActionContext::Write, _) => {
            needs_oxm(action)
        }
    };
    if must_fit && !fits(action, known) {
        return Err(Refusal::ActionMatchInconsistent);
    }
    Ok(())
}

/// True if the action reads or writes fields with prerequisites.
fn needs_oxm(action: &Action) -> bool {
    let needy = |field: &Field| field.info().prerequisite != Prerequisite::None;
    match action {
        // As in Open vSwitch, in all versions.
        Action::Extended(
            Extension::DecNshTtl | Extension::Conntrack(_) | Extension::ResubmitConnection { .. },
        ) => true,
        Action::SetField { field, .. } => needy(field),
        Action::Extended(extension) => fields_of(extension).iter().any(needy),
        _ => false,
    }
}

/// Ports of the helpers that require a protocol.
const FTP: u16 = 21;
const TFTP: u16 = 69;

/// True if every packet can be tracked so: it is IP, has the protocol of the helper, the fields that
/// are read, and addresses of the family to be translated.
fn conntrack_fits(ct: &ConntrackAction, known: &FieldFacts) -> bool {
    let nats_fit = ct.actions.iter().all(|action| match action {
        Action::Extended(Extension::Nat(nat)) => match nat.addresses {
            NatAddresses::Unspecified => true,
            NatAddresses::V4(..) => known.fulfils(Prerequisite::Ipv4),
            NatAddresses::V6(..) => known.fulfils(Prerequisite::Ipv6),
        },
        _ => true,
    });
    let helper_fits = match ct.alg {
        FTP => known.fulfils(Prerequisite::Tcp),
        TFTP => known.fulfils(Prerequisite::Udp),
        _ => true,
    };
    let fields = conntrack_fields(ct);
    let mut prerequisites = fields.iter().map(|field| field.info().prerequisite);
    known.fulfils(Prerequisite::Ip)
        && helper_fits
        && nats_fit
        && prerequisites.all(|needs| known.fulfils(needs))
}

/// True if every packet has the header that the action modifies.
fn fits(action: &Action, known: &FieldFacts) -> bool {
    let ip = || known.fulfils(Prerequisite::Ip);
    let mpls = || known.fulfils(Prerequisite::Mpls);
    match action {
        // Set-field of the VLAN id requires a tag, though a match on it requires no other field.
        Action::SetField {
            field: Field::VlanVid,
            ..
        }
        | Action::PopVlan => known.fulfils(Prerequisite::VlanTag),
        Action::SetField { field, .. } if is_ethernet_field(*field) && known.is_bare() => false,
        Action::SetField { field, .. } => known.fulfils(field.info().prerequisite),
        Action::Extended(Extension::DecTtl(_)) => ip(),
        Action::Extended(Extension::DecNshTtl) => known.fulfils(Prerequisite::Nsh),
        Action::Extended(Extension::FinTimeout { .. }) => known.fulfils(Prerequisite::Tcp),
        Action::Extended(Extension::Conntrack(ct)) => conntrack_fits(ct, known),
        Action::Extended(Extension::ResubmitConnection { .. }) => known.has_connection(),
        Action::Extended(extension) => fields_of(extension)
            .iter()
            .all(|field| known.fulfils(field.info().prerequisite)),
        Action::SetNwSrc(_) | Action::SetNwDst(_) => known.fulfils(Prerequisite::Ipv4),
        Action::SetNwTos(_) | Action::SetIpTtl(_) | Action::DecIpTtl => ip(),
        Action::SetTpSrc(_) | Action::SetTpDst(_) => {
            known.fulfils(Prerequisite::Tcp)
                || known.fulfils(Prerequisite::Udp)
                || known.fulfils(Prerequisite::Sctp)
        }
        Action::PopPbb => known.fulfils(Prerequisite::Pbb),
        Action::PopMpls(_) | Action::SetMplsTtl(_) | Action::DecMplsTtl => mpls(),
        Action::CopyTtlOut | Action::CopyTtlIn => mpls() || ip(),
        Action::Output { .. }
        | Action::Enqueue { .. }
        | Action::SetQueue(_)
        | Action::Group(_)
        | Action::Meter(_)
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::PushVlan(_)
        | Action::PushMpls(_)
        | Action::PushPbb(_) => true,
    }
}
