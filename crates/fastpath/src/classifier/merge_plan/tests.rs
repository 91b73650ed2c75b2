//! For rules that are added and removed one by one or many together, a lookup returns the same rule
//! as a scan of all rules, at a bounded cost.

use base::{Instant, TableId};
use flow::{FlowModCommand, text};
use packet::Frame;
use pipeline::{Limits, Pipeline};
use testkit::workload::{TrafficPattern, Workload};

use super::*;
use crate::classifier::{Classifier, View};
use crate::testing::keys_of;

/// Greatest cost of a lookup while rules change: two dozen probes.
const COST_MAX: usize = 24 * PROBE_COST;

/// A table, and packets to look up.
struct MergeBench {
    pipeline: Pipeline,
    classifier: Classifier,
    frames: Vec<Frame>,
}

impl MergeBench {
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

    /// Adds the rules of a workload, and calls `then` after each.
    fn add_all(&mut self, workload: &Workload, then: impl Fn(&mut Self)) {
        for changes in &workload.load().changes {
            let added = changes.added.first().expect("each change adds a rule");
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
        let descriptions = self.classifier.describe();
        descriptions
            .first()
            .map_or_else(String::new, |table| table.form.clone())
    }

    /// Publishes a view, and checks the description of the table.
    fn publish(&mut self) -> View {
        let view = self.classifier.publish(&self.pipeline);
        for table in self.classifier.describe() {
            let rules = self.pipeline.rules(TableId(0)).count();
            assert_eq!(table.rules, rules);
            assert!(table.cost.is_some_and(|cost| cost < COST_MAX), "{table:?}");
        }
        view
    }

    fn assert_same_as_scan(&self, view: &View) {
        for frame in &self.frames {
            let (packed, key) = keys_of(frame);
            let mut rules = self.pipeline.rules(TableId(0));
            let expected = rules.find(|rule| rule.matching().accepts(&key));
            let table = view.table(TableId(0));
            let found = table.and_then(|table| view.look_up(table, &packed));
            assert!(
                expected.map(Arc::as_ptr) == found.map(Arc::as_ptr),
                "the scan finds {expected:?}, the lookup {found:?}"
            );
        }
    }
}

/// The rules of an access list are added one by one, each with a publication.
#[test]
fn access_list_grows_and_shrinks_at_bounded_cost() {
    let workload = Workload::access_list("", 1500, TrafficPattern::Fitting);
    let mut bench = MergeBench::new(&workload);
    let loaded = workload.load();
    let rules: Vec<_> = loaded.pipeline.rules(TableId(0)).cloned().collect();
    for (number, changes) in loaded.changes.iter().enumerate() {
        let added = changes.added.first().expect("each change adds a rule");
        let line = format!(
            "priority={},{},actions=output:2",
            added.priority(),
            added.matching()
        );
        bench.change(FlowModCommand::Add, &line);
        let view = bench.publish();
        if number % 300 == 7 {
            bench.assert_same_as_scan(&view);
        }
    }
    let full = (bench.publish(), bench.pipeline.clone());
    assert!(bench.form().contains("bits"), "{}", bench.form());
    for (number, rule) in rules
        .iter()
        .enumerate()
        .filter(|(number, _)| number % 5 != 0)
    {
        bench.delete(rule);
        let view = bench.publish();
        if number % 300 == 7 {
            bench.assert_same_as_scan(&view);
        }
    }
    let last = bench.publish();
    bench.assert_same_as_scan(&last);
    bench.pipeline = full.1;
    bench.assert_same_as_scan(&full.0);
}

#[test]
fn form_is_the_cheapest() {
    let mut bench = MergeBench::new(&Workload::one_rule());
    bench.change(FlowModCommand::Add, "tcp,tp_dst=1,actions=drop");
    bench.publish();
    assert_eq!(bench.form(), "direct");
    for station in 0..100 {
        let line = format!("dl_dst=02:00:00:00:00:{station:02x},actions=output:1");
        bench.change(FlowModCommand::Add, &line);
        bench.publish();
    }
    assert_eq!(bench.form(), "exact + direct");
    for n in 1..60 {
        for bits in [8, 16, 24, 32] {
            let line = format!("priority={n},ip,nw_src=10.{n}.{n}.{n}/{bits},actions=drop");
            bench.change(FlowModCommand::Add, &line);
        }
        for bits in [9, 17, 25, 31] {
            let line = format!("priority={n},ip,nw_dst=10.{n}.{n}.{n}/{bits},actions=drop");
            bench.change(FlowModCommand::Add, &line);
        }
    }
    bench.publish();
    assert!(bench.form().ends_with("bits"), "{}", bench.form());
    bench.change(FlowModCommand::Delete, "");
    bench.publish();
    assert_eq!(bench.form(), "");
}

/// Nested networks, and a rule for all other packets.
#[test]
fn networks_are_found_by_prefix_while_rules_change() {
    let workload = Workload::networks("", 1000);
    let mut bench = MergeBench::new(&workload);
    bench.change(FlowModCommand::Add, "priority=0,actions=drop");
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
        bench.change(FlowModCommand::Add, &line);
        bench.publish();
    }
    bench.classifier.request_compaction();
    let full = (bench.publish(), bench.pipeline.clone());
    bench.assert_same_as_scan(&full.0);
    assert_eq!(bench.form(), "prefix + direct");
    for rule in loaded.pipeline.rules(TableId(0)).step_by(3) {
        bench.delete(rule);
    }
    let last = bench.publish();
    bench.assert_same_as_scan(&last);
    bench.pipeline = full.1;
    bench.assert_same_as_scan(&full.0);
}

