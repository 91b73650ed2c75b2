//! The action set: `write_actions` adds to it, and the end of the pipeline executes it in the order
//! of the specification (OF 1.3.5, 5.10).

use std::mem::{Discriminant, discriminant};

use base::PortNo;
use flow::{Action, Extension, Field, Wide};

/// At most one action of each kind, and all actions that write fields, in the order in which they
/// were written (`ovs-actions(7)`, Action Sets).
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSet {
    /// The actions, in order of execution.
    actions: Vec<Action>,
}

/// The kind of an action. The set holds one action of each.
type ActionKind = (Discriminant<Action>, Option<Discriminant<Extension>>);

fn kind(action: &Action) -> ActionKind {
    match action {
        // The two differ only in the controllers that they notify.
        Action::Extended(Extension::DecTtl(_)) => (discriminant(&Action::DecIpTtl), None),
        Action::Extended(extension) => (discriminant(action), Some(discriminant(extension))),
        _ => (discriminant(action), None),
    }
}

/// Rank of actions that write fields.
const WRITES: u8 = 14;

/// Rank of groups. Outputs and lookups follow; only the first of these is executed.
const LAST: u8 = 16;

/// Returns the action's rank in the order of execution: that of the specification, and where it has
/// none, that of Open vSwitch.
const fn step(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 1,
        Action::PopVlan => 2,
        Action::PopPbb => 3,
        Action::PopMpls(_) => 4,
        Action::Extended(Extension::Decap { .. }) => 5,
        Action::Extended(Extension::Encap(_)) => 6,
        Action::PushMpls(_) => 7,
        Action::PushPbb(_) => 8,
        Action::PushVlan(_) => 9,
        Action::CopyTtlOut => 10,
        Action::DecIpTtl | Action::Extended(Extension::DecTtl(_)) => 11,
        Action::DecMplsTtl => 12,
        Action::Extended(Extension::DecNshTtl) => 13,
        Action::SetField { .. }
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::SetNwSrc(_)
        | Action::SetNwDst(_)
        | Action::SetNwTos(_)
        | Action::SetTpSrc(_)
        | Action::SetTpDst(_)
        | Action::SetMplsTtl(_)
        | Action::SetIpTtl(_) => WRITES,
        // Quality of service (OF 1.5.1, 5.6.1).
        Action::Meter(_) | Action::SetQueue(_) => 15,
        Action::Group(_) => LAST,
        // Open vSwitch tracks only without an output.
        Action::Extended(Extension::ConntrackClear) => 19,
        Action::Extended(Extension::Conntrack(_)) => 20,
        Action::Output { .. } | Action::Enqueue { .. } => 17,
        // Open vSwitch resubmits in place of an output.
        Action::Extended(Extension::Resubmit { .. } | Extension::ResubmitConnection { .. }) => 18,
        Action::Extended(_) => WRITES,
    }
}

/// Returns the bits of a field that an action overwrites.
fn written(action: &Action) -> Option<(Field, u128)> {
    match action {
        Action::SetField { field, mask, .. } => Some((*field, *mask)),
        Action::Extended(Extension::Load { to, .. }) if !to.is_tunnel_option() => {
            Some((to.field(), to.mask()))
        }
        _ => None,
    }
}

/// Returns the bits of a tunnel option that an action overwrites.
fn written_of_option(action: &Action) -> Option<(Field, Wide)> {
    match action {
        Action::Extended(Extension::SetOption(term)) => Some((term.field, term.mask)),
        Action::Extended(Extension::Load { to, .. }) if to.is_tunnel_option() => {
            Some((to.field(), to.wide_mask()))
        }
        _ => None,
    }
}

/// True if `later` overwrites the whole effect of `earlier`.
fn covers(later: &Action, earlier: &Action) -> bool {
    match (written_of_option(later), written_of_option(earlier)) {
        (Some((field, mask)), Some((old, bits))) => {
            return field == old && (bits & !mask).is_zero();
        }
        (None, None) => {}
        _ => return false,
    }
    match (written(later), written(earlier)) {
        (Some((field, mask)), Some((old, bits))) => field == old && bits & !mask == 0,
        (None, None) => !is_move(later) && kind(later) == kind(earlier),
        _ => false,
    }
}

const fn is_move(action: &Action) -> bool {
    matches!(action, Action::Extended(Extension::Move { .. }))
}

impl ActionSet {
    /// Merges `actions`: each replaces the one of its kind. Actions that write fields are appended;
    /// earlier ones stay while they have an effect.
    pub(crate) fn write(&mut self, actions: &[Action]) {
        for action in actions {
            if step(action) == WRITES {
                self.write_field(action);
                continue;
            }
            let same = |other: &&mut Action| kind(other) == kind(action);
            match self.actions.iter_mut().find(same) {
                Some(place) => place.clone_from(action),
                None => self.insert(action),
            }
        }
    }

