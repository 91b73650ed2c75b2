//! Frames that go a trail, and those that make one.

use base::PortNo;
use pipeline::Totals;

use super::{AHEAD, Group, Streak};
use crate::places::Places;
use crate::runner::BatchRun;
use crate::trail::Followed;

impl<'a> BatchRun<'a> {
    /// Has those of these frames leave that go a trail, and follows some of the others, which
    /// it answers.
    #[inline]
    pub(super) fn go_trails(&mut self, group: Group) -> Group {
        // Trails are of frames with which nothing goes when they come in.
        let used = self.runner.trails.used();
        let Some((asked, _)) = used.filter(|_| self.arrival.is_none()) else {
            return group;
        };
        // What is told apart here is not frame by frame.
        let others = match asked.pairs {
            0 | 1 => self.go_trails_of::<2>(group.places),
            2 => self.go_trails_of::<4>(group.places),
            3 => self.go_trails_of::<6>(group.places),
            _ => self.go_trails_of::<8>(group.places),
        };
        self.runner.trails.note_found(group.places, others);
        match others.is_none() {
            true => Group {
                places: others,
                totals: Totals::default(),
                ..group
            },
            false => self.follow_some(group, others),
        }
    }

    /// The same, where they are told apart by so many words. Answers which are left.
    #[inline(never)]
    fn go_trails_of<const N: usize>(&mut self, places: Places) -> Places {
        let (runner, doors) = (&mut *self.runner, &mut self.doors);
        let Some((asked, kept)) = runner.trails.used() else {
            return places;
        };
        let now = self.ground.now;
        let mut others = Places::NONE;
        for place in places {
            let ahead = &mut self.ahead[place % AHEAD];
            let mark = asked.mark::<N>(&runner.lanes[place % AHEAD]);
            ahead.leaves = kept.go(&mark, (ahead.weight, now), |port| doors.is_way_out(port));
            others.add(Places::of_if(place, ahead.leaves.is_none()));
        }
        others
    }

    #[inline(never)]
    fn follow_some(&mut self, group: Group, others: Places) -> Group {
        let runner = &mut *self.runner;
        if let Some((asked, _)) = runner.trails.used() {
            self.followed = Some(Followed::of(others, asked, &runner.lanes));
        }
        Group {
            places: others,
            totals: self.weigh_of(others, &group),
            ..group
        }
    }

    /// Notes that those of these frames that are followed have found their rule, and leave
    /// then if a port is told of.
    #[inline]
    pub(super) fn follow(&mut self, streak: Streak<'a>, leaving: Option<PortNo>) {
        if self.followed.is_some() {
            self.note_followed(streak, leaving);
        }
    }

    #[inline(never)]
    fn note_followed(&mut self, streak: Streak<'a>, leaving: Option<PortNo>) {
        let Streak { rule, places } = streak;
        if let (Some(followed), Some((_, kept))) = (&mut self.followed, self.runner.trails.used()) {
            followed.find(places, rule, leaving, kept);
        }
    }
}
