//! Eviction from full tables, and vacancy events.

use std::time::Duration;

use base::TableId;
use flow::{
    EvictionFlags, Field, FlowEvent, FlowRemovedReason, Refusal, Subfield, TableFlags, TableMod,
    TableReason, VacancyLimits,
};

use super::{EvictionPolicy, NameAuthor};
use crate::counters::Totals;
use crate::pipeline::Pipeline;
use crate::testing::{NOW, apply, flow, pipeline};

/// Returns an empty pipeline whose table 1 has this limit.
fn holding(limit: usize) -> Pipeline {
    let mut pipeline = pipeline(&[]);
    pipeline.set_flows_max(TableId(1), limit);
    pipeline
}

fn evicting(table: TableId) -> TableMod {
    TableMod::new(table, TableFlags::EVICTION)
}

fn watched(down: u8, up: u8) -> TableMod {
    TableMod {
        vacancy: Some(VacancyLimits { down, up }),
        ..TableMod::new(TableId(1), TableFlags::VACANCY_EVENTS)
    }
}

/// Adds a rule to table 1, and returns the priorities of the evicted rules.
fn gone(pipeline: &mut Pipeline, rule: &str) -> Result<Vec<u16>, Refusal> {
    let changes = apply(pipeline, &format!("table=1,{rule},actions=drop"))?;
    let rule_events: Vec<_> = changes.rule_events().collect();
    let gone = rule_events
        .iter()
        .filter_map(|rule_event| match rule_event.event {
            FlowEvent::Removed(FlowRemovedReason::Eviction) => Some(rule_event.rule.priority()),
            _ => None,
        });
    Ok(gone.collect())
}

#[test]
fn eviction_selects_by_importance_and_then_by_deadline() {
    let mut pipeline = holding(4);
    pipeline.table_mod(&evicting(TableId(1))).expect("it can");
    for rule in [
        "priority=1",
        "priority=2,importance=9,hard_timeout=1",
        "priority=3,importance=1,idle_timeout=20",
        "priority=4,importance=1,hard_timeout=10",
    ] {
        assert_eq!(gone(&mut pipeline, rule), Ok(vec![]), "{rule}");
    }
    assert_eq!(gone(&mut pipeline, "priority=5"), Ok(vec![4]));
    assert_eq!(gone(&mut pipeline, "priority=6"), Ok(vec![3]));
    assert_eq!(gone(&mut pipeline, "priority=7"), Ok(vec![2]));
    // Rules without timeouts stay.
    let full = Err(Refusal::FlowModTableFull);
    assert_eq!(gone(&mut pipeline, "priority=8"), full);
    // A replacement needs no space.
    assert_eq!(gone(&mut pipeline, "priority=7"), Ok(vec![]));
    assert_eq!(pipeline.flows_max(TableId(1)), 4);
}

#[test]
fn eviction_takes_from_the_largest_group() {
    let port = Subfield::whole(Field::NxInPort);
    let policy = EvictionPolicy {
        is_enabled: true,
        groups: [port].into(),
    };
    let mut pipeline = holding(4);
    let changes = pipeline.limit_table(TableId(1), 4, policy, NOW);
    assert!(changes.removed.is_empty());
    for rule in [
        "priority=1,in_port=2,idle_timeout=10",
        "priority=2,in_port=1,idle_timeout=20",
        "priority=3,in_port=1,idle_timeout=30",
        "priority=4,in_port=1,idle_timeout=40",
    ] {
        assert_eq!(gone(&mut pipeline, rule), Ok(vec![]), "{rule}");
    }
    // The rule that expires first of all is alone in its group.
    assert_eq!(gone(&mut pipeline, "priority=5,in_port=2"), Ok(vec![2]));
    // Without groups the order is by deadline, and a smaller limit evicts at once.
    let policy = EvictionPolicy {
        is_enabled: true,
        ..EvictionPolicy::default()
    };
    let changes = pipeline.limit_table(TableId(1), 2, policy, NOW);
    let removed = changes
        .removed
        .iter()
        .map(|removal| removal.rule.priority());
    assert_eq!(removed.collect::<Vec<_>>(), [1, 3]);
    // Without eviction rules beyond the limit stay.
    let changes = pipeline.limit_table(TableId(1), 1, EvictionPolicy::default(), NOW);
    assert!(changes.removed.is_empty());
    // A controller's eviction is independent of the operator's.
    pipeline.table_mod(&evicting(TableId(1))).expect("it can");
    assert_eq!(pipeline.table_desc(TableId(1)).config, TableFlags::EVICTION);
    let changes = pipeline.limit_table(TableId(1), 1, EvictionPolicy::default(), NOW);
    assert_eq!(changes.removed.len(), 1);
}

#[test]
fn table_name_of_operator_cannot_be_changed_by_controller() {
    let mut pipeline = pipeline(&[]);
    let table = TableId(1);
    pipeline.name_table(table, "one", NameAuthor::Controller);
    pipeline.name_table(table, "", NameAuthor::Operator);
    assert_eq!(pipeline.table_name(table), "one");
    pipeline.name_table(table, "two", NameAuthor::Operator);
    assert!(!pipeline.may_name_table(table, "one") && pipeline.may_name_table(table, "two"));
    pipeline.name_table(table, "one", NameAuthor::Controller);
    assert_eq!(pipeline.table_name(table), "two");
    pipeline.name_table(table, "", NameAuthor::Operator);
    assert_eq!(pipeline.table_name(table), "");
    assert!(pipeline.may_name_table(table, "one"));
}

