//! What controllers and the operator configure of tables: names, sizes, eviction and
//! vacancy events (OF 1.4.1, 6.5 and 6.6, 7.3.4.1).
//!
//! Only tables that somebody has configured have settings.

use std::sync::Arc;

use base::{Instant, TableId};
use flow::{
    EvictionFlags, FlowRemovedReason, Refusal, TableDesc, TableFlags, TableMod, TableReason,
    TableStatus, Vacancy, VacancyLimits,
};
use imbl::{OrdMap, OrdSet};

use crate::flow_mod::Changes;
use crate::pipeline::Pipeline;
use crate::rule::{Rule, RuleByIdentity};

/// By what a table chooses who has to go.
const EVICTION: EvictionFlags =
    EvictionFlags(EvictionFlags::IMPORTANCE.0 | EvictionFlags::LIFETIME.0);

/// How often the first candidate may turn out to have been used since, before it goes
/// all the same.
const SECOND_LOOKS_MAX: usize = 64;

/// What is configured of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableSettings {
    name: Option<Arc<str>>,
    /// The most rules, if fewer than any table may have.
    limit: Option<usize>,
    /// Who may have to go, if rules may.
    candidates: Option<EvictionOrder>,
    /// Which event of vacancy comes next, if any is told.
    next_event: Option<TableReason>,
    vacancy: Option<VacancyLimits>,
}

/// The rules that may have to go, first those that go first: the least important, and
/// of those the one that ends soonest. As with Open vSwitch, a rule without timeouts
/// stays (`ovs-vswitchd.conf.db(5)`, "Eviction Policy").
#[derive(Clone, Debug, Default)]
struct EvictionOrder {
    order: OrdSet<(u16, Instant, RuleByIdentity)>,
    noted: OrdMap<RuleByIdentity, Instant>,
}

impl EvictionOrder {
    fn add(&mut self, rule: &Arc<Rule>) {
        self.remove(rule);
        if let Some(deadline) = rule.deadline() {
            let rule = RuleByIdentity(Arc::clone(rule));
            let place = (rule.0.importance, deadline, rule.clone());
            self.order.insert(place);
            self.noted.insert(rule, deadline);
        }
    }

    fn remove(&mut self, rule: &Rule) {
        if let Some((known, deadline)) = self.noted.remove_with_key(&rule.identity) {
            self.order.remove(&(known.0.importance, deadline, known));
        }
    }

    /// The first, and when it ended by what is noted of it.
    fn first(&self) -> Option<(Arc<Rule>, Instant)> {
        let first = self.order.get_min();
        first.map(|(_, deadline, RuleByIdentity(rule))| (Arc::clone(rule), *deadline))
    }
}

impl TableSettings {
    /// Takes note of a rule that came into the table.
    pub(crate) fn rule_came(&mut self, rule: &Arc<Rule>) {
        if let Some(candidates) = &mut self.candidates {
            candidates.add(rule);
        }
    }

    /// Takes note of a rule that left the table.
    pub(crate) fn rule_went(&mut self, rule: &Rule) {
        if let Some(candidates) = &mut self.candidates {
            candidates.remove(rule);
        }
    }
}

impl Pipeline {
    /// Changes how a table behaves, or with [`TableId::ALL`] all of them.
    ///
    /// # Errors
    /// There is no such table; or rules cannot be chosen in the way asked for; or
    /// events are asked for, and nobody ever said when.
    pub fn table_mod(&mut self, command: &TableMod) -> Result<(), Refusal> {
        if command.table > TableId::LAST && command.table != TableId::ALL {
            return Err(Refusal::TableModBadTable);
        }
        let importance = EvictionFlags::IMPORTANCE.0;
        let is_known = |flags: EvictionFlags| flags.0 & !EVICTION.0 == 0;
        let chooses = |flags: EvictionFlags| is_known(flags) && flags.0 & importance != 0;
        if command.eviction.is_some_and(|flags| !chooses(flags)) {
            return Err(Refusal::TableModBadConfig);
        }
        let tables = tables(command.table);
        let told = command.config.contains(TableFlags::VACANCY_EVENTS);
        let has_limits = |table: TableId| {
            let known = self.settings().get(&table).and_then(|known| known.vacancy);
            command.vacancy.or(known).is_some()
        };
        if told && !tables.clone().all(has_limits) {
            return Err(Refusal::TableModBadConfig);
        }
        tables.for_each(|table| self.configure(table, command));
        Ok(())
    }

    fn configure(&mut self, table: TableId, command: &TableMod) {
        let evicts = command.config.contains(TableFlags::EVICTION);
        let told = command.config.contains(TableFlags::VACANCY_EVENTS);
        if !evicts && !told && command.vacancy.is_none() && !self.settings().contains_key(&table) {
            return;
        }
        let candidates = evicts.then(|| {
            let mut candidates = EvictionOrder::default();
            let rules = self.rules(table);
            rules.for_each(|rule| candidates.add(rule));
            candidates
        });
        let vacancy = self.vacancy(table);
        let settings = self.settings_mut().entry(table).or_default();
        settings.candidates = candidates;
        settings.vacancy = command.vacancy.or(settings.vacancy);
        // The event that comes next is the one that the present state does not rule out.
        let next = |limits: VacancyLimits| match vacancy < limits.up {
            true => TableReason::VacancyUp,
            false => TableReason::VacancyDown,
        };
        settings.next_event = settings.vacancy.filter(|_| told).map(next);
    }

