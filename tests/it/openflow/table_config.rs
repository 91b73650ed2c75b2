//! Table configuration by controllers and tools: eviction, vacancy events, names.

use flow::{TableReason, TableStatus};
use openflow::{Message, Version};

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::ControllerListener;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    full_table_evicts_rules_and_reports_vacancy,
    ovs_ofctl_configures_eviction_vacancy_and_names,
];

fn full_table_evicts_rules_and_reports_vacancy(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let listener = ControllerListener::bind(context)?;
    let words = format!(
        "--bridge br0 --fail-mode secure --port p1 --flow-limit 1=4 --controller {}",
        listener.target()
    );
    let switch = network.start_switch(&words)?;
    let mut controller = listener.accept(Version::V14)?;
    let rule = |priority: u32, more: &str| {
        let line = format!("table=1,priority={priority},send_flow_rem,{more}actions=drop");
        format!("-O OpenFlow14 add-flow br0 {line}")
    };
    switch.ofctl("-O OpenFlow14 mod-table br0 1 vacancy:30,60")?;
    for priority in 1..=4 {
        switch.ofctl(&rule(priority, "hard_timeout=600,importance=5,"))?;
    }
    let reason = |message: &Message| match message {
        Message::TableStatus(TableStatus { reason, .. }) => Some(*reason),
        _ => None,
    };
    let vacancy_reason = controller.wait_for_message("a table status message", reason)?;
    assert_eq!(vacancy_reason, TableReason::VacancyDown);
    let refused = switch.ofctl_failure(&rule(5, ""))?;
    assert!(refused.contains("OFPFMFC_TABLE_FULL"), "{refused}");
    switch.ofctl("-O OpenFlow14 mod-table br0 1 evict")?;
    switch.ofctl("-O OpenFlow14 --strict del-flows br0 table=1,priority=3")?;
    switch.ofctl(&rule(3, "hard_timeout=900,importance=2,"))?;
    switch.ofctl(&rule(6, ""))?;
    let evicted =
        controller.wait_for_message("a flow-removed message of the eviction", |message| {
            match message {
                Message::FlowRemoved(removed)
                    if removed.reason == flow::FlowRemovedReason::Eviction =>
                {
                    Some(removed.priority)
                }
                _ => None,
            }
        })?;
    assert_eq!(evicted, 3, "the rule with the lowest importance");
    assert_eq!(
        switch.flows("-O OpenFlow14 dump-flows br0 table=1")?.len(),
        4
    );
    Ok(())
}

fn ovs_ofctl_configures_eviction_vacancy_and_names(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1")?;
    for version in [14, 15] {
        let options = format!("-O OpenFlow{version}");
        for words in ["1 evict", "2 vacancy:20,80"] {
            switch.ofctl(&format!("{options} mod-table br0 {words}"))?;
        }
        let output = switch.ofctl(&format!("{options} dump-table-desc br0"))?;
        for row in [
            "  table 1:\n   eviction=on eviction_flags=OTHER|IMPORTANCE|LIFETIME\n   vacancy=off",
            "  table 2:\n   eviction=off eviction_flags=OTHER|IMPORTANCE|LIFETIME\n   \
             vacancy=on vacancy_down=20% vacancy_up=80% vacancy=100%",
        ] {
            assert!(output.contains(row), "{output}");
        }
        switch.ofctl(&format!("{options} mod-table br0 1 noevict"))?;
        switch.ofctl(&format!("{options} mod-table br0 2 novacancy"))?;
    }
    for version in [13, 14, 15] {
        let options = format!("-O OpenFlow{version}");
        let name = format!("edge{version}");
        switch.ofctl(&format!("{options} mod-table br0 3 name:{name}"))?;
        let output = switch.ofctl(&format!("{options} dump-table-features br0"))?;
        assert!(
            output.contains(&format!("table 3 (\"{name}\"):")),
            "{output}"
        );
    }
    Ok(())
}
