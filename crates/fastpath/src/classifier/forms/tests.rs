//! However rules come and go, one by one or many at a time, what is found is what a walk
//! finds, and a lookup stays cheap.

use base::{Instant, TableId};
use flow::{FlowModCommand, text};
use packet::Frame;
use pipeline::{Limits, Pipeline};
use testkit::workload::{TrafficPattern, Workload};

use super::*;
use crate::classifier::{Classifier, View};
use crate::testing::seen_of;

/// What a lookup may cost while rules come and go: as much as two dozen probes.
const COST_MAX: usize = 24 * PROBE;

/// A table, and those that look into it.
struct Rig {
    pipeline: Pipeline,
    classifier: Classifier,
    frames: Vec<Frame>,
}

impl Rig {
    fn new(workload: &Workload) -> Self {
        let frames = workload.load().frames;
        Self {
            pipeline: Pipeline::new(Limits::default(), 1),
            classifier: Classifier::new(),
            frames: frames
                .iter()
                .map(|bytes| Frame::from_bytes(bytes))
                .collect(),
        }
    }

    fn change(&mut self, command: FlowModCommand, line: &str) {
        let flow_mod = text::parse_flow(command, line).expect(line);
        let changes = self.pipeline.flow_mod(&flow_mod, Instant::START);
        self.classifier.queue_changes(&changes.expect(line));
    }

    /// Adds the rules of a workload, and calls `then` behind each.
    fn add_all(&mut self, workload: &Workload, then: impl Fn(&mut Self)) {
        for changes in &workload.load().changes {
            let added = changes.added.first().expect("one is added");
            let (priority, matching) = (added.priority(), added.matching());
            let line = format!("priority={priority},{matching},actions=output:2");
            self.change(FlowModCommand::Add, &line);
            then(self);
        }
    }

    fn delete(&mut self, rule: &Rule) {
        let line = format!("priority={},{}", rule.priority(), rule.matching());
        self.change(FlowModCommand::DeleteStrict, &line);
    }

    fn form(&self) -> String {
        let described = self.classifier.describe();
        described
            .first()
            .map_or_else(String::new, |table| table.form.clone())
    }

    /// Publishes, and looks into what was published.
    fn see(&mut self) -> View {
        let view = self.classifier.publish(&self.pipeline);
        for table in self.classifier.describe() {
            let rules = self.pipeline.rules(TableId(0)).count();
            assert_eq!(table.rules, rules);
            assert!(table.cost.is_some_and(|cost| cost < COST_MAX), "{table:?}");
        }
        view
    }

    fn judge(&self, view: &View) {
        for frame in &self.frames {
            let (lanes, key) = seen_of(frame);
            let mut rules = self.pipeline.rules(TableId(0));
            let wanted = rules.find(|rule| rule.matching().accepts(&key));
            let table = view.table(TableId(0));
            let found = table.and_then(|table| view.look_up(table, &lanes));
            assert!(
                wanted.map(Arc::as_ptr) == found.map(Arc::as_ptr),
                "{wanted:?} {found:?}"
            );
        }
    }
}

/// The rules of an access list, one by one and each published.
#[test]
fn an_access_list_grows_and_shrinks_and_stays_cheap() {
    let workload = Workload::access_list("", 1500, TrafficPattern::Fitting);
    let mut rig = Rig::new(&workload);
    let loaded = workload.load();
    let rules: Vec<_> = loaded.pipeline.rules(TableId(0)).cloned().collect();
    for (number, changes) in loaded.changes.iter().enumerate() {
        let added = changes.added.first().expect("one is added");
        let line = format!(
            "priority={},{},actions=output:2",
            added.priority(),
            added.matching()
        );
        rig.change(FlowModCommand::Add, &line);
        let view = rig.see();
        if number % 300 == 7 {
            rig.judge(&view);
        }
    }
    let full = (rig.see(), rig.pipeline.clone());
    assert!(rig.form().contains("bits"), "{}", rig.form());
    for (number, rule) in rules
        .iter()
        .enumerate()
        .filter(|(number, _)| number % 5 != 0)
    {
        rig.delete(rule);
        let view = rig.see();
        if number % 300 == 7 {
            rig.judge(&view);
        }
    }
    let last = rig.see();
    rig.judge(&last);
    rig.pipeline = full.1;
    rig.judge(&full.0);
}