/// Compiled sets of successive additions are merged.
#[test]
fn compaction_merges_compiled_sets() {
    let workload = Workload::access_list("", 600, TrafficPattern::Fitting);
    let mut bench = MergeBench::new(&workload);
    bench.add_all(&workload, |bench| drop(bench.publish()));
    let cost = |bench: &MergeBench| {
        bench.classifier.describe()[0]
            .cost
            .expect("the table is compiled")
    };
    let (before, changes) = (cost(&bench), bench.classifier.change_count());
    let rules = workload.flow_lines().len();
    assert_eq!(
        bench.classifier.rules_to_compact(),
        rules,
        "{}",
        bench.form()
    );
    bench.classifier.request_compaction();
    let view = bench.publish();
    bench.assert_same_as_scan(&view);
    assert_eq!(bench.form(), "bits");
    assert!(cost(&bench) < before);
    assert_eq!(bench.classifier.rules_to_compact(), 0);
    assert_eq!(bench.classifier.change_count(), changes);
}

/// A modified rule is another rule with the same rank.
#[test]
fn modified_rule_is_found_as_modified() {
    let workload = Workload::access_list("", 200, TrafficPattern::Fitting);
    let mut bench = MergeBench::new(&workload);
    bench.add_all(&workload, |_| {});
    bench.publish();
    for port in 1..50 {
        let flow = format!("tcp,actions=output:{port}");
        bench.change(FlowModCommand::Modify, &flow);
        let view = bench.publish();
        bench.assert_same_as_scan(&view);
    }
}

#[test]
fn split_keeps_tuples_that_minimise_cost() {
    let kept = |sizes: &[usize]| cheapest_split(sizes).1;
    assert_eq!(kept(&[]), 0);
    assert_eq!(kept(&[1]), 0);
    assert_eq!(kept(&[1000]), 1);
    assert_eq!(kept(&[1000, 1, 1, 1]), 1);
    assert_eq!(kept(&[1000, 900]), 2);
    assert_eq!(kept(&[10; 300]), 0);
    // Rules beyond the limit of the vectors stay in tuples, the largest.
    let sizes = [200_000, 190_000, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50];
    assert_eq!(kept(&sizes), 2);
    assert_eq!(kept(&[20_000; 200]), 200);
    assert_eq!(kept(&[1; 100_000]), 0);
}
