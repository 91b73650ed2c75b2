//! The configuration of tables: names, sizes, eviction and vacancy events (OF 1.4.1, 6.5 and 6.6,
//! 7.3.4.1).
//!
//! Only tables that were configured have an entry.

mod eviction;

use std::sync::Arc;

use base::{Instant, TableId};
use flow::{
    EvictionFlags, FlowRemovedReason, Refusal, Subfield, TableDesc, TableFlags, TableMod,
    TableReason, TableStatus, Vacancy, VacancyLimits,
};
use imbl::OrdMap;

use self::eviction::EvictionOrder;
use super::{MissPolicy, Pipeline};
use crate::rules::{Changes, Rule};

/// The criteria by which a table selects the rule to evict. The other criterion is the size of a
/// rule's group ([`EvictionPolicy::groups`]).
const EVICTION: EvictionFlags =
    EvictionFlags(EvictionFlags::OTHER.0 | EvictionFlags::IMPORTANCE.0 | EvictionFlags::LIFETIME.0);

/// Number of candidates that were used since their deadline was stored and get another chance,
/// before one is evicted regardless.
const SECOND_CHANCES_MAX: usize = 64;

/// The operator's configuration of eviction from a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvictionPolicy {
    /// A full table evicts rules. A controller can enable eviction, too.
    pub is_enabled: bool,
    /// The subfields whose values divide the rules into groups, of which the largest loses a rule.
    pub groups: Arc<[Subfield]>,
}

/// The author of a table's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameAuthor {
    /// A controller.
    Controller,
    /// The operator, whose names controllers cannot change.
    Operator,
}

/// The configuration of all tables that were configured.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableSettings(OrdMap<TableId, TableSetting>);

/// The configuration of one table.
#[derive(Clone, Debug, Default)]
struct TableSetting {
    /// The name and its author.
    name: Option<(Arc<str>, NameAuthor)>,
    /// Maximum number of rules, if below the limit of every table.
    limit: Option<usize>,
    /// True if a controller has enabled eviction.
    evicts: bool,
    policy: EvictionPolicy,
    /// The rules that may be evicted, if eviction is enabled.
    eviction_order: Option<EvictionOrder>,
    /// The next vacancy event, if events are enabled.
    next_event: Option<TableReason>,
    vacancy: Option<VacancyLimits>,
    miss: TableMiss,
}

/// The treatment of misses in one table (OF 1.1.0, A.3.3; later versions have the table-miss rule).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableMiss {
    /// The pipeline's [`MissPolicy`].
    #[default]
    Default,
    /// The packet is sent to the controllers.
    Controller,
    /// The packet continues in the next table; after the last one it is sent to the controllers.
    Continue,
    /// The packet is dropped.
    Drop,
}

impl TableSettings {
    fn get(&self, table: TableId) -> Option<&TableSetting> {
        self.0.get(&table)
    }

    fn entry(&mut self, table: TableId) -> &mut TableSetting {
        self.0.entry(table).or_default()
    }

    /// Adds a rule to the eviction order of its table.
    pub(crate) fn rule_added(&mut self, rule: &Arc<Rule>) {
        if let Some(setting) = self.0.get_mut(&rule.table())
            && let Some(order) = &mut setting.eviction_order
        {
            order.add(rule);
        }
    }

    /// Removes a rule from the eviction order of its table.
    pub(crate) fn rule_removed(&mut self, rule: &Rule) {
        if let Some(setting) = self.0.get_mut(&rule.table())
            && let Some(order) = &mut setting.eviction_order
        {
            order.remove(rule);
        }
    }

    /// Returns the rule to evict from `table`, if eviction is enabled and a rule may be evicted.
    /// Rules that were used since their deadline was stored are sorted again.
    fn victim(&mut self, table: TableId) -> Option<Arc<Rule>> {
        for chances in 0.. {
            let order = self.get(table)?.eviction_order.as_ref()?;
            let (rule, stored) = order.first()?;
            if rule.deadline() == Some(stored) || chances == SECOND_CHANCES_MAX {
                return Some(rule);
            }
            self.rule_added(&rule);
        }
        None
    }
}

