//! Facts about actions that follow from the actions alone: the groups, meters and fields that they
//! name, and the parse depth that they need. An action within `clone` counts as its own.

use base::{GroupId, MeterId};
use flow::field::Depth;
use flow::{
    Action, ConntrackAction, ConntrackZone, Extension, Field, HashFields, Learn, LearnFlags,
    LearnSource, LearnSpec, Subfield,
};

/// Returns the groups that `actions` send packets to.
pub(crate) fn groups_of<'a>(
    actions: impl IntoIterator<Item = &'a Action>,
) -> impl Iterator<Item = GroupId> {
    let mut groups = Vec::new();
    for action in actions {
        collect_groups(action, &mut groups);
    }
    groups.into_iter()
}

fn collect_groups(action: &Action, groups: &mut Vec<GroupId>) {
    match action {
        Action::Group(group) => groups.push(*group),
        Action::Extended(Extension::Clone(inner)) => {
            inner
                .iter()
                .for_each(|action| collect_groups(action, groups));
        }
        _ => {}
    }
}

/// Returns the meters that `actions` submit packets to.
pub(crate) fn meters_of<'a>(actions: impl IntoIterator<Item = &'a Action>) -> Vec<MeterId> {
    let mut meters = Vec::new();
    for action in actions {
        collect_meters(action, &mut meters);
    }
    meters
}

fn collect_meters(action: &Action, meters: &mut Vec<MeterId>) {
    match action {
        Action::Meter(meter) => meters.push(*meter),
        Action::Extended(Extension::Clone(inner)) => {
            inner
                .iter()
                .for_each(|action| collect_meters(action, meters));
        }
        _ => {}
    }
}

/// Returns the `learn` actions with a limit on, or the ownership of, all rules that they add.
pub(crate) fn restricted_learns<'a>(actions: impl Iterator<Item = &'a Action>) -> Vec<&'a Learn> {
    let mut learns = Vec::new();
    collect_learns(actions, &mut learns);
    learns
}

fn collect_learns<'a>(actions: impl Iterator<Item = &'a Action>, learns: &mut Vec<&'a Learn>) {
    for action in actions {
        match action {
            Action::Extended(Extension::Learn(learn)) if learn.limit != 0 || owns_rules(learn) => {
                learns.push(learn);
            }
            Action::Extended(Extension::Clone(inner)) => collect_learns(inner.iter(), learns),
            _ => {}
        }
    }
}

/// True if the rules that `learn` added are deleted with the rule of the action.
pub(crate) const fn owns_rules(learn: &Learn) -> bool {
    learn.flags.contains(LearnFlags::DELETE_LEARNED)
}

/// True if the action is a clause of a conjunction.
pub(crate) const fn is_clause(action: &Action) -> bool {
    matches!(action, Action::Extended(Extension::Conjunction { .. }))
}

/// True if several of the actions are clauses of one conjunction.
pub(crate) fn repeats_conjunction(actions: &[Action]) -> bool {
    let id = |action: &Action| match action {
        Action::Extended(Extension::Conjunction { id, .. }) => Some(*id),
        _ => None,
    };
    let mut ids: Vec<u32> = actions.iter().filter_map(id).collect();
    ids.sort_unstable();
    ids.windows(2).any(|two| two[0] == two[1])
}

/// True if the field belongs to the Ethernet header.
pub(crate) const fn is_ethernet_field(field: Field) -> bool {
    matches!(
        field,
        Field::EthDst
            | Field::EthSrc
            | Field::EthType
            | Field::VlanVid
            | Field::VlanPcp
            | Field::VlanTci
    )
}

