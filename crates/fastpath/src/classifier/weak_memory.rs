//! Readers of views on other threads while rules are written into the same segments, with plain
//! threads. The models explore orders of sequentially consistent steps; this test shows, under miri
//! (`cargo xtask miri fastpath`), readers the old values that weaker processors may show them, and
//! any access without synchronization.

use base::Instant;
use flow::FlowModCommand::{Add, DeleteStrict};
use flow::text;
use packet::build::Stack;
use pipeline::Limits;

use super::*;
use crate::testing::keys_of;

/// Ports of the rules, and rounds of changes. Miri is slow.
const PORTS: u16 = if cfg!(miri) { 6 } else { 200 };
const ROUNDS: u16 = if cfg!(miri) { 3 } else { 20 };

#[test]
fn views_on_other_threads_are_unaffected_by_writes() {
    let mut pipeline = Pipeline::new(Limits::default(), 1);
    let mut classifier = Classifier::with_seed(7);
    let mut change = |command, port: u16, priority: u16| {
        let end = if command == Add { ",actions=drop" } else { "" };
        let line = format!("priority={priority},udp,tp_dst={port}{end}");
        let flow_mod = text::parse_flow(command, &line).expect("a flow");
        let changes = pipeline.flow_mod(&flow_mod, Instant::START);
        classifier.queue_changes(&changes.expect("the change is legal"));
        // Each change is written in place when it is published.
        classifier.publish(&pipeline)
    };
    let keys: Vec<_> = (0..PORTS).map(key_of).collect();
    std::thread::scope(|scope| {
        for round in 1..=ROUNDS {
            let mut view = None;
            for port in 0..PORTS {
                view = Some(change(Add, port, round));
                if round > 1 {
                    view = Some(change(DeleteStrict, port, round - 1));
                }
            }
            let view = view.expect("there are ports");
            let keys = &keys;
            scope.spawn(move || {
                let table = view.table(TableId(0)).expect("the table has rules");
                for key in keys {
                    let rule = view.look_up(table, key).map(|rule| rule.priority());
                    assert_eq!(rule, Some(round));
                }
            });
        }
    });
}

/// Key of a packet to this port.
fn key_of(port: u16) -> PackedKey {
    let stack = format!("eth / ipv4 / udp(dst={port})");
    keys_of(&stack.parse::<Stack>().expect("a stack").build()).0
}
