//! Shift of sequence numbers by a helper that changed the length of a payload.

use crate::alg::{SequenceAdjust, SequenceSkew};
use crate::facts::{PacketFacts, TransportFacts};
use crate::key::TrafficDirection;

/// Returns the numbers of a segment as the sender of the shifted payload has them.
pub(crate) fn without_skew(
    facts: &PacketFacts,
    skew: SequenceSkew,
    direction: TrafficDirection,
) -> PacketFacts {
    let mut facts = *facts;
    if let TransportFacts::Tcp(segment) = &mut facts.transport
        && direction != skew.direction
    {
        let shift = skew.of_acknowledgment(segment.acknowledgment);
        segment.acknowledgment = segment
            .acknowledgment
            .wrapping_add_signed(shift.wrapping_neg());
    }
    facts
}

/// Returns the shift of a segment's numbers on its way to the receiver.
pub(crate) fn adjust_of(
    facts: &PacketFacts,
    skew: SequenceSkew,
    direction: TrafficDirection,
) -> Option<SequenceAdjust> {
    let TransportFacts::Tcp(segment) = &facts.transport else {
        return None;
    };
    let adjust = if direction == skew.direction {
        SequenceAdjust {
            sequence: skew.of_sequence(segment.sequence),
            acknowledgment: 0,
        }
    } else {
        let shift = skew.of_acknowledgment(segment.acknowledgment);
        SequenceAdjust {
            sequence: 0,
            acknowledgment: shift.wrapping_neg(),
        }
    };
    (adjust != SequenceAdjust::default()).then_some(adjust)
}
