//! Many rules changed at once under traffic: when each change was told, when it was met by a
//! frame, and when the device said that all was done.

use std::time::Duration;

use base::Instant;
use openflow::Message;
use record::Reading;
use stats::Histogram;

use super::Found;
use super::figures::{bad, ms, ns, plain, rate, time};
use super::flows::MARKS;
use super::poll::Poll;
use super::rig::{Few, Order, Rig, Settled};
use super::traffic::{Seen, Traffic, Unsettled};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// Frames go on for so long behind the barrier's reply, if all changes are met.
const TAIL: Duration = Duration::from_millis(20);

/// A change that no frame has met so long after the barrier's reply is given up.
const EFFECT: Duration = Duration::from_secs(2);

/// How many rules are changed: OFLOPS' own numbers.
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

/// What is changed, and by what a frame tells that it has met the change.
pub(super) struct Change {
    /// A message for each flow, in order.
    pub(super) messages: Vec<Message>,
    /// Frames of the flow come out with this code point when its change is in force; without
    /// one, they come out.
    pub(super) mark: Option<u8>,
    /// Frames a second.
    pub(super) pps: u64,
    /// What is asked meanwhile.
    pub(super) poll: Option<Poll>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) settled: Settled,
    /// When each flow's message was handed to the system.
    pub(super) handed: Vec<Option<Instant>>,
    /// When the first frame met each flow's change.
    pub(super) met: Vec<Option<Instant>>,
    /// When the last frame came out that bore the old mark.
    pub(super) last_old: Option<Instant>,
    /// Frames that came out by the old state though they were sent after the barrier's reply.
    pub(super) late: u64,
    /// Frames that were sent after the barrier's reply and did not come out.
    pub(super) lost_late: u64,
    /// Frames that were sent before it and did not.
    pub(super) lost: u64,
    /// Frames that met a change before it was told.
    pub(super) premature: u64,
    /// Frames that bore neither the old nor the new mark.
    pub(super) foreign: u64,
    pub(super) duplicates: u64,
    pub(super) shortfall: Option<String>,
    /// What was wrong before anything was changed.
    pub(super) unsettled: Option<Unsettled>,
    /// The time between two frames of a flow: no change is seen more sharply.
    pub(super) resolution: Duration,
    pub(super) poll: Option<Poll>,
}

/// What frames tell while changes are under way.
struct Watcher {
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

impl Watcher {
    /// Has the order done while frames go on, until each change was met or is given up.
    fn watch(
        &mut self,
        rig: &mut dyn Rig,
        traffic: &mut Traffic,
        order: &mut Order,
        mut poll: Option<&mut Poll>,
    ) -> Result<(), TrialError> {
        let round = traffic.round();
        loop {
            traffic.turn(rig)?;
            if let Some(poll) = &mut poll {
                poll.turn(rig)?;
            }
            order.turn(rig)?;
            let mut few = Few::default();
            while let Some(told) = few.hear(rig)? {
                let of_poll = poll.as_mut().is_some_and(|poll| poll.hear(&told, rig));
                if !of_poll {
                    order.hear(&told, rig.version());
                }
            }
            self.answered = order.answered();
            traffic.catch(rig, |seen| self.see(seen))?;
            let Some(answered) = self.answered else {
                continue;
            };
            // What was refused is not waited for.
            let end = match self.waiting == 0 || order.is_refused() {
                true => TAIL.max(round),
                false => EFFECT.max(round * 2),
            };
            if rig.now().since(answered) > end {
                return Ok(());
            }
        }
    }

