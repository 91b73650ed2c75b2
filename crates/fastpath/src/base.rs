//! Rules that were compiled together, in one of the forms. None is added afterwards; one
//! that dies says from which epoch on it is not there, so that older views still
//! find it.

use std::cmp::Ordering;
use std::sync::Arc;

use base::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use pipeline::{Counters, Rule};
use sys::cache::prefetch;
use sys::processor;

use crate::ahead::AHEAD;
use crate::bits::{self, Bits};
use crate::direct::{self, Direct};
use crate::lanes::{Conditions, LANES, Lanes, Parts};
use crate::places::Places;
use crate::prefix::{Family, NONE, Prefix};
use crate::segment::Epoch;

/// The epoch of death of what lives.
const NEVER: Epoch = Epoch::MAX;

/// A base is remade when more than this, and more than one of so many, has died.
const DEAD_MIN: usize = 8;
const DEAD_SHARE: usize = 8;

/// No form takes these rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

impl From<bits::Unfit> for Unfit {
    fn from(bits::Unfit: bits::Unfit) -> Self {
        Self
    }
}

/// How rules are found.
#[derive(Debug)]
enum Form {
    Direct(Direct),
    Prefix(Prefix),
    Bits(Bits),
}

/// What a frame needs that finds a rule, side by side, so that the rule is not touched, which
/// lies elsewhere.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct Outcome {
    /// From which epoch on the rule is not there.
    died: AtomicU64,
    /// Where its frames are counted.
    pub(crate) counters: Counters,
    /// What it does, if that is little.
    pub(crate) gist: u32,
}

#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<Outcome>() == 32, "half a cache line");

impl Outcome {
    fn of(rule: &Arc<Rule>) -> Self {
        Self {
            died: AtomicU64::new(NEVER),
            counters: rule.counters.clone(),
            gist: rule.instructions.inline_program(),
        }
    }

    /// Whether the rule is there, as `epoch` saw it.
    #[inline]
    pub(crate) fn is_seen(&self, epoch: Epoch) -> bool {
        epoch < self.died.load(Relaxed)
    }

    fn is_alive(&self) -> bool {
        self.died.load(Relaxed) == NEVER
    }
}

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Base {
    /// In the order in which they are tried.
    rules: Box<[Arc<Rule>]>,
    /// By rule.
    outcomes: Box<[Outcome]>,
    /// How many have died; the writer's own.
    dead: AtomicUsize,
    form: Form,
    /// The highest priority that one of the rules has.
    pub(crate) highest: u16,
    /// Which bits of which words they look at, ...
    asked: Box<[(u8, u64)]>,
    /// ... and what of a frame those are.
    pub(crate) parts: Parts,
}

impl Base {
    /// Compiles rules of one table, which are alive, by comparison if they are few and as
    /// bit vectors otherwise.
    pub(crate) fn of(mut rules: Vec<Arc<Rule>>) -> Result<Self, Unfit> {
        rules.sort_by(order);
        let form = if rules.len() <= direct::RULES_MAX {
            Form::Direct(Direct::of(&rules))
        } else {
            Form::Bits(Bits::of(&rules)?)
        };
        Ok(Self::new(rules, form))
    }

    /// Compiles rules of one family, as prefixes.
    pub(crate) fn of_family(family: Family, mut rules: Vec<Arc<Rule>>) -> Result<Self, Unfit> {
        rules.sort_by(order);
        let prefix = Prefix::of(family, &rules).ok_or(Unfit)?;
        Ok(Self::new(rules, Form::Prefix(prefix)))
    }

    fn new(rules: Vec<Arc<Rule>>, form: Form) -> Self {
        let asked = asked_by(&rules);
        let parts = asked.iter();
        let parts = parts.map(|(lane, mask)| Parts::of(usize::from(*lane), *mask));
        Self {
            outcomes: rules.iter().map(Outcome::of).collect(),
            dead: AtomicUsize::new(0),
            form,
            highest: rules.first().map_or(0, |first| first.priority()),
            parts: parts.fold(Parts::default(), Parts::and),
            asked,
            rules: rules.into(),
        }
    }