/// True if `predicate` holds for all fields that an action reads or writes.
pub(crate) fn all_fields(action: &Action, predicate: &mut dyn FnMut(Field) -> bool) -> bool {
    match action {
        Action::SetField { field, .. } => predicate(*field),
        Action::Extended(Extension::Clone(inner)) => {
            inner.iter().all(|action| all_fields(action, predicate))
        }
        Action::Extended(extension) => {
            if let Extension::Learn(learn) = extension {
                let mut targets = learn.specs.iter().filter_map(|spec| match spec {
                    LearnSpec::Match { to, .. } | LearnSpec::Load { to, .. } => Some(to.field()),
                    LearnSpec::Output(_) => None,
                });
                if !targets.all(&mut *predicate) {
                    return false;
                }
            }
            fields_of(extension).into_iter().all(predicate)
        }
        _ => true,
    }
}

/// True if `predicate` holds for all subfields that an action reads or writes.
pub(crate) fn all_subfields(action: &Action, predicate: &mut dyn FnMut(Subfield) -> bool) -> bool {
    let Action::Extended(extension) = action else {
        return true;
    };
    match extension {
        Extension::Load { to, .. }
        | Extension::Pop(to)
        | Extension::CheckPacketLarger { to, .. } => predicate(*to),
        Extension::Move { from, to } => predicate(*from) && predicate(*to),
        Extension::Push(from) | Extension::OutputReg { from, .. } => predicate(*from),
        Extension::Multipath(multipath) => predicate(multipath.to),
        Extension::Bundle(bundle) => bundle.to.is_none_or(predicate),
        Extension::Learn(learn) => {
            let of_spec = |spec: &LearnSpec| {
                let source = |from: LearnSource| match from {
                    LearnSource::Subfield(from) => Some(from),
                    LearnSource::Value(_) => None,
                };
                match *spec {
                    LearnSpec::Match { to, from } | LearnSpec::Load { to, from } => {
                        [Some(to), source(from)]
                    }
                    LearnSpec::Output(from) => [Some(from), None],
                }
            };
            let specs = learn.specs.iter().flat_map(of_spec);
            specs.chain([learn.result]).flatten().all(predicate)
        }
        Extension::Conntrack(ct) => {
            let zone = match ct.zone {
                ConntrackZone::Subfield(zone) => predicate(zone),
                ConntrackZone::Number(_) => true,
            };
            zone && ct
                .actions
                .iter()
                .all(|action| all_subfields(action, predicate))
        }
        Extension::Clone(inner) => inner.iter().all(|action| all_subfields(action, predicate)),
        Extension::Sample(sample) => sample.sources().all(predicate),
        _ => true,
    }
}

/// Returns the subfield that the extension writes.
pub(crate) fn written_subfield(extension: &Extension) -> Option<Subfield> {
    match extension {
        Extension::Load { to, .. }
        | Extension::Move { to, .. }
        | Extension::Pop(to)
        | Extension::CheckPacketLarger { to, .. } => Some(*to),
        Extension::Multipath(multipath) => Some(multipath.to),
        Extension::Bundle(bundle) => bundle.to,
        Extension::Learn(learn) => learn.result,
        _ => None,
    }
}

/// Returns the fields of the packet that the extension reads or writes. Their prerequisites must
/// hold.
pub(crate) fn fields_of(extension: &Extension) -> Vec<Field> {
    match extension {
        Extension::Load { to, .. }
        | Extension::Pop(to)
        | Extension::CheckPacketLarger { to, .. } => vec![to.field()],
        Extension::Move { from, to } => vec![from.field(), to.field()],
        Extension::SetOption(term) => vec![term.field],
        Extension::DeleteField(field) => vec![*field],
        Extension::Push(from) | Extension::OutputReg { from, .. } => vec![from.field()],
        Extension::Multipath(multipath) => vec![multipath.to.field()],
        Extension::Bundle(bundle) => bundle.to.map(Subfield::field).into_iter().collect(),
        Extension::Learn(learn) => learn_sources(learn),
        Extension::Conntrack(ct) => conntrack_fields(ct),
        Extension::Sample(sample) => sample.sources().map(Subfield::field).collect(),
        Extension::Resubmit { .. }
        | Extension::ResubmitConnection { .. }
        | Extension::OutputTruncated { .. }
        | Extension::Controller(_)
        | Extension::DecTtl(_)
        | Extension::Note(_)
        | Extension::PopQueue
        | Extension::Exit
        | Extension::Clone(_)
        | Extension::FinTimeout { .. }
        | Extension::Conjunction { .. }
        | Extension::Encap(_)
        | Extension::Decap { .. }
        | Extension::DecNshTtl
        | Extension::Nat(_)
        | Extension::ConntrackClear
        | Extension::DebugSlow
        | Extension::DebugRecirc => Vec::new(),
    }
}