    fn see(&mut self, seen: Seen) {
        let is_new = self.mark.is_none_or(|mark| seen.mark == mark);
        if !is_new {
            self.foreign += u64::from(seen.mark != self.old);
            self.last_old = Some(seen.came);
            let late = self.answered.is_some_and(|answered| seen.sent > answered);
            self.late += u64::from(late);
            return;
        }
        if seen.came < self.began {
            self.premature += 1;
            return;
        }
        let place = usize::try_from(seen.flow).unwrap_or(usize::MAX);
        if let Some(met @ None) = self.met.get_mut(place) {
            *met = Some(seen.came);
            self.waiting -= 1;
        }
    }
}

/// Changes the rules of as many flows as there are messages, under a frame of each in turn.
pub(super) fn change(rig: &mut dyn Rig, change: Change) -> Result<Changed, TrialError> {
    let count = change.messages.len();
    let flows = u32::try_from(count).expect("the bounds say so");
    let mut traffic = Traffic::new(flows, change.pps, rig.now());
    // Where a change shows by a mark, another was there before.
    let unsettled = traffic.settle(rig, change.mark.map(|_| MARKS[0]))?;
    let start = rig.now();
    let mut watcher = Watcher {
        mark: change.mark,
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
    let mut order = Order::new(change.messages, start);
    let mut poll = change.poll;
    watcher.watch(rig, &mut traffic, &mut order, poll.as_mut())?;
    traffic.drain(rig, |seen| watcher.see(seen))?;
    let settled = order.settled().expect("its barrier was answered");
    let handed = (0..count).map(|place| rig.handed_at(order.xid(place)?));
    let after = settled.answered + Duration::from_nanos(1);
    Ok(Changed {
        handed: handed.collect(),
        met: watcher.met,
        last_old: watcher.last_old,
        late: watcher.late,
        lost_late: traffic.lost_between(after, rig.now()),
        lost: traffic.lost_between(start, after),
        premature: watcher.premature,
        foreign: watcher.foreign,
        duplicates: traffic.duplicates(),
        shortfall: traffic.shortfall(),
        unsettled,
        resolution: traffic.round(),
        poll,
        settled,
    })
}

/// What of changes is told.
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

impl Changed {
    /// When the last change was met, if all were.
    pub(super) fn last_met(&self) -> Option<Instant> {
        let all: Option<Vec<Instant>> = self.met.iter().copied().collect();
        all?.into_iter().max()
    }

    /// From the handing over of each message until its change was met, in nanoseconds.
    pub(super) fn effects_ns(&self) -> Vec<u64> {
        let pairs = self.handed.iter().zip(&self.met);
        pairs
            .filter_map(|(handed, met)| Some(ns((*met)?.since((*handed)?))))
            .collect()
    }

    /// Changes that were met before one that was told earlier, by more than frames can tell.
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

    /// Puts [`FIGURES`]. `late` are the frames that prove that a barrier has lied.
    pub(super) fn tell(&self, late: u64, reading: &mut Reading) {
        let Settled {
            began,
            said,
            answered,
            ..
        } = self.settled;
        reading.put("barrier_ms", ms(answered.since(began)));
        reading.put("said_ms", ms(said.since(began)));
        reading.put("resolution_us", self.resolution.as_secs_f64() * 1e6);
        reading.put("late", late as f64);
        let never = self.met.iter().filter(|met| met.is_none()).count();
        reading.put("never", never as f64);
        let seconds = answered.since(began).as_secs_f64();
        reading.put("rules_s", self.met.len() as f64 / seconds);
        let missing = || {
            let reason = self.settled.first_refusal();
            reason.unwrap_or_else(|| format!("no frame met {never} of the rules"))
        };
        match self.met.iter().flatten().min() {
            Some(first) => reading.put("first_ms", ms(first.since(began))),
            None => reading.lack("first_ms", missing()),
        }
        match self.last_met() {
            Some(last) => {
                reading.put("last_ms", ms(last.since(began)));
                // Before the barrier's reply is in time.
                reading.put("lag_ms", ms(last.since(answered)));
            }
            None => ["last_ms", "lag_ms"]
                .iter()
                .for_each(|name| reading.lack(name, missing())),
        }
        self.tell_effects(&missing(), reading);
    }

    fn tell_effects(&self, missing: &str, reading: &mut Reading) {
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
        let points = self.handed.iter().zip(&self.met).zip(0_u32..);
        let since = |at: Instant| ms(at.since(self.settled.began));
        let met = points
            .clone()
            .filter_map(|((_, met), n)| Some([f64::from(n), since((*met)?)]));
        reading.series.insert("met_ms".to_owned(), met.collect());
        let handed = points.filter_map(|((at, _), n)| Some([f64::from(n), since((*at)?)]));
        reading
            .series
            .insert("handed_ms".to_owned(), handed.collect());
    }

    /// Says what there is against it.
    pub(super) fn doubt(&self, found: &mut Found) {
        if self.premature > 0 {
            let count = self.premature;
            let why = format!("{count} frames met a change before it was told");
            found.void.push(why);
        }
        if self.foreign > 0 {
            let count = self.foreign;
            found
                .void
                .push(format!("{count} frames came out as no rule says"));
        }
        self.note(found);
        if self.duplicates > 0 {
            let count = self.duplicates;
            found.notes.push(format!("{count} frames came out twice"));
        }
    }

    /// Notes what a reader should know in any case.
    pub(super) fn note(&self, found: &mut Found) {
        if let Some(unsettled) = self.unsettled {
            unsettled.tell(found);
        }
        found.notes.extend(self.shortfall.clone());
        found.notes.extend(self.settled.first_refusal());
    }
}