    /// Which bits of which words they look at.
    pub(crate) fn asked(&self) -> &[(u8, u64)] {
        &self.asked
    }

    /// What a lookup among so many rules of many shapes is likely to take, in modelled
    /// instructions, in as many bases as it takes.
    pub(crate) fn likely_cost(rules: usize) -> usize {
        let full = rules / bits::RULES_MAX * Bits::likely_cost(bits::RULES_MAX);
        full + match rules % bits::RULES_MAX {
            0 => 0,
            few @ 1..=direct::RULES_MAX => Direct::likely_cost(few),
            many => Bits::likely_cost(many),
        }
    }

    /// The rule that the frame finds among those that are wanted, as `epoch` saw it.
    #[inline]
    pub(crate) fn find(
        &self,
        lanes: &Lanes,
        epoch: Epoch,
        wanted: impl Fn(&Rule) -> bool,
    ) -> Option<&Arc<Rule>> {
        let found = self.place(lanes, epoch, |place| wanted(&self.rules[place]));
        found.map(|place| &self.rules[place])
    }

    /// The place of it.
    #[inline]
    fn place(&self, lanes: &Lanes, epoch: Epoch, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let seen = |place: usize| self.outcomes[place].is_seen(epoch) && wanted(place);
        match &self.form {
            Form::Direct(direct) => direct.find(lanes, seen),
            Form::Prefix(prefix) => prefix.find(lanes, seen),
            Form::Bits(bits) => bits.find(lanes, seen),
        }
    }

    /// The places of the rules that these frames find if all goes as it mostly does: of one
    /// that is not there it is asked once more. None of those that find none.
    pub(crate) fn likely_each(
        &self,
        lanes: &[Lanes; AHEAD],
        of: Places,
        epoch: Epoch,
    ) -> [u32; AHEAD] {
        let prefetch = |place: u32| {
            let outcome = self.outcomes.get(place as usize);
            outcome.into_iter().for_each(prefetch);
        };
        let each = match &self.form {
            Form::Prefix(prefix) => return prefix.likely_each(lanes, of, prefetch),
            Form::Bits(bits) => processor::with_avx2(|| bits.likely_each(lanes, of)),
            Form::Direct(_) => {
                let mut each = [NONE; AHEAD];
                for place in of {
                    let found = self.place(&lanes[place % AHEAD], epoch, |_| true);
                    let found = found.and_then(|found| u32::try_from(found).ok());
                    each[place % AHEAD] = found.unwrap_or(NONE);
                }
                each
            }
        };
        of.for_each(|place| prefetch(each[place % AHEAD]));
        each
    }

    /// What a frame needs that finds the rule in this place, if it is there and `epoch` saw it.
    #[inline]
    pub(crate) fn outcome(&self, place: u32, epoch: Epoch) -> Option<&Outcome> {
        let outcome = self.outcomes.get(place as usize)?;
        outcome.is_seen(epoch).then_some(outcome)
    }

    /// The rule in this place.
    #[inline]
    pub(crate) fn rule(&self, place: u32) -> Option<&Arc<Rule>> {
        self.rules.get(place as usize)
    }

    /// The same, if it compares rules one after the other.
    #[inline]
    pub(crate) const fn as_direct(&self) -> Option<&Direct> {
        match &self.form {
            Form::Direct(direct) => Some(direct),
            Form::Prefix(_) | Form::Bits(_) => None,
        }
    }

    /// The rule that the frame finds by `direct`, which is its form, as `epoch` saw it.
    #[inline]
    pub(crate) fn find_direct(
        &self,
        direct: &Direct,
        lanes: &Lanes,
        epoch: Epoch,
    ) -> Option<&Arc<Rule>> {
        let found = direct.find(lanes, |place| self.outcomes[place].is_seen(epoch));
        found.map(|place| &self.rules[place])
    }

