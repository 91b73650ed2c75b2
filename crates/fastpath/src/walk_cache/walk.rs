//! A walk: the effects of the rules that a packet matches, and what they count.

use std::cell::Cell;

use base::{PortNo, TableId};
use conntrack::{CtRequest, CtZone};
use flow::{ConnectionFields, PipelineFields};
use packet::PlainHop;
use pipeline::{Counters, DropReason, SavedMemory};

use crate::exec::SteadyCall;
use crate::header_rewrite::HeaderRewrite;
use crate::packed_key::PackedKey;

/// An effect of rules on a packet.
#[derive(Debug)]
pub(crate) enum WalkEffect {
    Rewrite(HeaderRewrite),
    /// The rewrites of a router.
    Hop(PlainHop),
    /// Output to a port, which may be the ingress port.
    Send(PortNo),
    /// Forwarding as a learning switch.
    SendNormal,
    /// Output to a port with the fields of a tunnel, if the port is one.
    SendWith(PortNo, Box<PipelineFields>),
    SetInPort(PortNo),
    Drop(DropReason),
    /// What follows is done to a copy of the packet, up to the end of the copy.
    BeginCopy,
    EndCopy,
    Track(Box<TrackEffect>),
}

impl WalkEffect {
    /// True if it has memory of its own.
    pub(super) const fn is_large(&self) -> bool {
        matches!(self, Self::SendWith(..) | Self::Track(_))
    }

    /// True if it reads the key of the packet.
    #[inline]
    pub(crate) const fn reads_key(&self) -> bool {
        matches!(self, Self::Track(_))
    }

    /// Number of actions and stack entries that it holds.
    pub(super) fn saved_len(&self) -> usize {
        let Self::Track(track) = self else {
            return 0;
        };
        let memory = track
            .next
            .as_ref()
            .and_then(|next| next.resume.memory.as_ref());
        memory.map_or(0, SavedMemory::len)
    }
}

/// The effects of a walk that needs no executor: the rewrites of a router, if any, and one output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortWalk {
    pub(crate) hop: Option<PlainHop>,
    pub(crate) port: PortNo,
}

impl ShortWalk {
    /// Returns the effects as such, if they are no more.
    pub(super) fn of(effects: &[WalkEffect]) -> Option<Self> {
        match effects {
            [WalkEffect::Send(port)] => Some(Self {
                hop: None,
                port: *port,
            }),
            [WalkEffect::Hop(hop), WalkEffect::Send(port)] => Some(Self {
                hop: Some(*hop),
                port: *port,
            }),
            _ => None,
        }
    }
}

/// The effect of `ct`.
#[derive(Debug)]
pub(crate) struct TrackEffect {
    pub(crate) request: CtRequest,
    /// Fields of the connection before.
    pub(crate) earlier: Option<ConnectionFields>,
    pub(crate) steady: SteadyCall,
    /// The tables in which the packet, or a copy of it, continues.
    pub(crate) next: Option<TrackedWalk>,
}

/// The continuation of a tracked packet.
#[derive(Debug)]
pub(crate) struct TrackedWalk {
    /// Part of the keys of all walks that continue here.
    pub(crate) id: u64,
    pub(crate) table: TableId,
    /// True if the packet itself continues, and no copy: nothing is done to it afterwards.
    pub(crate) is_last: bool,
    /// The state in which the tables are executed if there is no walk.
    pub(crate) resume: ResumeState,
    /// Zone in which a packet was tracked next, to prefetch the connections of later ones.
    pub(crate) later_zone: Cell<Option<CtZone>>,
}

/// State of a packet, with which the executor continues.
#[derive(Debug)]
pub(crate) struct ResumeState {
    /// Key with the pipeline fields.
    pub(crate) key: PackedKey,
    /// Action set and stack, if they are used.
    pub(crate) memory: Option<SavedMemory>,
    pub(crate) nesting: u16,
    pub(crate) recursion: u16,
    pub(crate) lookups: usize,
    pub(crate) buckets_left: u32,
    pub(crate) actions_left: usize,
}

/// A lookup of a walk, which is counted: the counters of the rule, if one matched, and the table.
pub(super) type WalkLookup = (Option<Counters>, TableId);

/// Effects of the rules that a packet matches, and their lookups.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) effects: Box<[WalkEffect]>,
    pub(super) lookups: Box<[WalkLookup]>,
}

impl Walk {
    /// A walk of recorded effects. Copies after which nothing is done to the packet itself are
    /// omitted, so that the packet takes their place.
    pub(super) fn of(mut effects: Vec<WalkEffect>, lookups: Vec<WalkLookup>) -> Self {
        let is_end =
            |effect: &WalkEffect| matches!(effect, WalkEffect::EndCopy | WalkEffect::Drop(_));
        let len = effects.len();
        let tail = len
            - effects
                .iter()
                .rev()
                .take_while(|effect| is_end(effect))
                .count();
        let mut open = Vec::new();
        let mut omitted = vec![false; len];
        for (number, effect) in effects.iter().enumerate() {
            match effect {
                WalkEffect::BeginCopy => open.push(number),
                WalkEffect::EndCopy => {
                    let begin = open.pop();
                    if let Some(begin) = begin.filter(|_| number >= tail) {
                        (omitted[begin], omitted[number]) = (true, true);
                    }
                }
                _ => {}
            }
        }
        if let Some(WalkEffect::Track(track)) = effects[..tail].last_mut()
            && let Some(next) = &mut track.next
        {
            next.is_last = true;
        }
        let mut omitted = omitted.into_iter();
        effects.retain(|_| !omitted.next().unwrap_or(false));
        Self {
            effects: effects.into(),
            lookups: lookups.into(),
        }
    }
}

#[cfg(test)]
mod tests;
