//! Many rules changed at once under traffic: the time at which each change was sent, the time at
//! which a frame first showed it, and the time of the barrier reply.

use std::time::Duration;

use base::Instant;
use openflow::Message;
use record::Reading;
use stats::Histogram;

use super::TrialReport;
use super::figures::{bad, ms, ns, plain, rate, time};
use super::flows::MARKS;
use super::poll::Poll;
use super::rig::{BatchOutcome, ControlRig, LimitedInbox, MessageBatch};
use super::traffic::{FrameArrival, StaleForwarding, Traffic};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// Time for which frames are still sent after the barrier reply if all changes are in force.
const TAIL: Duration = Duration::from_millis(20);

/// Time limit for the effect of a change, from the barrier reply.
const EFFECT: Duration = Duration::from_secs(2);

/// Number of rules that are changed, with the values of OFLOPS.
pub(super) const RULES: Parameter = Parameter::axis(
    "rules",
    "rules that are changed at once",
    Values::numbers(
        &[100],
        &[
            1, 10, 25, 50, 75, 100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900,
            1_000,
        ],
        &[1, 10, 100, 1_000, 10_000],
        [1, 50_000],
    ),
);

/// Changes of one trial, and the mark by which a frame shows that its change is in force.
pub(super) struct RuleUpdate {
    /// One message for each flow, in the order of the flows.
    pub(super) messages: Vec<Message>,
    /// The DSCP of frames that match a changed rule. Without a mark, every frame that arrives
    /// matches a changed rule.
    pub(super) mark: Option<u8>,
    /// Frames per second.
    pub(super) pps: u64,
    /// Statistics that are requested at the same time.
    pub(super) poll: Option<Poll>,
}

/// Result of [`update`].
#[derive(Debug)]
pub(super) struct UpdateEffects {
    pub(super) outcome: BatchOutcome,
    /// Time at which the message of each flow was written to the socket.
    pub(super) written: Vec<Option<Instant>>,
    /// Time at which the first frame of each flow showed its change.
    pub(super) met: Vec<Option<Instant>>,
    /// Arrival of the last frame with the old mark.
    pub(super) last_old: Option<Instant>,
    /// Frames with the old mark that were sent after the barrier reply.
    pub(super) late: u64,
    /// Frames that were sent after the barrier reply and did not arrive.
    pub(super) lost_late: u64,
    /// Frames that were sent before the barrier reply and did not arrive.
    pub(super) lost: u64,
    /// Frames that showed a change before its message was sent.
    pub(super) premature: u64,
    /// Frames with neither the old nor the new mark.
    pub(super) foreign: u64,
    pub(super) duplicates: u64,
    pub(super) shortfall: Option<String>,
    /// Frames that were wrong before the first change.
    pub(super) stale: Option<StaleForwarding>,
    /// Interval between two frames of a flow, which limits the precision of all effect times.
    pub(super) resolution: Duration,
    pub(super) poll: Option<Poll>,
}

/// Effect of the changes on the frames.
struct UpdateWatcher {
    mark: Option<u8>,
    old: u8,
    began: Instant,
    answered: Option<Instant>,
    met: Vec<Option<Instant>>,
    waiting: usize,
    last_old: Option<Instant>,
    late: u64,
    premature: u64,
    foreign: u64,
}

impl UpdateWatcher {
    /// Sends the messages and the frames, until each change is in force or its time limit has
    /// passed.
    fn watch(
        &mut self,
        rig: &mut dyn ControlRig,
        traffic: &mut Traffic,
        batch: &mut MessageBatch,
        mut poll: Option<&mut Poll>,
    ) -> Result<(), TrialError> {
        let round = traffic.round();
        loop {
            traffic.turn(rig)?;
            if let Some(poll) = &mut poll {
                poll.turn(rig)?;
            }
            batch.turn(rig)?;
            let mut inbox = LimitedInbox::default();
            while let Some(message) = inbox.receive(rig)? {
                let of_poll = poll
                    .as_mut()
                    .is_some_and(|poll| poll.process(&message, rig));
                if !of_poll {
                    batch.process(&message, rig.version());
                }
            }
            self.answered = batch.answered();
            traffic.receive_frames(rig, |arrival| self.record(arrival))?;
            let Some(answered) = self.answered else {
                continue;
            };
            // A rejected change has no effect to wait for.
            let end = match self.waiting == 0 || batch.is_refused() {
                true => TAIL.max(round),
                false => EFFECT.max(round * 2),
            };
            if rig.now().since(answered) > end {
                return Ok(());
            }
        }
    }

