//! Ways that frames have gone: a frame that has all that tables look at in common with one
//! that came before finds what that one found, in each of them. So frames of few flows are
//! looked up once where there are many tables.
//!
//! Whether a frame goes such a *trail* is never a matter of what becomes of it, only of what it costs: the
//! words of both are compared whole, and a trail is of one view of the tables. Trails are
//! few and of fixed size, and are looked for only where frames come by several tables and
//! most find one: traffic that has no use for them pays for no more than an attempt now and
//! then. They end where frames leave and nothing else becomes of them; of others there are
//! none.

use base::Instant;
use pipeline::Pipeline;

use crate::classifier::View;
use crate::places::Places;

mod asked;
mod followed;
mod kept;
mod unsettled;

pub(crate) use asked::Asked;
pub(crate) use followed::Followed;
pub(crate) use kept::Kept;

/// After so many times that frames were read ahead it is asked whether trails are of use.
const WINDOW: u32 = 512;

/// So many tables frames come by, on an average, where it is tried.
const TABLES_MIN: u32 = 4;

/// One frame of so many goes a trail at least, or none are looked for ...
const SHARE: u64 = 2;

/// ... for so many windows, and twice as many if that is so again, up to the second.
const REST_MIN: u32 = 32;
const REST_MAX: u32 = 1024;

/// Changes of the tables within a window that trails outlast: all begin anew with each.
const CHANGES_MAX: u32 = 8;

/// Whether trails are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not for so many windows.
    Resting(u32),
    /// Yes, and none is surprised that there are few.
    Learning,
    /// Yes.
    Used,
    /// Yes, of use or not.
    Always,
}

/// A worker's trails.
#[derive(Debug)]
pub(crate) struct Trails {
    writer: usize,
    stage: Stage,
    /// None if the tables look at too much.
    asked: Option<Asked>,
    /// None until they are looked for.
    kept: Option<Kept>,
    /// How long the next rest is.
    rest: u32,
    window: Window,
}

/// What has happened in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// How often frames were read ahead, and by how many tables they came.
    looks: u32,
    tables: u32,
    frames: u64,
    hits: u64,
    changes: u32,
}

impl Trails {
    /// None yet, of a worker who counts as `writer`.
    pub(crate) fn new(writer: usize) -> Self {
        Self {
            writer,
            stage: Stage::Resting(0),
            asked: None,
            kept: None,
            rest: REST_MIN,
            window: Window::default(),
        }
    }

    /// Has them looked for whether they are of use or not.
    pub(crate) const fn always(&mut self) {
        self.stage = Stage::Always;
    }

    /// What frames are compared by, and those that there are, if they are looked for in this
    /// batch.
    #[inline]
    pub(crate) fn used(&mut self) -> Option<(&Asked, &mut Kept)> {
        self.asked.as_ref().zip(self.kept.as_mut())
    }

    /// Begins a batch.
    #[inline]
    pub(crate) fn begin(&mut self, view: &View, pipeline: &Pipeline, now: Instant) {
        if self.window.looks >= WINDOW {
            self.judge();
        }
        let is_swept = match &mut self.kept {
            None => true,
            Some(kept) => {
                kept.begin(now);
                !kept.sweep()
            }
        };
        if is_swept && matches!(self.stage, Stage::Resting(_)) {
            return;
        }
        let is_stale = !self.asked.as_ref().is_some_and(|asked| asked.is_of(view));
        if is_stale && !matches!(self.stage, Stage::Resting(_)) {
            self.turn_to(view, pipeline);
        }
    }

    /// Writes down for rules and tables what frames that went trails have counted.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.settle_all();
        }
    }

    /// Whether all that was counted is written down.
    #[inline]
    pub(crate) fn have_settled(&self) -> bool {
        self.kept.as_ref().is_none_or(Kept::has_settled)
    }

    /// Takes note that frames were read ahead and came by so many tables.
    #[inline]
    pub(crate) const fn note(&mut self, tables: u32) {
        self.window.looks += 1;
        self.window.tables += tables;
    }

    /// And that of these frames those went no trail.
    #[inline]
    pub(crate) const fn note_found(&mut self, of: Places, others: Places) {
        self.window.frames += of.len() as u64;
        self.window.hits += of.without(others).len() as u64;
    }

    /// Decides what to do in the next window.
    #[cold]
    fn judge(&mut self) {
        let window = std::mem::take(&mut self.window);
        let is_worth_it = window.tables >= TABLES_MIN * window.looks;
        self.stage = match self.stage {
            Stage::Resting(0) if is_worth_it => Stage::Learning,
            Stage::Resting(left) => Stage::Resting(left.saturating_sub(1)),
            Stage::Learning => Stage::Used,
            Stage::Used if window.frames < SHARE * window.hits => {
                self.rest = REST_MIN;
                Stage::Used
            }
            Stage::Used => self.repose(),
            Stage::Always => Stage::Always,
        };
    }

    /// Lets go of all of them.
    fn repose(&mut self) -> Stage {
        let rest = self.rest;
        self.rest = (2 * rest).min(REST_MAX);
        self.asked = None;
        if let Some(kept) = &mut self.kept {
            kept.forget();
        }
        Stage::Resting(rest)
    }

    /// Begins anew, for this view.
    #[cold]
    fn turn_to(&mut self, view: &View, pipeline: &Pipeline) {
        self.window.changes += 1;
        if self.window.changes > CHANGES_MAX && self.stage != Stage::Always {
            self.stage = self.repose();
            return;
        }
        let kept = self.kept.get_or_insert_with(|| Kept::new(self.writer));
        kept.turn_to(view, pipeline);
        self.asked = Asked::of(view);
        if self.asked.is_none() && self.stage != Stage::Always {
            self.stage = self.repose();
        }
    }
}

/// Nothing that was counted is lost.
impl Drop for Trails {
    fn drop(&mut self) {
        self.settle();
    }
}

#[cfg(test)]
mod tests;