impl Pipeline {
    /// Configures a table, or with [`TableId::ALL`] all tables.
    ///
    /// # Errors
    /// The table does not exist; the eviction criteria are not supported; or vacancy events are
    /// enabled without limits, now or earlier.
    pub fn table_mod(&mut self, command: &TableMod) -> Result<(), Refusal> {
        if command.table > TableId::LAST && command.table != TableId::ALL {
            return Err(Refusal::TableModBadTable);
        }
        let importance = EvictionFlags::IMPORTANCE.0;
        let is_known = |flags: EvictionFlags| flags.0 & !EVICTION.0 == 0;
        let is_supported = |flags: EvictionFlags| is_known(flags) && flags.0 & importance != 0;
        if command.eviction.is_some_and(|flags| !is_supported(flags)) {
            return Err(Refusal::TableModBadConfig);
        }
        let tables = tables(command.table);
        let has_events = command.config.contains(TableFlags::VACANCY_EVENTS);
        let has_limits = |table: TableId| {
            let earlier = self.settings.get(table).and_then(|setting| setting.vacancy);
            command.vacancy.or(earlier).is_some()
        };
        if has_events && !tables.clone().all(has_limits) {
            return Err(Refusal::TableModBadConfig);
        }
        tables.for_each(|table| self.configure(table, command));
        Ok(())
    }

    fn configure(&mut self, table: TableId, command: &TableMod) {
        let evicts = command.config.contains(TableFlags::EVICTION);
        let has_events = command.config.contains(TableFlags::VACANCY_EVENTS);
        let is_configured = self.settings.get(table).is_some();
        if !evicts && !has_events && command.vacancy.is_none() && !is_configured {
            return;
        }
        let vacancy = self.vacancy(table);
        let setting = self.settings.entry(table);
        setting.evicts = evicts;
        setting.vacancy = command.vacancy.or(setting.vacancy);
        // The next event is the one that the present state does not rule out.
        let next = |limits: VacancyLimits| match vacancy < limits.up {
            true => TableReason::VacancyUp,
            false => TableReason::VacancyDown,
        };
        setting.next_event = setting.vacancy.filter(|_| has_events).map(next);
        self.sort_for_eviction(table);
    }

    /// Sets the treatment of misses in a table, or with [`TableId::ALL`] in all tables.
    ///
    /// # Errors
    /// The table does not exist.
    pub fn set_table_miss(&mut self, table: TableId, miss: TableMiss) -> Result<(), Refusal> {
        if table > TableId::LAST && table != TableId::ALL {
            return Err(Refusal::TableModBadTable);
        }
        for table in tables(table) {
            if miss != TableMiss::Default || self.settings.get(table).is_some() {
                self.settings.entry(table).miss = miss;
            }
        }
        let mut settings = self.settings.0.values();
        self.modes.any_continues = settings.any(|setting| setting.miss == TableMiss::Continue);
        Ok(())
    }

    /// Returns the treatment of misses in a table, as it was set.
    #[must_use]
    pub fn table_miss(&self, table: TableId) -> TableMiss {
        let setting = self.settings.get(table);
        setting.map_or(TableMiss::Default, |setting| setting.miss)
    }

    /// True if a miss in any table continues in the next.
    #[inline]
    #[must_use]
    pub const fn any_table_continues(&self) -> bool {
        self.modes.any_continues
    }

    /// Returns the treatment of packets that end with a miss in a table.
    #[must_use]
    pub fn miss_policy_of(&self, table: TableId) -> MissPolicy {
        match self.table_miss(table) {
            TableMiss::Default => self.miss_policy(),
            TableMiss::Controller | TableMiss::Continue => MissPolicy::Controller,
            TableMiss::Drop => MissPolicy::Drop,
        }
    }

    /// Builds the eviction order of a table anew.
    fn sort_for_eviction(&mut self, table: TableId) {
        let setting = self.settings.entry(table);
        let is_enabled = setting.evicts || setting.policy.is_enabled;
        setting.eviction_order = is_enabled.then(|| {
            let mut order = EvictionOrder::new(Arc::clone(&setting.policy.groups));
            self.rules.rules(table).for_each(|rule| order.add(rule));
            order
        });
    }

    /// Sets the operator's limit and eviction policy of a table. If the table evicts and holds more
    /// rules than the limit, it evicts the surplus.
    pub fn limit_table(
        &mut self,
        table: TableId,
        limit: usize,
        policy: EvictionPolicy,
        now: Instant,
    ) -> Changes {
        let mut changes = Changes::default();
        self.set_flows_max(table, limit);
        let setting = self.settings.entry(table);
        if setting.policy != policy {
            setting.policy = policy;
            self.sort_for_eviction(table);
        }
        while self.rules.len_of(table) > self.flows_max(table)
            && self.evict(table, now, &mut changes)
        {}
        changes
    }