#[test]
fn a_form_is_the_one_that_costs_least() {
    let mut rig = Rig::new(&Workload::one_rule());
    rig.change(FlowModCommand::Add, "tcp,tp_dst=1,actions=drop");
    rig.see();
    assert_eq!(rig.form(), "direct");
    for station in 0..100 {
        let line = format!("dl_dst=02:00:00:00:00:{station:02x},actions=output:1");
        rig.change(FlowModCommand::Add, &line);
        rig.see();
    }
    assert_eq!(rig.form(), "exact + direct");
    for n in 1..60 {
        for bits in [8, 16, 24, 32] {
            let line = format!("priority={n},ip,nw_src=10.{n}.{n}.{n}/{bits},actions=drop");
            rig.change(FlowModCommand::Add, &line);
        }
        for bits in [9, 17, 25, 31] {
            let line = format!("priority={n},ip,nw_dst=10.{n}.{n}.{n}/{bits},actions=drop");
            rig.change(FlowModCommand::Add, &line);
        }
    }
    rig.see();
    assert!(rig.form().ends_with("bits"), "{}", rig.form());
    rig.change(FlowModCommand::Delete, "");
    rig.see();
    assert_eq!(rig.form(), "");
}

/// Networks within each other, and a rule for the rest.
#[test]
fn networks_are_found_by_their_prefix_whatever_comes_and_goes() {
    let workload = Workload::networks("", 1000);
    let mut rig = Rig::new(&workload);
    rig.change(FlowModCommand::Add, "priority=0,actions=drop");
    let loaded = workload.load();
    for changes in &loaded.changes {
        let Some(added) = changes.added.first() else {
            continue;
        };
        let line = format!(
            "priority={},{},actions=output:2",
            added.priority(),
            added.matching()
        );
        rig.change(FlowModCommand::Add, &line);
        rig.see();
    }
    rig.classifier.request_compaction();
    let full = (rig.see(), rig.pipeline.clone());
    rig.judge(&full.0);
    assert_eq!(rig.form(), "prefix + direct");
    for rule in loaded.pipeline.rules(TableId(0)).step_by(3) {
        rig.delete(rule);
    }
    let last = rig.see();
    rig.judge(&last);
    rig.pipeline = full.1;
    rig.judge(&full.0);
}

/// Bases that came one after the other become one.
#[test]
fn what_has_come_bit_by_bit_is_made_tidy() {
    let workload = Workload::access_list("", 600, TrafficPattern::Fitting);
    let mut rig = Rig::new(&workload);
    rig.add_all(&workload, |rig| drop(rig.see()));
    let cost = |rig: &Rig| rig.classifier.describe()[0].cost.expect("it is compiled");
    let (before, changes) = (cost(&rig), rig.classifier.change_count());
    let rules = workload.flow_lines().len();
    assert_eq!(rig.classifier.rules_to_compact(), rules, "{}", rig.form());
    rig.classifier.request_compaction();
    let view = rig.see();
    rig.judge(&view);
    assert_eq!(rig.form(), "bits");
    assert!(cost(&rig) < before);
    assert_eq!(rig.classifier.rules_to_compact(), 0);
    assert_eq!(rig.classifier.change_count(), changes);
}

/// A rule that is put in again is another, in the same place.
#[test]
fn what_is_modified_is_found_as_it_is_now() {
    let workload = Workload::access_list("", 200, TrafficPattern::Fitting);
    let mut rig = Rig::new(&workload);
    rig.add_all(&workload, |_| {});
    rig.see();
    for port in 1..50 {
        let flow = format!("tcp,actions=output:{port}");
        rig.change(FlowModCommand::Modify, &flow);
        let view = rig.see();
        rig.judge(&view);
    }
}

#[test]
fn as_many_tuples_stay_as_cost_least() {
    let kept = |sizes: &[usize]| choose(sizes).1;
    assert_eq!(kept(&[]), 0);
    assert_eq!(kept(&[1]), 0);
    assert_eq!(kept(&[1000]), 1);
    assert_eq!(kept(&[1000, 1, 1, 1]), 1);
    assert_eq!(kept(&[1000, 900]), 2);
    assert_eq!(kept(&[10; 300]), 0);
    // What vectors do not take stays in tuples, the largest.
    let sizes = [200_000, 190_000, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50];
    assert_eq!(kept(&sizes), 2);
    assert_eq!(kept(&[20_000; 200]), 200);
    assert_eq!(kept(&[1; 100_000]), 0);
}