#[test]
fn used_rule_is_evicted_later() {
    let mut pipeline = holding(2);
    pipeline.table_mod(&evicting(TableId::ALL)).expect("it can");
    for rule in ["priority=1,idle_timeout=10", "priority=2,idle_timeout=11"] {
        assert_eq!(gone(&mut pipeline, rule), Ok(vec![]));
    }
    let rule = pipeline.rules(TableId(1)).last().expect("there are two");
    let one = Totals {
        packets: 1,
        bytes: 60,
    };
    rule.counters.add(0, one, NOW + Duration::from_secs(5));
    assert_eq!(gone(&mut pipeline, "priority=3"), Ok(vec![2]));
}

#[test]
fn table_without_eviction_is_full() {
    let mut pipeline = holding(1);
    let full = Err(Refusal::FlowModTableFull);
    assert_eq!(gone(&mut pipeline, "priority=1,hard_timeout=1"), Ok(vec![]));
    assert_eq!(gone(&mut pipeline, "priority=2"), full);
    pipeline.table_mod(&evicting(TableId(1))).expect("it can");
    let refused = "table=1,priority=3,actions=goto_table:1";
    assert_eq!(
        apply(&mut pipeline, refused).err(),
        Some(Refusal::InstructionBadTable)
    );
    assert_eq!(
        pipeline.len(),
        1,
        "a rule that is refused for itself costs none"
    );
    let plain = TableMod::new(TableId(1), TableFlags::default());
    pipeline.table_mod(&plain).expect("it can");
    assert_eq!(gone(&mut pipeline, "priority=2"), full);
}

#[test]
fn vacancy_event_is_sent_once_in_each_direction() {
    let mut pipeline = holding(10);
    pipeline.table_mod(&watched(30, 60)).expect("it can");
    let mut told = Vec::new();
    let mut step = |pipeline: &mut Pipeline, line: &str| {
        apply(pipeline, line).expect(line);
        let events = pipeline.take_vacancy_events();
        told.extend(events.iter().map(|event| {
            let vacancy = event.table.vacancy.expect("it is told of");
            (event.reason, vacancy.now)
        }));
    };
    for priority in 1..=9 {
        step(
            &mut pipeline,
            &format!("table=1,priority={priority},actions=drop"),
        );
    }
    for priority in (3..=9).rev() {
        step(
            &mut pipeline,
            &format!("delete_strict table=1,priority={priority}"),
        );
    }
    for priority in 3..=9 {
        step(
            &mut pipeline,
            &format!("table=1,priority={priority},actions=drop"),
        );
    }
    let down = (TableReason::VacancyDown, 20);
    assert_eq!(told, [down, (TableReason::VacancyUp, 70), down]);
    // A table that is full already has an event when it empties.
    pipeline.table_mod(&watched(30, 60)).expect("it can");
    assert!(pipeline.take_vacancy_events().is_empty());
    pipeline
        .flow_mod(&flow("delete table=1"), NOW)
        .expect("it can");
    let events = pipeline.take_vacancy_events();
    assert_eq!(events[0].reason, TableReason::VacancyUp);
}

#[test]
fn table_configuration_is_checked_and_reported() {
    let mut pipeline = holding(10);
    let bad = Err(Refusal::TableModBadConfig);
    let by = |flags| TableMod {
        eviction: Some(flags),
        ..evicting(TableId(1))
    };
    assert_eq!(pipeline.table_mod(&by(EvictionFlags::OTHER)), bad);
    assert_eq!(pipeline.table_mod(&by(EvictionFlags::LIFETIME)), bad);
    assert_eq!(pipeline.table_mod(&by(EvictionFlags::IMPORTANCE)), Ok(()));
    let no_limits = TableMod::new(TableId(1), TableFlags::VACANCY_EVENTS);
    assert_eq!(pipeline.table_mod(&no_limits), bad);
    let nowhere = evicting(TableId(254));
    assert_eq!(pipeline.table_mod(&nowhere), Err(Refusal::TableModBadTable));
    assert_eq!(pipeline.table_desc(TableId(1)).config, TableFlags::EVICTION);
    assert_eq!(
        pipeline.table_desc(TableId(2)).config,
        TableFlags::default()
    );
    pipeline.table_mod(&watched(1, 2)).expect("it can");
    assert_eq!(
        pipeline.table_mod(&no_limits),
        Ok(()),
        "the limits are known"
    );
    let desc = pipeline.table_desc(TableId(1));
    assert_eq!(desc.config, TableFlags::VACANCY_EVENTS);
    assert_eq!(desc.vacancy.map(|vacancy| vacancy.now), Some(100));
    assert_eq!(pipeline.table_name(TableId(1)), "");
    pipeline.name_table(TableId(1), "edge", NameAuthor::Controller);
    assert_eq!(pipeline.table_name(TableId(1)), "edge");
    pipeline.name_table(TableId(1), "", NameAuthor::Controller);
    assert_eq!(pipeline.table_name(TableId(1)), "");
}
