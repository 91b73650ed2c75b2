//! The action set: what `write_actions` collects along the way and the last
//! table executes, in an order of its own (OF 1.3.5, 5.10).

use std::mem::{Discriminant, discriminant};

use base::PortNo;
use flow::{Action, Extension, Field};

/// At most one action of each kind; of set-field, one for each field.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSet {
    /// In the order of execution.
    actions: Vec<Action>,
}

/// Two actions of the same kind cannot both be in the set.
type Kind = (Discriminant<Action>, Option<Field>);

fn kind(action: &Action) -> Kind {
    let field = match action {
        Action::SetField { field, .. } => Some(*field),
        Action::Extended(Extension::Load { to, .. } | Extension::Move { to, .. }) => {
            Some(to.field())
        }
        _ => None,
    };
    (discriminant(action), field)
}

/// The action's step in the order of execution. What the specification does not
/// name goes with what it resembles: OpenFlow 1.0's actions with set-field.
const fn step(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 1,
        Action::PopVlan | Action::PopMpls(_) => 2,
        Action::PushMpls(_) => 3,
        Action::PushVlan(_) => 5,
        Action::CopyTtlOut => 6,
        Action::DecMplsTtl | Action::DecIpTtl => 7,
        Action::SetField { .. }
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::SetNwSrc(_)
        | Action::SetNwDst(_)
        | Action::SetNwTos(_)
        | Action::SetTpSrc(_)
        | Action::SetTpDst(_)
        | Action::SetMplsTtl(_)
        | Action::SetIpTtl(_)
        | Action::Extended(_) => 8,
        Action::SetQueue(_) => 9,
        Action::Group(_) => 10,
        Action::Output { .. } | Action::Enqueue { .. } => 11,
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
        match self.actions.last() {
            Some(Action::Output { port, .. } | Action::Enqueue { port, .. })
                if !self.actions.iter().any(|a| matches!(a, Action::Group(_))) =>
            {
                *port
            }
            _ => PortNo::UNSET,
        }
    }

    /// The actions in the order of execution.
    pub(crate) fn actions(&self) -> &[Action] {
        &self.actions
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
            Action::PushMpls(0x8847),
            Action::PopVlan,
            Action::CopyTtlIn,
        ]);
        let wanted = [
            Action::CopyTtlIn,
            Action::PopVlan,
            Action::PushMpls(0x8847),
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
