//! Flow monitors by `ovs-ofctl monitor BRIDGE watch:`. The expected events are those of Open
//! vSwitch 3.1.

use std::collections::BTreeMap;

use flow::{FlowStatsRequest, FlowUpdate, Monitor, MonitorFlags, MonitorId, MonitorRequest};
use openflow::{Message, MultipartReply, MultipartRequest, Version};
use testbed::{Failure, Process};

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::TestController;
use crate::support::network::TestNetwork;
use crate::support::switch::{SECURE_2, SwitchProcess};

pub(crate) const TESTS: &[SystemTest] = tests![
    flow_monitor_reports_changes_in_all_versions,
    flow_monitor_filters_events,
    slow_flow_monitor_is_paused_and_misses_nothing,
];

const VERSION_OPTIONS: [&str; 6] = [
    "",
    "-O OpenFlow11",
    "-O OpenFlow12",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

/// Starts a monitor, and waits for the first reply.
fn watch(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    options: &str,
    filter: &str,
) -> Result<Process, Failure> {
    let program = switch.ofctl_program(&format!("{options} monitor br0 watch:{filter}"));
    let monitor = program.log(context.unique_path("monitor"));
    let monitor = context.spawner.start(monitor)?;
    context.wait_until("the first reply", || {
        Ok(monitor.written()?.contains("FLOW_MONITOR reply"))
    })?;
    Ok(monitor)
}

/// Events that the monitor printed, at least `count`.
fn received_events(
    context: &TestContext,
    monitor: &Process,
    count: usize,
) -> Result<Vec<String>, Failure> {
    let events = || {
        let written = monitor.written()?;
        let rows = written
            .lines()
            .filter_map(|row| row.strip_prefix(" event="));
        Ok::<_, Failure>(rows.map(str::to_owned).collect::<Vec<_>>())
    };
    context.wait_until("all events", || Ok(events()?.len() >= count))?;
    events()
}

fn flow_monitor_reports_changes_in_all_versions(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for options in VERSION_OPTIONS {
        switch.ofctl("del-flows br0")?;
        switch.ofctl("add-flow br0 cookie=1,priority=7,in_port=1,actions=output:2")?;
        let monitor = watch(context, &switch, options, "")?;
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
        context.wait_until("a rule to expire", || {
            Ok(monitor.written()?.contains("reason=hard"))
        })?;
        switch.ofctl("del-flows br0 in_port=1")?;
        switch.ofctl("del-flows br0")?;
        let first = match options {
            "-O OpenFlow14" | "-O OpenFlow15" => "INITIAL",
            _ => "ADDED",
        };
        let timeouts = "table=0 idle_timeout=60 hard_timeout=90";
        let expected = [
            &format!("{first} table=0 cookie=0x1 in_port=1 actions=output:2"),
            &format!("ADDED {timeouts} cookie=0x2 ip,nw_dst=10.0.0.0/8 actions=dec_ttl,output:3"),
            &format!("ADDED {timeouts} cookie=0x3 ip,nw_dst=10.0.0.0/8 actions=output:1"),
            &format!("MODIFIED {timeouts} cookie=0x3 ip,nw_dst=10.0.0.0/8 actions=output:2"),
            "ADDED table=1 hard_timeout=1 cookie=0 udp",
            "DELETED reason=hard table=1 hard_timeout=1 cookie=0 udp",
            "DELETED reason=delete table=0 cookie=0x1 in_port=1 actions=output:2",
            &format!(
                "DELETED reason=delete {timeouts} cookie=0x3 ip,nw_dst=10.0.0.0/8 actions=output:2"
            ),
        ];
        assert_eq!(
            received_events(context, &monitor, expected.len())?,
            expected,
            "{options}"
        );
    }
    Ok(())
}

fn flow_monitor_filters_events(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let first = "ADDED table=0 cookie=0 in_port=1 actions=output:2";
    let added = "ADDED table=1 cookie=0 tcp actions=output:1";
    let modified = "MODIFIED table=1 cookie=0 tcp actions=output:2";
    let deleted = "DELETED reason=delete table=1 cookie=0 tcp actions=output:2";
    let last = "DELETED reason=delete table=0 cookie=0 in_port=1 actions=output:2";
    for options in ["", "-O OpenFlow13", "-O OpenFlow14", "-O OpenFlow15"] {
        switch.ofctl("add-flow br0 in_port=1,actions=output:2")?;
        let expected = [
            ("!initial", vec![added, modified, deleted, last]),
            ("!add", vec![first, modified, deleted, last]),
            ("!modify", vec![first, added, deleted, last]),
            ("!delete", vec![first, added, modified]),
            ("!own", vec![first, added, modified, deleted, last]),
            ("table=1", vec![added, modified, deleted]),
            ("out_port=1", vec![added, modified]),
            ("tcp", vec![added, modified, deleted]),
        ];
        let monitors = expected
            .map(|(filter, events)| (filter, watch(context, &switch, options, filter), events));
        for words in [
            "add-flow br0 table=1,tcp,actions=output:1",
            "mod-flows br0 table=1,tcp,actions=output:2",
            "del-flows br0 table=1",
            "del-flows br0",
        ] {
            switch.ofctl(&format!("-O OpenFlow13 {words}"))?;
        }
        for (filter, monitor, events) in monitors {
            let events = events.into_iter().map(|event| match options {
                "" | "-O OpenFlow13" => event.to_owned(),
                _ if event == first => event.replace("ADDED", "INITIAL"),
                _ => event.to_owned(),
            });
            let events: Vec<_> = events.collect();
            assert_eq!(
                received_events(context, &monitor?, events.len())?,
                events,
                "{options} {filter}"
            );
        }
        let bare = watch(context, &switch, options, "!actions")?;
        switch.ofctl("add-flow br0 tcp,actions=output:1")?;
        assert_eq!(
            received_events(context, &bare, 1)?,
            ["ADDED table=0 cookie=0 tcp"]
        );
        switch.ofctl("del-flows br0")?;
    }
    Ok(())
}

/// More changes than any buffer holds, for a controller that does not read until they are done.
fn slow_flow_monitor_is_paused_and_misses_nothing(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let mut watcher = TestController::connect(context, &switch.file("br0.mgmt"), Version::V14)?;
    let monitor = Monitor {
        id: MonitorId(1),
        flags: MonitorFlags(0x3f),
        request: FlowStatsRequest::all(),
    };
    let request = MultipartRequest::FlowMonitor(vec![MonitorRequest::Add(monitor)]);
    watcher.request(&Message::MultipartRequest(request))?;
    let mut writer = TestController::connect(context, &switch.file("br0.mgmt"), Version::V14)?;
    for round in 0..8 {
        for port in 0..5_000 {
            writer.add_flow(&format!("tcp,tp_dst={port},actions=output:{}", round + 1))?;
        }
        writer.barrier();
    }
    let mut instructions_by_match = BTreeMap::new();
    let (mut paused, mut resumed) = (0, 0);
    while paused == 0 || resumed < paused {
        let updates = watcher.wait_for_message("an update", |message| match message {
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
                    instructions_by_match
                        .insert(format!("{:?}", change.matching), change.instructions);
                }
                FlowUpdate::Abbrev(_) => {
                    panic!("an abbreviated update of another controller's change")
                }
            }
        }
    }
    let last = flow::text::parse_flow_line("actions=output:8").expect("the text is a flow");
    assert_eq!(instructions_by_match.len(), 5_000);
    assert!(
        instructions_by_match
            .values()
            .all(|instructions_by_match| *instructions_by_match == last.instructions)
    );
    Ok(())
}
