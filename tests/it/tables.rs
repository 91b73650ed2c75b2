//! Tables as controllers and tools configure them: eviction, vacancy, names.

use flow::{TableReason, TableStatus};
use openflow::{Message, Version};

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::peer::Desk;
use crate::rig::Rig;

pub(crate) const RULES: &[Rule] = rules![
    a_full_table_makes_room_and_says_so,
    a_table_is_configured_by_ovs_ofctl,
];

fn a_full_table_makes_room_and_says_so(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let desk = Desk::open(ground)?;
    let words = format!(
        "--bridge br0 --fail-mode secure --port p1 --flow-limit 1=4 --controller {}",
        desk.target()
    );
    let switch = rig.start(&words)?;
    let mut controller = desk.meet(Version::V14)?;
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
    let down = controller.hear("that the table runs full", reason)?;
    assert_eq!(down, TableReason::VacancyDown);
    let refused = switch.ofctl_refused(&rule(5, ""))?;
    assert!(refused.contains("OFPFMFC_TABLE_FULL"), "{refused}");
    switch.ofctl("-O OpenFlow14 mod-table br0 1 evict")?;
    switch.ofctl("-O OpenFlow14 --strict del-flows br0 table=1,priority=3")?;
    switch.ofctl(&rule(3, "hard_timeout=900,importance=2,"))?;
    switch.ofctl(&rule(6, ""))?;
    let gone = controller.hear("that a rule had to go", |message| match message {
        Message::FlowRemoved(gone) if gone.reason == flow::FlowRemovedReason::Eviction => {
            Some(gone.priority)
        }
        _ => None,
    })?;
    assert_eq!(gone, 3, "the least important");
    assert_eq!(
        switch.flows("-O OpenFlow14 dump-flows br0 table=1")?.len(),
        4
    );
    Ok(())
}

fn a_table_is_configured_by_ovs_ofctl(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 1)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1")?;
    for version in [14, 15] {
        let form = format!("-O OpenFlow{version}");
        for words in ["1 evict", "2 vacancy:20,80"] {
            switch.ofctl(&format!("{form} mod-table br0 {words}"))?;
        }
        let told = switch.ofctl(&format!("{form} dump-table-desc br0"))?;
        for row in [
            "  table 1:\n   eviction=on eviction_flags=IMPORTANCE|LIFETIME\n   vacancy=off",
            "  table 2:\n   eviction=off eviction_flags=IMPORTANCE|LIFETIME\n   \
             vacancy=on vacancy_down=20% vacancy_up=80% vacancy=100%",
        ] {
            assert!(told.contains(row), "{told}");
        }
        switch.ofctl(&format!("{form} mod-table br0 1 noevict"))?;
        switch.ofctl(&format!("{form} mod-table br0 2 novacancy"))?;
    }
    for version in [13, 14, 15] {
        let form = format!("-O OpenFlow{version}");
        let name = format!("edge{version}");
        switch.ofctl(&format!("{form} mod-table br0 3 name:{name}"))?;
        let told = switch.ofctl(&format!("{form} dump-table-features br0"))?;
        assert!(told.contains(&format!("table 3 (\"{name}\"):")), "{told}");
    }
    Ok(())
}
