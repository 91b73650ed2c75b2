//! Frames whose ways are noted while they go them, and become trails where they leave.

use base::PortNo;
use pipeline::Rule;

use super::asked::{Mark, WORDS};
use super::kept::RULES;
use super::{Asked, Kept};
use crate::ahead::AHEAD;
use crate::lanes::Lanes;
use crate::places::Places;

/// Frames that are followed of those that are read together: so it costs little where frames
/// never come again.
const FOLLOWED: usize = 4;

const _: () = assert!(FOLLOWED <= AHEAD, "of those that are read ahead");

/// A frame whose way is noted.
#[derive(Clone, Copy, Debug)]
struct Way<'a> {
    place: usize,
    mark: Mark<WORDS>,
    rules: [Option<&'a Rule>; RULES],
    /// How many it has found, which may be too many.
    len: usize,
}

/// See the top of this file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Followed<'a>([Option<Way<'a>>; FOLLOWED]);

impl<'a> Followed<'a> {
    /// Some of these frames, of these words.
    pub(crate) fn of(places: Places, asked: &Asked, lanes: &[Lanes; AHEAD]) -> Self {
        let mut followed = Self::default();
        for (room, place) in followed.0.iter_mut().zip(places) {
            *room = Some(Way {
                place,
                mark: asked.whole_mark(&lanes[place % AHEAD]),
                rules: [None; RULES],
                len: 0,
            });
        }
        followed
    }

    /// Frames in these places have found a rule, and leave then if a port is told of.
    pub(crate) fn find(
        &mut self,
        places: Places,
        rule: &'a Rule,
        leaving: Option<PortNo>,
        kept: &mut Kept,
    ) {
        let ways = self.0.iter_mut().flatten();
        for way in ways.filter(|way| places.have(way.place)) {
            if let Some(room) = way.rules.get_mut(way.len) {
                *room = Some(rule);
            }
            way.len += 1;
            if let (Some(port), Some(rules)) = (leaving, way.rules.get(..way.len)) {
                kept.keep(&way.mark, rules.iter().copied().flatten(), port);
            }
        }
    }
}
