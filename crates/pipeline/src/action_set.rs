//! The action set: what `write_actions` collects along the way and the last
//! table executes, in an order of its own (OF 1.3.5, 5.10).

use std::mem::{Discriminant, discriminant};

use base::PortNo;
use flow::{Action, Extension, Field, Part};

use crate::check_extension::written;

/// At most one action of each kind; of set-field, one for each field.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSet {
    /// In the order of execution.
    actions: Vec<Action>,
}

/// Two actions of the same kind cannot both be in the set.
type Kind = (
    Discriminant<Action>,
    Option<Discriminant<Extension>>,
    Option<Field>,
);

fn kind(action: &Action) -> Kind {
    let (extension, field) = match action {
        Action::SetField { field, .. } => (None, Some(*field)),
        // The same, but for who is told.
        Action::Extended(Extension::DecTtl(_)) => {
            return (discriminant(&Action::DecIpTtl), None, None);
        }
        Action::Extended(extension) => {
            let field = written(extension).map(Part::field);
            (Some(discriminant(extension)), field)
        }
        _ => (None, None),
    };
    (discriminant(action), extension, field)
}

/// The step of groups; behind it are outputs, and what comes to an output. Of these
/// only the first is taken.
const LAST: u8 = 10;

/// The action's step in the order of execution. What the specification does not
/// name goes with what it resembles: OpenFlow 1.0's actions with set-field.
const fn step(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 1,
        Action::PopVlan | Action::PopMpls(_) | Action::PopPbb => 2,
        Action::PushMpls(_) => 3,
        Action::PushPbb(_) => 4,
        Action::PushVlan(_) => 5,
        Action::CopyTtlOut => 6,
        Action::DecMplsTtl | Action::DecIpTtl | Action::Extended(Extension::DecTtl(_)) => 7,
        Action::SetField { .. }
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::SetNwSrc(_)
        | Action::SetNwDst(_)
        | Action::SetNwTos(_)
        | Action::SetTpSrc(_)
        | Action::SetTpDst(_)
        | Action::SetMplsTtl(_)
        | Action::SetIpTtl(_) => 8,
        Action::SetQueue(_) => 9,
        Action::Group(_) => LAST,
        Action::Output { .. } | Action::Enqueue { .. } => 11,
        // Open vSwitch looks up again in place of an output.
        Action::Extended(Extension::Resubmit { .. }) => 12,
        Action::Extended(_) => 8,
    }
}

impl ActionSet {
    /// Merges `actions` in: each takes the place of the one of its kind. Within a
    /// step the first written stays the first.
    pub(crate) fn write(&mut self, actions: &[Action]) {
        for action in actions {
            let same = |other: &&mut Action| kind(other) == kind(action);
            if let Some(place) = self.actions.iter_mut().find(same) {
                place.clone_from(action);
            } else {
                let at = self
                    .actions
                    .partition_point(|other| step(other) <= step(action));
                self.actions.insert(at, action.clone());
            }
        }
    }

    /// Empties the set.
    pub(crate) fn clear(&mut self) {
        self.actions.clear();
    }

    /// The port that the set outputs to; none if it hands the frame to a group
    /// instead (ONF EXT-233).
    pub(crate) fn output(&self) -> PortNo {
        match self.actions().last() {
            Some(Action::Output { port, .. } | Action::Enqueue { port, .. }) => *port,
            _ => PortNo::UNSET,
        }
    }

    /// The actions that are executed, in their order. Where there is a group there
    /// is no output, which comes behind it.
    pub(crate) fn actions(&self) -> &[Action] {
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
    fn the_order_is_the_specifications() {
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
    fn a_group_takes_the_place_of_outputs() {
        let mut set = ActionSet::default();
        let group = Action::Group(base::GroupId(1));
        set.write(&[Action::output(PortNo(1)), group.clone(), Action::PopVlan]);
        assert_eq!(set.actions(), [Action::PopVlan, group]);
        assert_eq!(set.output(), PortNo::UNSET);
    }

    #[test]
    fn an_output_takes_the_place_of_a_lookup() {
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
    fn of_a_kind_the_last_one_stays() {
        let mut set = ActionSet::default();
        set.write(&[Action::output(PortNo(1)), Action::set(Field::EthSrc, 1)]);
        set.write(&[Action::set(Field::EthDst, 2), Action::set(Field::EthSrc, 3)]);
        set.write(&[Action::output(PortNo(4))]);
        let wanted = [
            Action::set(Field::EthSrc, 3),
            Action::set(Field::EthDst, 2),
            Action::output(PortNo(4)),
        ];
        assert_eq!(set.actions(), wanted);
        set.clear();
        assert!(set.actions().is_empty());
    }
}
