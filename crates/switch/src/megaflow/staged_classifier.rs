//! Staged lookup with tuple space search: the bits of a packet that a table's lookup examines.
//!
//! V. Srinivasan, S. Suri, G. Varghese, "Packet classification using tuple space search", SIGCOMM
//! 1999; B. Pfaff et al., "The design and implementation of Open vSwitch", NSDI 2015, section 5.
//!
//! ```text
//!   subtables, by priority          stages of one subtable: a set of hashes for each
//!
//!   +-----------------------+       in_port | eth_type | nw_src | tp_dst
//!   | in_port, tcp, tp_dst  |          |         |          |        |
//!   +-----------------------+          hit --->  hit --->  miss
//!   | nw_src/24             |                               |
//!   +-----------------------+                     tp_dst was not examined
//!   | (everything)          |
//!   +-----------------------+
//! ```
//!
//! - Rules with the same mask form a subtable. Subtables are searched in the order of their highest
//!   priority, and the search ends at the first whose highest priority is not above that of the
//!   rule that is found: masks of the rest do not count.
//! - A subtable is searched in up to four stages: metadata, L2, L3, L4. If no rule of the subtable
//!   agrees with the packet in the fields up to a stage, the fields of later stages do not count.
//! - A prefix trie for each of the table's prefix fields excludes subtables by a part of the field.
//!   So does one of the subtable's ports, after all else has agreed.
//! - A clause of a conjunctive match is a soft match: if the clauses of a conjunction are complete,
//!   the packet is looked up again with the conjunction's id.
//!
//! The result is exact: a packet that agrees with this one in the examined bits finds the same
//! rule. The rule itself is found by the interpreter. The cost is O(n) to build and O(subtables +
//! prefixes) for a lookup: this is cold code, for traces and lists of flows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flow::{Action, Extension, TunnelOptions};
use pipeline::Rule;

use super::key::{KeyBits, KeyField, SEGMENTS, of_term};
use super::prefix_trie::{PrefixSearch, PrefixTrie, prefix_len, prefix_mask};

/// The fields of a mask, and their bits.
type FieldMasks = Vec<(KeyField, u128)>;

/// The rules of a table, as a staged lookup examines them.
#[derive(Clone, Debug)]
pub(super) struct StagedClassifier {
    /// By descending highest priority.
    subtables: Vec<StagedSubtable>,
    tries: Vec<(KeyField, PrefixTrie)>,
}

/// The rules with one mask.
#[derive(Clone, Debug)]
struct StagedSubtable {
    priority_max: u16,
    /// The fields of each stage; the last stage selects the rule.
    stages: Vec<FieldMasks>,
    /// The values up to each stage but the last.
    hashes: Vec<BTreeSet<Vec<u128>>>,
    /// Rules by all values, in descending priority.
    rules: BTreeMap<Vec<u128>, Vec<Arc<Rule>>>,
    /// The prefix lengths of the mask on the fields of the tries.
    prefix_lens: Vec<u32>,
    /// The bits of tunnel options, which belong to the first stage.
    options: TunnelOptions,
    ports: Option<(u128, u32, PrefixTrie)>,
}

/// The state of the tries in one lookup.
type TrieResults = Vec<Option<PrefixSearch>>;

/// The packet of a lookup.
pub(super) struct ClassifiedPacket<'a> {
    /// The values of its fields.
    pub(super) bits: &'a mut KeyBits,
    /// The options of its tunnel.
    pub(super) options: &'a TunnelOptions,
}

