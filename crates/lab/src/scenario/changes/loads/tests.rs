//! What is said, and what frames that come out are taken for.

use openflow::Version;

use super::*;

fn load(test: ChangeTest) -> Load {
    Load::new(test, &ChangeParameters::default())
}

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

#[test]
fn a_change_is_met_by_the_first_frame_that_bears_the_new_mark() {
    let mut load = load(ChangeTest::Effect);
    load.mark = 1;
    load.state = State::Changing {
        at: at(100),
        met: false,
        answered: false,
    };
    load.hear(at(120), at(90), MARKS[0]);
    load.hear(at(160), at(130), MARKS[1]);
    load.hear(at(170), at(140), MARKS[1]);
    assert_eq!(load.effect_ns, [60_000]);
}

#[test]
fn a_frame_is_late_that_was_sent_after_the_answer_and_bears_the_old_mark() {
    let mut load = load(ChangeTest::Effect);
    load.said = 1;
    load.mark = 1;
    load.last_barrier = at(200);
    load.hear(at(230), at(199), MARKS[0]);
    assert_eq!(load.late, 0);
    load.hear(at(231), at(201), MARKS[0]);
    load.hear(at(232), at(202), MARKS[1]);
    assert_eq!(load.late, 1);
}

#[test]
fn other_flows_come_and_go_in_equal_numbers() {
    let mut load = load(ChangeTest::FlowMods);
    let mut there = std::collections::BTreeSet::new();
    let mut most = 0;
    for said in 0..4 * OTHERS {
        load.said = said;
        let Message::FlowMod(flow) = load.next_other() else {
            panic!("no flow-mod");
        };
        let _ = match flow.command {
            FlowModCommand::Add => there.insert(flow.matching),
            _ => there.remove(&flow.matching),
        };
        most = most.max(there.len() as u64);
    }
    assert!(most <= OTHERS + 1, "{most}");
    assert_eq!(there.len() as u64, OTHERS);
}

#[test]
fn all_that_is_said_can_be_said_in_openflow_10() {
    for command in [
        FlowModCommand::Add,
        FlowModCommand::ModifyStrict,
        FlowModCommand::DeleteStrict,
    ] {
        for message in [rule(command, 0), rule(command, 1), other(command, 7)] {
            let said = message.encode(base::Xid(1), Version::V10, &mut Vec::new());
            assert!(said.is_ok(), "{said:?}");
        }
    }
}
