//! Fields that have a class together: two classes make a third, which a table tells. So of
//! fields with few classes one vector is looked at, and not one for each.

use crate::ahead::AHEAD;
use crate::lanes::Lanes;

use super::classes::Classes;

/// See the top of this file.
#[derive(Debug)]
pub(super) struct Joint {
    first: Classes,
    others: Vec<Other>,
}

/// A field whose classes make others, with those of fields before.
#[derive(Debug)]
struct Other {
    classes: Classes,
    /// How many they are.
    count: usize,
    /// By class before, and of this field.
    both: Box<[u16]>,
}

impl Other {
    /// The class that two make.
    #[inline]
    fn with(&self, before: u16, class: u16) -> u16 {
        self.both[usize::from(before) * self.count + usize::from(class)]
    }
}

impl Joint {
    /// One field alone.
    pub(super) const fn of(first: Classes) -> Self {
        let others = Vec::new();
        Self { first, others }
    }

    /// With a field more, of so many classes; `both` says by class before, and of this field,
    /// which they make.
    pub(super) fn with(mut self, field: Self, count: usize, both: Vec<u16>) -> Self {
        let both = both.into();
        let classes = field.first;
        self.others.push(Other {
            classes,
            count,
            both,
        });
        self
    }

    /// The class of a frame.
    #[inline]
    pub(super) fn find(&self, lanes: &Lanes) -> u16 {
        let mut class = self.first.find(lanes);
        for other in &self.others {
            class = other.with(class, other.classes.find(lanes));
        }
        class
    }

    /// The same of each of these frames, field by field, so that the memory of one stays near,
    /// and no frame waits for another.
    #[inline]
    pub(super) fn find_each(&self, frames: &[Lanes], classes: &mut [u16; AHEAD]) {
        self.first.each(frames.iter(), |place, class| {
            classes[place % AHEAD] = class;
        });
        for other in &self.others {
            other.classes.each(frames.iter(), |place, class| {
                let before = &mut classes[place % AHEAD];
                *before = other.with(*before, class);
            });
        }
    }

    /// How many fields are searched, and how many are looked up.
    pub(super) fn extent(&self) -> (usize, usize) {
        let others = self.others.iter().map(|other| &other.classes);
        let all = others.chain([&self.first]);
        let searched = all.filter(|classes| classes.are_searched()).count();
        (searched, 1 + self.others.len() - searched)
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let others = self.others.iter();
        let others = others.map(|other| size_of_val(&*other.both) + other.classes.bytes());
        self.first.bytes() + others.sum::<usize>()
    }
}