impl StagedClassifier {
    /// Builds the subtables of rules in descending priority, with tries on these fields.
    pub(super) fn new<'r>(
        rules: impl Iterator<Item = &'r Arc<Rule>>,
        prefixes: &[KeyField],
    ) -> Self {
        let tries = prefixes
            .iter()
            .map(|field| (*field, PrefixTrie::new(field.address_bits())));
        let mut classifier = Self {
            subtables: Vec::new(),
            tries: tries.collect(),
        };
        let mut places = BTreeMap::new();
        for rule in rules {
            let (mut mask, mut value) = (KeyBits::ZERO, KeyBits::ZERO);
            for (at, bits, ones) in rule.matching().terms().filter_map(|term| of_term(&term)) {
                mask.add(at, ones);
                value.add(at, bits);
            }
            for term in rule.matching().options() {
                mask.add_option(term.field, term.mask);
            }
            if mask.get(KeyField::PACKET_TYPE) == 0 {
                // A match without a packet type accepts only Ethernet frames.
                mask.set(KeyField::PACKET_TYPE, u128::from(u32::MAX));
            }
            let next = places.len();
            let place = *places.entry(mask.clone()).or_insert(next);
            if place == next {
                let subtable = StagedSubtable::new(&mask, rule.priority(), prefixes);
                classifier.subtables.push(subtable);
            }
            classifier.add(place, rule, &value);
        }
        // The rules are sorted, so the subtables are.
        classifier
    }

    fn add(&mut self, place: usize, rule: &Arc<Rule>, value: &KeyBits) {
        let subtable = &mut self.subtables[place];
        for ((field, trie), len) in self.tries.iter_mut().zip(&subtable.prefix_lens) {
            if *len > 0 {
                trie.insert(value.get(*field), *len);
            }
        }
        subtable.add(rule, value);
    }

    /// Returns the priority of the rule that the packet matches, and adds the examined bits to
    /// `examined`.
    pub(super) fn look_up(
        &self,
        packet: &mut ClassifiedPacket<'_>,
        examined: &mut KeyBits,
    ) -> Option<u16> {
        self.search(packet, examined, true)
            .map(|rule| rule.priority())
    }

    fn search(
        &self,
        packet: &mut ClassifiedPacket<'_>,
        examined: &mut KeyBits,
        has_conjunctions: bool,
    ) -> Option<&Arc<Rule>> {
        let mut tries: TrieResults = vec![None; self.tries.len()];
        let (mut hard, mut soft): (Option<&Arc<Rule>>, Vec<&Arc<Rule>>) = (None, Vec::new());
        for subtable in &self.subtables {
            if hard.is_some_and(|rule| subtable.priority_max <= rule.priority()) {
                break;
            }
            let found = self.search_subtable(subtable, packet, &mut tries, examined);
            let is_better =
                |rule: &&Arc<Rule>| hard.is_none_or(|hard| rule.priority() > hard.priority());
            let Some(rule) = found.filter(is_better) else {
                continue;
            };
            if !rule.is_clause() {
                hard = Some(rule);
            } else if has_conjunctions {
                soft.push(rule);
            }
        }
        self.resolve(hard, soft, packet, examined)
    }

    /// Returns the rule that counts: that of a complete conjunction above the certain match, or the
    /// certain match.
    fn resolve<'s>(
        &'s self,
        hard: Option<&'s Arc<Rule>>,
        mut soft: Vec<&'s Arc<Rule>>,
        packet: &mut ClassifiedPacket<'_>,
        examined: &mut KeyBits,
    ) -> Option<&'s Arc<Rule>> {
        soft.retain(|rule| hard.is_none_or(|hard| rule.priority() > hard.priority()));
        let Some(priority) = soft.iter().map(|rule| rule.priority()).max() else {
            return hard;
        };
        let same = soft.iter().filter(|rule| rule.priority() == priority);
        for id in complete_conjunctions(same.copied()) {
            let before = packet.bits.get(KeyField::CONJ_ID);
            packet.bits.set(KeyField::CONJ_ID, u128::from(id));
            let found = self.search(packet, examined, false);
            packet.bits.set(KeyField::CONJ_ID, before);
            if found.is_some() {
                return found;
            }
        }
        // Rules of lower priority with the same match take the place of the clauses.
        let lower = soft
            .iter()
            .filter_map(|rule| match rule.priority() == priority {
                true => self.next_below(rule),
                false => Some(*rule),
            });
        let lower: Vec<_> = lower.collect();
        let certain = lower.iter().filter(|rule| !rule.is_clause());
        let certain = certain.max_by_key(|rule| rule.priority()).copied();
        let lower_soft = lower
            .iter()
            .filter(|rule| rule.is_clause())
            .copied()
            .collect();
        let best = match (hard, certain) {
            (Some(hard), Some(rule)) if rule.priority() > hard.priority() => Some(rule),
            (None, rule) => rule,
            (hard, _) => hard,
        };
        self.resolve(best, lower_soft, packet, examined)
    }

    /// Returns the rule with the same match and the next lower priority.
    fn next_below(&self, rule: &Arc<Rule>) -> Option<&Arc<Rule>> {
        let mut lists = self
            .subtables
            .iter()
            .flat_map(|subtable| subtable.rules.values());
        let list = lists.find(|list| list.iter().any(|other| Arc::ptr_eq(other, rule)))?;
        list.iter().find(|other| other.priority() < rule.priority())
    }

    fn search_subtable<'s>(
        &self,
        subtable: &'s StagedSubtable,
        packet: &ClassifiedPacket<'_>,
        tries: &mut TrieResults,
        examined: &mut KeyBits,
    ) -> Option<&'s Arc<Rule>> {
        let mut values = Vec::new();
        for (place, stage) in subtable.stages.iter().enumerate() {
            if self.is_excluded(subtable, stage, packet, tries, examined) {
                subtable.fold(examined, place);
                return None;
            }
            if place == 0 && !subtable.accepts_options(packet.options) {
                subtable.fold(examined, 1);
                return None;
            }
            values.extend(stage.iter().map(|(at, mask)| packet.bits.get(*at) & mask));
            if let Some(hashes) = subtable.hashes.get(place)
                && !hashes.contains(&values)
            {
                subtable.fold(examined, place + 1);
                return None;
            }
        }
        let rules = subtable.rules.get(&values).map_or(&[][..], Vec::as_slice);
        let found = rules
            .iter()
            .find(|rule| accepts_options(rule, packet.options));
        match (&subtable.ports, found) {
            (Some((mask, len, trie)), None) => {
                let examined_before = ports_of(examined);
                subtable.fold(examined, subtable.stages.len());
                let search = trie.search(ports_of(packet.bits) & mask);
                debug_assert!(*len > 0, "a mask of ports has bits");
                let part = mask & prefix_mask(32, search.examined);
                set_ports(examined, examined_before | part);
            }
            _ => subtable.fold(examined, subtable.stages.len()),
        }
        found
    }

    /// Returns true if a trie excludes the subtable by bits that would be examined anyway, or are
    /// fewer than the subtable's own.
    fn is_excluded(
        &self,
        subtable: &StagedSubtable,
        stage: &FieldMasks,
        packet: &ClassifiedPacket<'_>,
        tries: &mut TrieResults,
        examined: &mut KeyBits,
    ) -> bool {
        let all = self.tries.iter().zip(&subtable.prefix_lens).zip(tries);
        for (((field, trie), len), result) in all {
            if *len == 0 || stage.iter().all(|(at, _)| at != field) {
                continue;
            }
            let search = *result.get_or_insert_with(|| match has_field(packet.bits, *field) {
                true => trie.search(packet.bits.get(*field)),
                false => PrefixSearch::ALL,
            });
            if search.may_match(*len) {
                continue;
            }
            let mask = prefix_mask(field.address_bits(), search.examined);
            if search.examined <= *len {
                examined.add(*field, mask);
                return true;
            }
            if examined.get(*field) & mask == mask {
                return true;
            }
        }
        false
    }
}