    /// How a table is configured.
    #[must_use]
    pub fn table_desc(&self, table: TableId) -> TableDesc {
        let settings = self.settings().get(&table);
        let evicts = settings.is_some_and(|settings| settings.candidates.is_some());
        let limits = settings.and_then(|settings| {
            let limits = settings.vacancy;
            limits.filter(|_| settings.next_event.is_some())
        });
        let flag = |is: bool, flag: TableFlags| if is { flag } else { TableFlags::default() };
        TableDesc {
            table,
            config: flag(evicts, TableFlags::EVICTION)
                .with(flag(limits.is_some(), TableFlags::VACANCY_EVENTS)),
            eviction: Some(EVICTION),
            vacancy: limits.map(|limits| Vacancy {
                limits,
                now: self.vacancy(table),
            }),
        }
    }

    /// The events of vacancy that are due, each told once.
    pub fn take_vacancy_events(&mut self) -> Vec<TableStatus> {
        if self.settings().is_empty() {
            return Vec::new();
        }
        let due = self.settings().iter().filter_map(|(table, settings)| {
            let (limits, next) = settings.vacancy.zip(settings.next_event)?;
            let vacancy = self.vacancy(*table);
            let is_due = match next {
                TableReason::VacancyDown => vacancy < limits.down,
                TableReason::VacancyUp => vacancy > limits.up,
            };
            is_due.then_some((*table, next))
        });
        let due: Vec<_> = due.collect();
        let mut events = Vec::new();
        for (table, reason) in due {
            let settings = self.settings_mut().entry(table).or_default();
            settings.next_event = Some(match reason {
                TableReason::VacancyDown => TableReason::VacancyUp,
                TableReason::VacancyUp => TableReason::VacancyDown,
            });
            let table = self.table_desc(table);
            events.push(TableStatus { reason, table });
        }
        events
    }

    /// The most rules that a table may have.
    #[must_use]
    pub fn flows_max(&self, table: TableId) -> usize {
        let settings = self.settings().get(&table);
        let limit = settings.and_then(|settings| settings.limit);
        limit
            .unwrap_or(usize::MAX)
            .min(self.limits().rules_per_table)
    }

    /// Says how many rules a table may have. Those that are there stay.
    pub fn set_flows_max(&mut self, table: TableId, limit: usize) {
        self.settings_mut().entry(table).or_default().limit = Some(limit);
    }

    /// The name that a table was given; empty if none was, as with Open vSwitch, whose tools
    /// then tell of its number.
    #[must_use]
    pub fn table_name(&self, table: TableId) -> String {
        let settings = self.settings().get(&table);
        let name = settings.and_then(|settings| settings.name.as_deref());
        name.map_or_else(String::new, str::to_owned)
    }

    /// Gives a table a name; an empty one takes the name away.
    pub fn name_table(&mut self, table: TableId, name: &str) {
        let name = Some(name).filter(|name| !name.is_empty()).map(Arc::from);
        if name.is_some() || self.settings().contains_key(&table) {
            self.settings_mut().entry(table).or_default().name = name;
        }
    }

    /// Makes room for a rule in a table, if rules may have to go there and one is left
    /// that does.
    pub(crate) fn evict(&mut self, table: TableId, now: Instant, changes: &mut Changes) -> bool {
        for looks in 0.. {
            let settings = self.settings().get(&table);
            let candidates = settings.and_then(|settings| settings.candidates.as_ref());
            let Some((rule, noted)) = candidates.and_then(EvictionOrder::first) else {
                return false;
            };
            if rule.deadline() == Some(noted) || looks == SECOND_LOOKS_MAX {
                self.take(&rule, Some(FlowRemovedReason::Eviction), now, changes);
                return true;
            }
            if let Some(settings) = self.settings_mut().get_mut(&table) {
                settings.rule_came(&rule);
            }
        }
        false
    }

    /// How much of a table is empty, in percent.
    fn vacancy(&self, table: TableId) -> u8 {
        let max = self.flows_max(table);
        let used = self.table(table).map_or(0, |table| table.len());
        let empty = max.saturating_sub(used) * 100 / max.max(1);
        u8::try_from(empty).expect("it is a hundred at most")
    }
}

/// A table, or all of them.
fn tables(table: TableId) -> impl Iterator<Item = TableId> + Clone {
    let (first, last) = match table {
        TableId::ALL => (TableId::FIRST, TableId::LAST),
        one => (one, one),
    };
    (first.0..=last.0).map(TableId)
}

#[cfg(test)]
mod tests;