    /// Returns the configuration of a table by controllers.
    #[must_use]
    pub fn table_desc(&self, table: TableId) -> TableDesc {
        let setting = self.settings.get(table);
        let evicts = setting.is_some_and(|setting| setting.evicts);
        let limits = setting.and_then(|setting| {
            let limits = setting.vacancy;
            limits.filter(|_| setting.next_event.is_some())
        });
        let flag = |is_set: bool, flag: TableFlags| match is_set {
            true => flag,
            false => TableFlags::default(),
        };
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

    /// Returns the vacancy events that are due, each once.
    pub fn take_vacancy_events(&mut self) -> Vec<TableStatus> {
        let due = self.settings.0.iter().filter_map(|(table, setting)| {
            let (limits, next) = setting.vacancy.zip(setting.next_event)?;
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
            self.settings.entry(table).next_event = Some(match reason {
                TableReason::VacancyDown => TableReason::VacancyUp,
                TableReason::VacancyUp => TableReason::VacancyDown,
            });
            let table = self.table_desc(table);
            events.push(TableStatus { reason, table });
        }
        events
    }

    /// Returns the maximum number of rules in a table.
    #[must_use]
    pub fn flows_max(&self, table: TableId) -> usize {
        let setting = self.settings.get(table);
        let limit = setting.and_then(|setting| setting.limit);
        limit.unwrap_or(usize::MAX).min(self.limits.rules_per_table)
    }

    /// Returns the number of rules that a table reports as its size.
    #[must_use]
    pub fn reported_flows_max(&self, table: TableId) -> u32 {
        let rules = self.flows_max(table).min(crate::Limits::RULES_REPORTED);
        u32::try_from(rules).unwrap_or(u32::MAX)
    }

    /// Sets the maximum number of rules in a table. Existing rules stay.
    pub fn set_flows_max(&mut self, table: TableId, limit: usize) {
        self.settings.entry(table).limit = Some(limit);
    }

    /// Returns the name of a table, empty if it has none. The tools of Open vSwitch then print its
    /// number.
    #[must_use]
    pub fn table_name(&self, table: TableId) -> String {
        let setting = self.settings.get(table);
        let name = setting.and_then(|setting| setting.name.as_ref());
        name.map_or_else(String::new, |(name, _)| name.to_string())
    }

    /// Names a table. An empty name removes the name that the same author gave; the operator's name
    /// remains whatever a controller requests.
    pub fn name_table(&mut self, table: TableId, name: &str, author: NameAuthor) {
        if name.is_empty() && self.settings.get(table).is_none() {
            return;
        }
        let setting = self.settings.entry(table);
        let earlier = setting.name.as_ref().map(|(_, author)| *author);
        match (author, earlier) {
            (NameAuthor::Controller, Some(NameAuthor::Operator)) => {}
            (NameAuthor::Operator, Some(NameAuthor::Controller)) if name.is_empty() => {}
            _ => {
                let name = Some(name).filter(|name| !name.is_empty());
                setting.name = name.map(|name| (Arc::from(name), author));
            }
        }
    }

    /// Returns whether a controller may give a table this name: the operator has given none, or the
    /// same.
    #[must_use]
    pub fn may_name_table(&self, table: TableId, name: &str) -> bool {
        let setting = self.settings.get(table);
        let earlier = setting.and_then(|setting| setting.name.as_ref());
        earlier.is_none_or(|(earlier, author)| {
            *author == NameAuthor::Controller || name.is_empty() || **earlier == *name
        })
    }

    /// Evicts a rule from a full table. Returns false if there is none to evict.
    pub(crate) fn evict(&mut self, table: TableId, now: Instant, changes: &mut Changes) -> bool {
        let victim = self.settings.victim(table);
        if let Some(rule) = &victim {
            self.remove(rule, Some(FlowRemovedReason::Eviction), now, changes);
        }
        victim.is_some()
    }

    /// Returns the empty share of a table, in percent.
    fn vacancy(&self, table: TableId) -> u8 {
        let max = self.flows_max(table);
        let empty = max.saturating_sub(self.rules.len_of(table)) * 100 / max.max(1);
        u8::try_from(empty).expect("it is a hundred at most")
    }
}

/// Returns one table, or all.
fn tables(table: TableId) -> impl Iterator<Item = TableId> + Clone {
    let (first, last) = match table {
        TableId::ALL => (TableId::FIRST, TableId::LAST),
        one => (one, one),
    };
    (first.0..=last.0).map(TableId)
}

#[cfg(test)]
mod tests;