impl StagedSubtable {
    fn new(mask: &KeyBits, priority_max: u16, prefixes: &[KeyField]) -> Self {
        let fields = KeyField::all().map(|at| (at, mask.get(at)));
        let fields = fields.filter(|(_, mask)| *mask != 0);
        let mut stages = vec![FieldMasks::new(); SEGMENTS];
        for (at, mask) in fields {
            stages[at.segment()].push((at, mask));
        }
        stages.retain(|stage| !stage.is_empty());
        let lens = prefixes
            .iter()
            .map(|at| prefix_len(at.address_bits(), mask.get(*at)));
        let ports = ports_of(mask);
        Self {
            priority_max,
            hashes: vec![BTreeSet::new(); stages.len().saturating_sub(1)],
            stages,
            rules: BTreeMap::new(),
            prefix_lens: lens.collect(),
            options: mask.options().clone(),
            ports: (ports != 0).then(|| (ports, 32 - ports.trailing_zeros(), PrefixTrie::new(32))),
        }
    }

    fn add(&mut self, rule: &Arc<Rule>, value: &KeyBits) {
        let mut values = Vec::new();
        for (place, stage) in self.stages.iter().enumerate() {
            values.extend(stage.iter().map(|(at, _)| value.get(*at)));
            if let Some(hashes) = self.hashes.get_mut(place) {
                hashes.insert(values.clone());
            }
        }
        if let Some((mask, len, trie)) = &mut self.ports {
            trie.insert(ports_of(value) & *mask, *len);
        }
        self.rules.entry(values).or_default().push(Arc::clone(rule));
    }