    fn write_field(&mut self, action: &Action) {
        // A move has read the bits.
        if !self.actions.iter().any(is_move) {
            self.actions
                .retain(|earlier| step(earlier) != WRITES || !covers(action, earlier));
        }
        self.insert(action);
    }

    fn insert(&mut self, action: &Action) {
        let at = self
            .actions
            .partition_point(|other| step(other) <= step(action));
        self.actions.insert(at, action.clone());
    }

    /// Returns the number of actions.
    pub(crate) const fn len(&self) -> usize {
        self.actions.len()
    }

    /// Empties the set.
    pub(crate) fn clear(&mut self) {
        self.actions.clear();
    }

    /// Returns the port that the set outputs to; none if it has a group, which replaces the output
    /// (ONF EXT-233).
    pub(crate) fn output(&self) -> PortNo {
        match self.actions().last() {
            Some(Action::Output { port, .. } | Action::Enqueue { port, .. }) => *port,
            _ => PortNo::UNSET,
        }
    }

    /// Returns the actions to execute, in their order. A group excludes the output after it.
    pub(crate) fn actions(&self) -> &[Action] {
        if self.actions.is_empty() {
            return &[];
        }
        let executed = match self.actions.iter().map(step).find(|step| *step >= LAST) {
            Some(last) => self.actions.partition_point(|action| step(action) <= last),
            None => self.actions.len(),
        };
        &self.actions[..executed]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_set_executes_in_the_order_of_the_specification() {
        let mut set = ActionSet::default();
        let queued = Action::SetQueue(base::QueueId(1));
        set.write(&[
            Action::output(PortNo(1)),
            queued.clone(),
            Action::set(Field::EthSrc, 1),
            Action::DecIpTtl,
            Action::CopyTtlOut,
            Action::PushVlan(0x8100),
            Action::PushPbb(0x88e7),
            Action::PushMpls(0x8847),
            Action::PopVlan,
            Action::CopyTtlIn,
        ]);
        let wanted = [
            Action::CopyTtlIn,
            Action::PopVlan,
            Action::PushMpls(0x8847),
            Action::PushPbb(0x88e7),
            Action::PushVlan(0x8100),
            Action::CopyTtlOut,
            Action::DecIpTtl,
            Action::set(Field::EthSrc, 1),
            queued,
            Action::output(PortNo(1)),
        ];
        assert_eq!(set.actions(), wanted);
    }

    #[test]
    fn group_replaces_outputs() {
        let mut set = ActionSet::default();
        let group = Action::Group(base::GroupId(1));
        set.write(&[Action::output(PortNo(1)), group.clone(), Action::PopVlan]);
        assert_eq!(set.actions(), [Action::PopVlan, group]);
        assert_eq!(set.output(), PortNo::UNSET);
    }

    #[test]
    fn output_replaces_a_resubmission() {
        let mut set = ActionSet::default();
        let lookup = Action::Extended(Extension::Resubmit {
            port: PortNo::IN_PORT,
            table: None,
        });
        set.write(&[lookup.clone(), Action::PopVlan]);
        assert_eq!(set.actions(), [Action::PopVlan, lookup]);
        set.write(&[Action::output(PortNo(1))]);
        assert_eq!(set.actions(), [Action::PopVlan, Action::output(PortNo(1))]);
        assert_eq!(set.output(), PortNo(1));
    }

    #[test]
    fn field_writes_keep_their_order() {
        use flow::Subfield;
        let part = |offset, value| {
            let to = Subfield::new(Field::Reg0, offset, 8).expect("of 32");
            Action::Extended(Extension::Load { to, value })
        };
        let whole = Action::set(Field::Reg0, 7);
        let mut set = ActionSet::default();
        set.write(&[part(0, 1), whole.clone(), part(0, 2), part(8, 3)]);
        assert_eq!(set.actions(), [whole.clone(), part(0, 2), part(8, 3)]);
        // The moved bits stay, since later ones would differ.
        let (from, to) = (Subfield::whole(Field::Reg0), Subfield::whole(Field::Reg1));
        let moved = Action::Extended(Extension::Move { from, to });
        set.write(&[moved.clone(), whole.clone()]);
        assert_eq!(set.actions()[3..], [moved, whole]);
        assert_eq!(set.len(), 5);
    }

    #[test]
    fn last_action_of_a_kind_stays() {
        let mut set = ActionSet::default();
        set.write(&[Action::output(PortNo(1)), Action::set(Field::EthSrc, 1)]);
        set.write(&[Action::set(Field::EthDst, 2), Action::set(Field::EthSrc, 3)]);
        set.write(&[Action::output(PortNo(4))]);
        let wanted = [
            Action::set(Field::EthDst, 2),
            Action::set(Field::EthSrc, 3),
            Action::output(PortNo(4)),
        ];
        assert_eq!(set.actions(), wanted);
        set.clear();
        assert!(set.actions().is_empty());
    }
}