    fn record(&mut self, arrival: FrameArrival) {
        let is_new = self.mark.is_none_or(|mark| arrival.mark == mark);
        if !is_new {
            self.foreign += u64::from(arrival.mark != self.old);
            self.last_old = Some(arrival.received);
            let late = self
                .answered
                .is_some_and(|answered| arrival.sent > answered);
            self.late += u64::from(late);
            return;
        }
        if arrival.received < self.began {
            self.premature += 1;
            return;
        }
        let index = usize::try_from(arrival.flow).unwrap_or(usize::MAX);
        if let Some(met @ None) = self.met.get_mut(index) {
            *met = Some(arrival.received);
            self.waiting -= 1;
        }
    }
}

/// Changes the rule of as many flows as there are messages, while frames of these flows are sent in
/// turn.
pub(super) fn update(
    rig: &mut dyn ControlRig,
    update: RuleUpdate,
) -> Result<UpdateEffects, TrialError> {
    let count = update.messages.len();
    let flows = u32::try_from(count).expect("the parameter is bounded");
    let mut traffic = Traffic::new(flows, update.pps, rig.now());
    // If a mark shows the change, earlier rules must have set the other mark.
    let stale = traffic.settle(rig, update.mark.map(|_| MARKS[0]))?;
    let start = rig.now();
    let mut watcher = UpdateWatcher {
        mark: update.mark,
        old: MARKS[0],
        began: start,
        answered: None,
        met: vec![None; count],
        waiting: count,
        last_old: None,
        late: 0,
        premature: 0,
        foreign: 0,
    };
    let mut batch = MessageBatch::new(update.messages, start);
    let mut poll = update.poll;
    watcher.watch(rig, &mut traffic, &mut batch, poll.as_mut())?;
    traffic.drain(rig, |arrival| watcher.record(arrival))?;
    let outcome = batch.outcome().expect("its barrier was answered");
    let written = (0..count).map(|index| rig.written_at(batch.xid(index)?));
    let after = outcome.answered + Duration::from_nanos(1);
    Ok(UpdateEffects {
        written: written.collect(),
        met: watcher.met,
        last_old: watcher.last_old,
        late: watcher.late,
        lost_late: traffic.lost_between(after, rig.now()),
        lost: traffic.lost_between(start, after),
        premature: watcher.premature,
        foreign: watcher.foreign,
        duplicates: traffic.duplicates(),
        shortfall: traffic.shortfall(),
        stale,
        resolution: traffic.round(),
        poll,
        outcome,
    })
}

/// Figures of an [`update`].
pub(super) const FIGURES: &[Figure] = &[
    time("first_ms", "First rule active", "ms"),
    time("last_ms", "Last rule active", "ms"),
    time("barrier_ms", "Barrier reply", "ms"),
    time("said_ms", "All messages sent", "ms"),
    rate("rules_s", "Rules per second", "/s"),
    time("effect_p50_us", "Effect, median", "µs"),
    time("effect_p99_us", "Effect, 99 %", "µs"),
    time("lag_ms", "Last rule active after the barrier reply", "ms"),
    bad("late", "Frames by the old state after the barrier reply"),
    bad("never", "Rules never active"),
    plain("resolution_us", "Sampling interval per rule", "µs"),
];

impl UpdateEffects {
    /// Returns the time at which the last change took effect, or none if a change had no effect.
    pub(super) fn last_met(&self) -> Option<Instant> {
        let all: Option<Vec<Instant>> = self.met.iter().copied().collect();
        all?.into_iter().max()
    }

