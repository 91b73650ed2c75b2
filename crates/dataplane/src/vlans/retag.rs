//! What is to be done to a frame for its tags to be other ones.

use packet::wire::vlan::VlanTag;
use packet::{Depth, Frame, Packet};

use super::CUSTOMER;

/// TagStack of a frame at most that are put together here: two that it came with, and a provider's.
const TAGS_MAX: usize = 3;

/// No tag: the frame has none that could be changed.
const NONE: VlanTag = VlanTag {
    tpid: 0,
    pcp: 0,
    dei: false,
    vid: 0,
};

/// TagStack one behind the other, the outermost last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagStack {
    tags: [VlanTag; TAGS_MAX],
    len: usize,
}

impl TagStack {
    /// These, the outermost first.
    pub(super) fn of(tags: [Option<VlanTag>; 2]) -> Self {
        let mut all = Self {
            tags: [NONE; TAGS_MAX],
            len: 0,
        };
        let [outer, inner] = tags;
        inner.into_iter().for_each(|tag| all.push(tag));
        outer.into_iter().for_each(|tag| all.push(tag));
        all
    }

    fn as_slice(&self) -> &[VlanTag] {
        &self.tags[..self.len]
    }

    /// Puts one before all.
    pub(super) const fn push(&mut self, tag: VlanTag) {
        self.tags[self.len] = tag;
        self.len += 1;
    }

    /// Takes the outermost off.
    pub(super) const fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    /// Takes the outermost off, and one behind it that says no VLAN.
    pub(super) fn pop_with_empty(&mut self) {
        self.pop();
        if self.as_slice().last().is_some_and(|tag| tag.vid == 0) {
            self.pop();
        }
    }

    /// Has the outermost be this one.
    pub(super) fn set_first(&mut self, tag: VlanTag) {
        self.pop();
        self.push(tag);
    }

    /// Gives the outermost this priority; if there is none, one that is there for it.
    pub(super) fn give_priority(&mut self, pcp: u8) {
        match self.as_slice().last() {
            Some(tag) => self.set_first(VlanTag { pcp, ..*tag }),
            None if pcp != 0 => self.push(VlanTag {
                tpid: CUSTOMER,
                pcp,
                ..NONE
            }),
            None => {}
        }
    }

    /// Leaves out what says neither a VLAN nor a priority, of the two that are outermost, unless
    /// such tags are wanted.
    pub(super) fn drop_empty(&mut self, are_wanted: bool) {
        if are_wanted {
            return;
        }
        let seen = self.len.saturating_sub(2);
        let mut kept = seen;
        for place in seen..self.len {
            let tag = self.tags[place];
            if tag.vid != 0 || tag.pcp != 0 {
                self.tags[kept] = tag;
                kept += 1;
            }
        }
        self.len = kept;
    }
}

/// What becomes of a frame's tags at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagRewrite {
    /// How many are taken off.
    off: u8,
    /// How many are put on.
    on: u8,
    /// Those, the outermost last.
    tags: [VlanTag; 2],
}

impl TagRewrite {
    /// They stay as they are.
    pub const KEEP: Self = Self {
        off: 0,
        on: 0,
        tags: [NONE; 2],
    };

    /// What has a frame's tags be others: what both have innermost stays as it is.
    pub(super) fn between(before: TagStack, after: TagStack) -> Self {
        let (before, after) = (before.as_slice(), after.as_slice());
        let both = before.iter().zip(after);
        let same = both.take_while(|(before, after)| before == after).count();
        let mut change = Self::KEEP;
        before[same..].iter().for_each(|_| change.off += 1);
        for (place, tag) in change.tags.iter_mut().zip(&after[same..]) {
            *place = *tag;
            change.on += 1;
        }
        change
    }

    /// Does it. Returns whether that could be done: there may be no room for a tag.
    pub fn change(self, frame: &mut Frame) -> bool {
        if self == Self::KEEP {
            return true;
        }
        let Ok(mut packet) = Packet::parse(frame, Depth::Link) else {
            return false;
        };
        let before = packet.headers().link.tag;
        if let (Self { off: 1, on: 1, .. }, Some(before)) = (self, before)
            && before.tpid == self.tags[0].tpid
        {
            packet.set_vlan_vid(self.tags[0].vid);
            packet.set_vlan_pcp(self.tags[0].pcp);
            return true;
        }
        for _ in 0..self.off {
            if packet.pop_vlan().is_err() {
                return false;
            }
        }
        self.tags[..usize::from(self.on)].iter().all(|tag| {
            let pushed = packet.push_vlan(tag.tpid).is_ok();
            packet.set_vlan_vid(tag.vid);
            packet.set_vlan_pcp(tag.pcp);
            pushed
        })
    }
}
