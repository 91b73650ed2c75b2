//! Changes of a frame's VLAN tags.

use packet::wire::vlan::VlanTag;
use packet::{Depth, Frame, Packet};

use super::CUSTOMER;

/// The maximum number of tags of a stack: two received ones, and a service tag.
const TAGS_MAX: usize = 3;

/// A placeholder for no tag.
const NONE: VlanTag = VlanTag {
    tpid: 0,
    pcp: 0,
    dei: false,
    vid: 0,
};

/// A stack of tags, the outermost last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagStack {
    tags: [VlanTag; TAGS_MAX],
    len: usize,
}

impl TagStack {
    /// Returns a stack of these tags, given outermost first.
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

    /// Pushes an outermost tag.
    pub(super) const fn push(&mut self, tag: VlanTag) {
        self.tags[self.len] = tag;
        self.len += 1;
    }

    /// Pops the outermost tag.
    pub(super) const fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    /// Pops the outermost tag, and a priority tag behind it.
    pub(super) fn pop_with_empty(&mut self) {
        self.pop();
        if self.as_slice().last().is_some_and(|tag| tag.vid == 0) {
            self.pop();
        }
    }

    /// Replaces the outermost tag.
    pub(super) fn set_first(&mut self, tag: VlanTag) {
        self.pop();
        self.push(tag);
    }

    /// Sets the priority of the outermost tag; pushes a priority tag if there is none.
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

    /// Removes tags with neither a VLAN nor a priority from the two outermost, unless such tags are
    /// wanted.
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

/// The change of a frame's tags at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagRewrite {
    /// The number of tags to pop.
    off: u8,
    /// The number of tags to push.
    on: u8,
    /// The tags to push, the outermost last.
    tags: [VlanTag; 2],
}

impl TagRewrite {
    /// No change.
    pub const KEEP: Self = Self {
        off: 0,
        on: 0,
        tags: [NONE; 2],
    };

    /// Returns the change between two stacks; common innermost tags stay.
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

    /// Changes a frame. Returns whether it succeeded: there may be no room for a tag.
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