    /// Returns the time from each message to its effect, in nanoseconds.
    pub(super) fn effects_ns(&self) -> Vec<u64> {
        let pairs = self.written.iter().zip(&self.met);
        pairs
            .filter_map(|(written, met)| Some(ns((*met)?.since((*written)?))))
            .collect()
    }

    /// Returns the number of changes that took effect before a change that was sent earlier, by
    /// more than the resolution.
    pub(super) fn overtaken(&self) -> u64 {
        let mut latest: Option<Instant> = None;
        let mut count = 0;
        for met in self.met.iter().flatten() {
            let earlier = latest.is_some_and(|latest| *met + self.resolution < latest);
            count += u64::from(earlier);
            latest = Some(latest.map_or(*met, |latest| latest.max(*met)));
        }
        count
    }

    /// Adds [`FIGURES`]. `late` is the number of frames that prove the barrier reply wrong.
    pub(super) fn put_figures(&self, late: u64, reading: &mut Reading) {
        let BatchOutcome {
            began,
            barrier_sent,
            answered,
            ..
        } = self.outcome;
        reading.put("barrier_ms", ms(answered.since(began)));
        reading.put("said_ms", ms(barrier_sent.since(began)));
        reading.put("resolution_us", self.resolution.as_secs_f64() * 1e6);
        reading.put("late", late as f64);
        let never = self.met.iter().filter(|met| met.is_none()).count();
        reading.put("never", never as f64);
        let seconds = answered.since(began).as_secs_f64();
        reading.put("rules_s", self.met.len() as f64 / seconds);
        let missing = || {
            let reason = self.outcome.first_refusal();
            reason.unwrap_or_else(|| format!("{never} rules were never active"))
        };
        match self.met.iter().flatten().min() {
            Some(first) => reading.put("first_ms", ms(first.since(began))),
            None => reading.lack("first_ms", missing()),
        }
        match self.last_met() {
            Some(last) => {
                reading.put("last_ms", ms(last.since(began)));
                // The lag is zero if the change took effect before the barrier reply.
                reading.put("lag_ms", ms(last.since(answered)));
            }
            None => ["last_ms", "lag_ms"]
                .iter()
                .for_each(|name| reading.lack(name, missing())),
        }
        self.put_effects(&missing(), reading);
    }

    fn put_effects(&self, missing: &str, reading: &mut Reading) {
        let effects = self.effects_ns();
        if effects.is_empty() {
            for name in ["effect_p50_us", "effect_p99_us"] {
                reading.lack(name, missing);
            }
            return;
        }
        let all = Histogram::of(effects);
        reading.put("effect_p50_us", all.quantile(0.5) as f64 / 1e3);
        reading.put("effect_p99_us", all.quantile(0.99) as f64 / 1e3);
        reading
            .histograms
            .insert("effect_ns".to_owned(), all.encode());
        let points = self.written.iter().zip(&self.met).zip(0_u32..);
        let since = |at: Instant| ms(at.since(self.outcome.began));
        let met = points
            .clone()
            .filter_map(|((_, met), n)| Some([f64::from(n), since((*met)?)]));
        reading.series.insert("met_ms".to_owned(), met.collect());
        let written = points.filter_map(|((at, _), n)| Some([f64::from(n), since((*at)?)]));
        reading
            .series
            .insert("handed_ms".to_owned(), written.collect());
    }

    /// Adds the reasons to void the trial, and all notes.
    pub(super) fn add_flaws(&self, report: &mut TrialReport) {
        if self.premature > 0 {
            let count = self.premature;
            let why = format!("{count} frames showed a change before it was sent");
            report.void.push(why);
        }
        if self.foreign > 0 {
            let count = self.foreign;
            report.void.push(format!(
                "{count} frames arrived with the mark of neither rule"
            ));
        }
        self.note(report);
        if self.duplicates > 0 {
            let count = self.duplicates;
            report
                .notes
                .push(format!("{count} duplicate frames arrived"));
        }
    }

    /// Adds the notes that apply to every experiment.
    pub(super) fn note(&self, report: &mut TrialReport) {
        if let Some(stale) = self.stale {
            stale.add_to(report);
        }
        report.notes.extend(self.shortfall.clone());
        report.notes.extend(self.outcome.first_refusal());
    }
}