    /// The rules that are there as `epoch` saw it, and their places, in the order in which they
    /// are tried.
    #[inline]
    pub(crate) fn seen(&self, epoch: Epoch) -> impl Iterator<Item = (usize, &Rule)> {
        let all = self.rules.iter().zip(&self.outcomes).enumerate();
        all.filter(move |(_, (_, outcome))| outcome.is_seen(epoch))
            .map(|(place, (rule, _))| (place, &**rule))
    }

    /// Lets a rule die in `epoch`. Answers whether it was there and alive. By the one
    /// writer only.
    pub(crate) fn remove(&self, rule: &Arc<Rule>, epoch: Epoch) -> bool {
        let found = self.rules.binary_search_by(|other| order(other, rule));
        let is_it = |place: &usize| {
            Arc::ptr_eq(&self.rules[*place], rule) && self.outcomes[*place].is_alive()
        };
        let Some(place) = found.ok().filter(is_it) else {
            return false;
        };
        self.outcomes[place].died.store(epoch, Relaxed);
        self.dead.fetch_add(1, Relaxed);
        true
    }

    /// Whether so many have died that it is to be remade.
    pub(crate) fn is_worn(&self) -> bool {
        let dead = self.dead.load(Relaxed);
        dead == self.rules.len() || dead > DEAD_MIN.max(self.rules.len() / DEAD_SHARE)
    }

    /// How many rules are alive.
    pub(crate) fn len(&self) -> usize {
        self.rules.len() - self.dead.load(Relaxed)
    }

    /// Those that are alive.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Arc<Rule>> {
        let both = self.rules.iter().zip(&self.outcomes);
        both.filter(|(_, outcome)| outcome.is_alive())
            .map(|(rule, _)| rule)
    }

    /// What a lookup takes, in modelled instructions.
    pub(crate) fn cost(&self) -> usize {
        match &self.form {
            Form::Direct(direct) => direct.cost(),
            Form::Prefix(prefix) => prefix.cost(),
            Form::Bits(bits) => bits.cost(),
        }
    }

    /// The form's name, and why it is that.
    pub(crate) fn describe(&self) -> (&'static str, String) {
        let rules = self.len();
        match &self.form {
            Form::Direct(_) => ("direct", format!("{rules} rules: compared one by one")),
            Form::Prefix(prefix) => {
                let depth = prefix.depth();
                let why =
                    format!("{rules} rules on the prefix of one field: {depth} within each other");
                ("prefix", why)
            }
            Form::Bits(bits) => {
                let looked_at = bits.describe();
                let why = format!("{rules} rules of many shapes: {looked_at}");
                ("bits", why)
            }
        }
    }

    /// The bytes it takes, besides the rules.
    pub(crate) fn bytes(&self) -> usize {
        let of_form = match &self.form {
            Form::Direct(direct) => direct.bytes(),
            Form::Prefix(prefix) => prefix.bytes(),
            Form::Bits(bits) => bits.bytes(),
        };
        of_form + self.rules.len() * (size_of::<Arc<Rule>>() + size_of::<Outcome>())
    }
}

/// The order in which two rules of one table are tried.
pub(crate) fn order(one: &Arc<Rule>, other: &Arc<Rule>) -> Ordering {
    if one.precedes(other) {
        Ordering::Less
    } else if other.precedes(one) {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// Which bits of which words these rules look at.
fn asked_by(rules: &[Arc<Rule>]) -> Box<[(u8, u64)]> {
    let mut asked = [0; LANES];
    for rule in rules {
        let mut room = [(0, 0); LANES];
        for (lane, mask) in Conditions::of(rule.matching()).masks(&mut room) {
            asked[usize::from(*lane)] |= mask;
        }
    }
    (0..).zip(asked).filter(|(_, mask)| *mask != 0).collect()
}