    /// Returns true if a rule accepts the options of a packet.
    fn accepts_options(&self, options: &TunnelOptions) -> bool {
        let mut rules = self.rules.values().flatten();
        self.options.is_empty() || rules.any(|rule| accepts_options(rule, options))
    }

    /// Adds the bits of the first stages.
    fn fold(&self, examined: &mut KeyBits, stages: usize) {
        for (at, mask) in self.stages.iter().take(stages).flatten() {
            examined.add(*at, *mask);
        }
        if stages > 0 {
            examined.add_options(&self.options);
        }
    }
}

/// Returns true if the rule accepts the tunnel options of a packet.
fn accepts_options(rule: &Rule, options: &TunnelOptions) -> bool {
    let mut terms = rule.matching().options();
    terms.all(|term| term.accepts(options))
}

/// Returns the ids of the conjunctions that these clauses of one priority complete, in the order of
/// the clauses.
fn complete_conjunctions<'r>(clauses: impl Iterator<Item = &'r Arc<Rule>>) -> Vec<u32> {
    let mut found: BTreeMap<u32, u64> = BTreeMap::new();
    let mut complete = Vec::new();
    for action in clauses.flat_map(|rule| &rule.instructions.apply) {
        if let Action::Extended(Extension::Conjunction {
            id,
            clause,
            clauses,
        }) = action
        {
            let missing = u64::MAX.checked_shl(u32::from(*clauses)).unwrap_or(0);
            let bits = found.entry(*id).or_insert(missing);
            *bits |= 1_u64.checked_shl(u32::from(*clause)).unwrap_or(0);
            if *bits == u64::MAX && !complete.contains(id) {
                complete.push(*id);
            }
        }
    }
    complete
}

/// Returns true if the packet has the header of a trie's field.
fn has_field(bits: &KeyBits, field: KeyField) -> bool {
    let eth_type = bits.get(KeyField::ETH_TYPE);
    match field {
        KeyField::NW_SRC | KeyField::NW_DST => eth_type == 0x0800,
        KeyField::IPV6_SRC | KeyField::IPV6_DST => eth_type == 0x86dd,
        KeyField::ND_TARGET => false,
        _ => true,
    }
}

/// Returns both ports as one value, the source above.
const fn ports_of(bits: &KeyBits) -> u128 {
    (bits.get(KeyField::TP_SRC) & 0xffff) << 16 | bits.get(KeyField::TP_DST) & 0xffff
}

const fn set_ports(bits: &mut KeyBits, ports: u128) {
    bits.set(KeyField::TP_SRC, ports >> 16 & 0xffff);
    bits.set(KeyField::TP_DST, ports & 0xffff);
}

#[cfg(test)]
mod tests;
