//! What actions come to, and where the interpreter goes on.

use flow::text::parse_flow_line;

use super::*;

fn steps(actions: &str) -> Steps {
    let flow = parse_flow_line(&format!("tcp,actions={actions}")).expect(actions);
    Steps::of(&flow.instructions)
}

#[test]
fn a_step_stands_for_each_action() {
    let made = steps("dec_ttl,set_queue:1,output:2,load:7->NXM_NX_REG1[8..15],in_port");
    let wanted = [
        Step::Change(Change::DecTtl),
        Step::Queue(Priority::for_queue(QueueId(1)).expect("a port may have it")),
        Step::Output(PortNo(2)),
        Step::Write(Write::of_field(Field::Reg1, 0x700, 0xff00).expect("a register")),
        Step::InPort,
    ];
    assert_eq!(*made.steps, wanted);
    assert_eq!((made.set, made.goto), (Set::Kept, None));
}

#[test]
fn what_leads_to_controllers_meters_and_other_tables_is_a_step() {
    let made =
        steps("meter:7,controller:20,move:NXM_NX_REG1[]->OXM_OF_METADATA[0..31],resubmit(,3)");
    let part = |field, bits| Subfield::new(field, 0, bits).expect("it has them");
    let wanted = [
        Step::Report(MaxLen(20)),
        Step::Copy {
            from: part(Field::Reg1, 32),
            to: part(Field::Metadata, 32),
        },
        Step::Resubmit(TableId(3)),
    ];
    assert_eq!(*made.steps, wanted);
    assert_eq!(made.meter, Some(MeterId(7)));
}

#[test]
fn behind_what_is_not_compiled_there_is_nothing() {
    let made = steps("output:1,exit,output:2");
    assert_eq!(
        *made.steps,
        [Step::Output(PortNo(1)), Step::Hand(SlowPathReason::Action)]
    );
}

#[test]
fn an_action_set_that_only_sends_is_compiled() {
    let made = steps("write_actions(output:1),goto_table:3");
    assert!(made.steps.is_empty());
    assert_eq!((made.set, made.goto), (Set::Output, Some(TableId(3))));
    let made = steps("output:1,clear_actions,write_actions(dec_ttl,output:1)");
    let handed = Step::Hand(SlowPathReason::ActionSet);
    assert_eq!(*made.steps, [Step::Output(PortNo(1)), handed]);
}

#[test]
fn of_a_port_that_fits_in_no_word_nothing_is_said() {
    let brief = steps("output:0x12345678").brief();
    assert_eq!(brief, Brief::Leaves(PortNo(0x1234_5678)));
    assert_eq!(Brief::of(brief.word()), Brief::Not);
}

#[test]
fn what_is_brief_is_said_in_a_word() {
    let check = |actions: &str, wanted| {
        let brief = steps(actions).brief();
        assert_eq!(brief, wanted, "{actions}");
        assert_eq!(Brief::of(brief.word()), wanted, "{actions}");
    };
    check("goto_table:7", Brief::Leads(TableId(7)));
    check("output:0x2345678", Brief::Leaves(PortNo(0x0234_5678)));
    for written in [
        "clear_actions,goto_table:3",
        "write_actions(output:1),goto_table:3",
        "write_metadata:1,goto_table:3",
        "load:1->NXM_NX_REG0[],move:NXM_NX_REG0[]->NXM_NX_REG1[],goto_table:3",
    ] {
        check(written, Brief::Writes(TableId(3)));
    }
    check("resubmit(,3)", Brief::Resubmits(TableId(3)));
    check(
        "load:1->NXM_NX_REG0[],resubmit(,3)",
        Brief::Resubmits(TableId(3)),
    );
    for more in [
        "drop",
        "in_port",
        "output:1,output:2",
        "dec_ttl,output:1",
        "output:1,goto_table:3",
        "meter:1,output:1",
        "meter:1,load:1->NXM_NX_REG0[],goto_table:3",
        "load:1->NXM_NX_REG0[],dec_ttl,goto_table:3",
        "load:1->NXM_NX_REG0[]",
        "resubmit(,3),load:1->NXM_NX_REG0[]",
        "resubmit(,3),write_metadata:1",
        "resubmit(,3),goto_table:4",
        "write_actions(output:1)",
        "write_actions(dec_ttl,output:1),goto_table:3",
    ] {
        check(more, Brief::Not);
    }
}

#[test]
fn reasons_have_numbers_of_their_own() {
    for (index, (reason, _)) in SlowPathReason::ALL.iter().enumerate() {
        assert_eq!(*reason as usize, index);
    }
}

#[test]
fn a_step_is_small() {
    assert_eq!(size_of::<Step>(), 32);
}