/// Returns the fields that a `ct` action reads and writes.
pub(crate) fn conntrack_fields(ct: &ConntrackAction) -> Vec<Field> {
    let mut fields: Vec<_> = match ct.zone {
        ConntrackZone::Subfield(zone) => vec![zone.field()],
        ConntrackZone::Number(_) => Vec::new(),
    };
    for action in &ct.actions {
        match action {
            Action::SetField { field, .. } => fields.push(*field),
            Action::Extended(extension) => fields.extend(fields_of(extension)),
            _ => {}
        }
    }
    fields
}

/// Returns the fields of the packet that a `learn` action copies from.
fn learn_sources(learn: &Learn) -> Vec<Field> {
    let sources = learn.specs.iter().filter_map(|spec| match *spec {
        LearnSpec::Match {
            from: LearnSource::Subfield(from),
            ..
        }
        | LearnSpec::Load {
            from: LearnSource::Subfield(from),
            ..
        }
        | LearnSpec::Output(from) => Some(from.field()),
        LearnSpec::Match { .. } | LearnSpec::Load { .. } => None,
    });
    sources.chain(learn.result.map(Subfield::field)).collect()
}

/// Returns the parse depth that an action needs.
pub(crate) fn depth_of(action: &Action) -> Depth {
    match action {
        Action::SetField { field, .. } => field.info().depth,
        Action::SetTpSrc(_) | Action::SetTpDst(_) => Depth::Transport,
        Action::Extended(extension) => depth_of_extension(extension),
        Action::SetNwSrc(_)
        | Action::SetNwDst(_)
        | Action::SetNwTos(_)
        | Action::PushMpls(_)
        | Action::PopMpls(_)
        | Action::PushPbb(_)
        | Action::PopPbb
        | Action::SetMplsTtl(_)
        | Action::DecMplsTtl
        | Action::SetIpTtl(_)
        | Action::DecIpTtl
        | Action::CopyTtlOut
        | Action::CopyTtlIn => Depth::Network,
        Action::Output { .. }
        | Action::Enqueue { .. }
        | Action::SetQueue(_)
        | Action::Group(_)
        | Action::Meter(_)
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::PushVlan(_)
        | Action::PopVlan => Depth::Link,
    }
}

fn depth_of_extension(extension: &Extension) -> Depth {
    let by_kind = match extension {
        Extension::DecTtl(_)
        | Extension::Encap(_)
        | Extension::Decap { .. }
        | Extension::DecNshTtl => Depth::Network,
        Extension::FinTimeout { .. } | Extension::Conntrack(_) => Depth::Transport,
        Extension::Clone(actions) => actions.iter().map(depth_of).max().unwrap_or_default(),
        Extension::Multipath(multipath) => depth_of_hash(multipath.fields),
        Extension::Bundle(bundle) => depth_of_hash(bundle.fields),
        _ => Depth::Link,
    };
    let by_fields = fields_of(extension).into_iter();
    by_fields
        .map(|field| field.info().depth)
        .max()
        .unwrap_or_default()
        .max(by_kind)
}

const fn depth_of_hash(fields: HashFields) -> Depth {
    match fields {
        HashFields::EthSrc => Depth::Link,
        HashFields::NwSrc | HashFields::NwDst | HashFields::SymmetricL3 => Depth::Network,
        HashFields::SymmetricL4 | HashFields::SymmetricL3L4 | HashFields::SymmetricL3L4Udp => {
            Depth::Transport
        }
    }
}
