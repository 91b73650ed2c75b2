//! Flow monitors, as `ovs-ofctl monitor BRIDGE watch:` asks for them. What it shows here
//! is what it shows with Open vSwitch 3.1.

use std::collections::BTreeMap;

use flow::{FlowStatsRequest, FlowUpdate, Monitor, MonitorFlags, MonitorId, MonitorRequest};
use openflow::{Message, MultipartReply, MultipartRequest, Version};
use testbed::{Failure, Process};

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::peer::Peer;
use crate::rig::{Rig, Switch};

pub(crate) const RULES: &[Rule] = rules![
    the_tables_are_watched_in_every_version,
    a_watcher_says_what_it_wants_to_hear,
    a_watcher_that_does_not_read_is_paused_and_misses_nothing,
];

const SECURE: &str = "--bridge br0 --fail-mode secure --port p1 --port p2";

const FORMS: [&str; 6] = [
    "",
    "-O OpenFlow11",
    "-O OpenFlow12",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

/// Starts to watch, and waits for the first answer.
fn watch(ground: &Ground, switch: &Switch<'_>, form: &str, what: &str) -> Result<Process, Failure> {
    let program = switch.ofctl_program(&format!("{form} monitor br0 watch:{what}"));
    let monitor = program.log(ground.file("monitor"));
    let monitor = ground.spawner.start(monitor)?;
    ground.wait_until("the first answer", || {
        Ok(monitor.written()?.contains("FLOW_MONITOR reply"))
    })?;
    Ok(monitor)
}

/// What it was told, after so many events.
fn told(ground: &Ground, monitor: &Process, count: usize) -> Result<Vec<String>, Failure> {
    let events = || {
        let written = monitor.written()?;
        let rows = written
            .lines()
            .filter_map(|row| row.strip_prefix(" event="));
        Ok::<_, Failure>(rows.map(str::to_owned).collect::<Vec<_>>())
    };
    ground.wait_until("all events", || Ok(events()?.len() >= count))?;
    events()
}

fn the_tables_are_watched_in_every_version(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for form in FORMS {
        switch.ofctl("del-flows br0")?;
        switch.ofctl("add-flow br0 cookie=1,priority=7,in_port=1,actions=output:2")?;
        let monitor = watch(ground, &switch, form, "")?;
        let flow = "priority=9,idle_timeout=60,hard_timeout=90,ip,nw_dst=10.0.0.0/8";
        for words in [
            &format!("add-flow br0 cookie=2,{flow},actions=dec_ttl,output:3"),
            &format!("add-flow br0 cookie=3,{flow},actions=output:1"),
            "-O OpenFlow13 mod-flows br0 ip,actions=output:2",
            "-O OpenFlow13 mod-flows br0 ip,actions=output:2",
            "-O OpenFlow13 add-flow br0 table=1,hard_timeout=1,udp,actions=drop",
        ] {
            switch.ofctl(words)?;
        }
        ground.wait_until("a rule to end", || {
            Ok(monitor.written()?.contains("reason=hard"))
        })?;
        switch.ofctl("del-flows br0 in_port=1")?;
        switch.ofctl("del-flows br0")?;
        let first = match form {
            "-O OpenFlow14" | "-O OpenFlow15" => "INITIAL",
            _ => "ADDED",
        };
        let match_ = "table=0 idle_timeout=60 hard_timeout=90";
        let expected = [
            &format!("{first} table=0 cookie=0x1 in_port=1 actions=output:2"),
            &format!("ADDED {match_} cookie=0x2 ip,nw_dst=10.0.0.0/8 actions=dec_ttl,output:3"),
            &format!("ADDED {match_} cookie=0x3 ip,nw_dst=10.0.0.0/8 actions=output:1"),
            &format!("MODIFIED {match_} cookie=0x3 ip,nw_dst=10.0.0.0/8 actions=output:2"),
            "ADDED table=1 hard_timeout=1 cookie=0 udp",
            "DELETED reason=hard table=1 hard_timeout=1 cookie=0 udp",
            "DELETED reason=delete table=0 cookie=0x1 in_port=1 actions=output:2",
            &format!(
                "DELETED reason=delete {match_} cookie=0x3 ip,nw_dst=10.0.0.0/8 actions=output:2"
            ),
        ];
        assert_eq!(told(ground, &monitor, expected.len())?, expected, "{form}");
    }
    Ok(())
}

fn a_watcher_says_what_it_wants_to_hear(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let first = "ADDED table=0 cookie=0 in_port=1 actions=output:2";
    let added = "ADDED table=1 cookie=0 tcp actions=output:1";
    let modified = "MODIFIED table=1 cookie=0 tcp actions=output:2";
    let deleted = "DELETED reason=delete table=1 cookie=0 tcp actions=output:2";
    let last = "DELETED reason=delete table=0 cookie=0 in_port=1 actions=output:2";
    for form in ["", "-O OpenFlow13", "-O OpenFlow14", "-O OpenFlow15"] {
        switch.ofctl("add-flow br0 in_port=1,actions=output:2")?;
        let wanted = [
            ("!initial", vec![added, modified, deleted, last]),
            ("!add", vec![first, modified, deleted, last]),
            ("!modify", vec![first, added, deleted, last]),
            ("!delete", vec![first, added, modified]),
            ("!own", vec![first, added, modified, deleted, last]),
            ("table=1", vec![added, modified, deleted]),
            ("out_port=1", vec![added, modified]),
            ("tcp", vec![added, modified, deleted]),
        ];
        let monitors =
            wanted.map(|(what, events)| (what, watch(ground, &switch, form, what), events));
        for words in [
            "add-flow br0 table=1,tcp,actions=output:1",
            "mod-flows br0 table=1,tcp,actions=output:2",
            "del-flows br0 table=1",
            "del-flows br0",
        ] {
            switch.ofctl(&format!("-O OpenFlow13 {words}"))?;
        }
        for (what, monitor, events) in monitors {
            let events = events.into_iter().map(|event| match form {
                "" | "-O OpenFlow13" => event.to_owned(),
                _ if event == first => event.replace("ADDED", "INITIAL"),
                _ => event.to_owned(),
            });
            let events: Vec<_> = events.collect();
            assert_eq!(
                told(ground, &monitor?, events.len())?,
                events,
                "{form} {what}"
            );
        }
        let bare = watch(ground, &switch, form, "!actions")?;
        switch.ofctl("add-flow br0 tcp,actions=output:1")?;
        assert_eq!(told(ground, &bare, 1)?, ["ADDED table=0 cookie=0 tcp"]);
        switch.ofctl("del-flows br0")?;
    }
    Ok(())
}

/// More changes than any buffer takes, to one who does not read until they are done.
fn a_watcher_that_does_not_read_is_paused_and_misses_nothing(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let mut watcher = Peer::visit(ground, &switch.file("br0.mgmt"), Version::V14)?;
    let monitor = Monitor {
        id: MonitorId(1),
        flags: MonitorFlags(0x3f),
        asked: FlowStatsRequest::all(),
    };
    let request = MultipartRequest::FlowMonitor(vec![MonitorRequest::Add(monitor)]);
    watcher.ask(&Message::MultipartRequest(request))?;
    let mut other = Peer::visit(ground, &switch.file("br0.mgmt"), Version::V14)?;
    for round in 0..8 {
        for port in 0..5_000 {
            other.add(&format!("tcp,tp_dst={port},actions=output:{}", round + 1))?;
        }
        other.barrier();
    }
    let mut known = BTreeMap::new();
    let (mut paused, mut resumed) = (0, 0);
    while paused == 0 || resumed < paused {
        let updates = watcher.hear("an update", |message| match message {
            Message::MultipartReply {
                reply: MultipartReply::FlowMonitor(updates),
                ..
            } => Some(updates.clone()),
            _ => None,
        })?;
        for update in updates {
            match update {
                FlowUpdate::Paused => paused += 1,
                FlowUpdate::Resumed => resumed += 1,
                FlowUpdate::Full(change) => {
                    known.insert(format!("{:?}", change.matching), change.instructions);
                }
                FlowUpdate::Abbrev(_) => panic!("all changes are another's"),
            }
        }
    }
    let last = flow::text::parse_flow_line("actions=output:8").expect("a flow");
    assert_eq!(known.len(), 5_000);
    assert!(known.values().all(|known| *known == last.instructions));
    Ok(())
}
