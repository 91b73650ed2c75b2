//! Compilation of actions, and the operation at which the interpreter resumes.

use flow::text::parse_flow_line;

use super::*;

fn program(actions: &str) -> ActionProgram {
    let flow = parse_flow_line(&format!("tcp,actions={actions}")).expect(actions);
    ActionProgram::of(&flow.instructions)
}

#[test]
fn program_has_operation_for_each_action() {
    let program = program("dec_ttl,set_queue:1,output:2,load:7->NXM_NX_REG1[8..15],in_port");
    let expected = [
        Op::Rewrite(HeaderRewrite::DecTtl),
        Op::SetQueue(Priority::for_queue(QueueId(1)).expect("queue 1 is valid")),
        Op::Output(PortNo(2)),
        Op::Write(FieldWrite::of_field(Field::Reg1, 0x700, 0xff00).expect("a register")),
        Op::InPort,
    ];
    assert_eq!(*program.ops, expected);
    assert_eq!(
        (program.action_set, program.goto),
        (ActionSetUpdate::Keep, None)
    );
}

#[test]
fn controller_meter_and_resubmit_are_compiled() {
    let program =
        program("meter:7,controller:20,move:NXM_NX_REG1[]->OXM_OF_METADATA[0..31],resubmit(,3)");
    let part = |field, bits| Subfield::new(field, 0, bits).expect("the field has so many bits");
    let expected = [
        Op::Controller(MaxLen(20)),
        Op::Copy {
            from: part(Field::Reg1, 32),
            to: part(Field::Metadata, 32),
        },
        Op::Resubmit(TableId(3)),
    ];
    assert_eq!(*program.ops, expected);
    assert_eq!(program.meter, Some(MeterId(7)));
}

#[test]
fn program_ends_with_first_action_that_is_not_compiled() {
    for action in ["debug_slow", "debug_recirc"] {
        let program = program(&format!("output:1,{action},output:2"));
        assert_eq!(
            *program.ops,
            [Op::Output(PortNo(1)), Op::SlowPath(SlowPathReason::Action)]
        );
    }
}

#[test]
fn action_set_is_compiled() {
    let outputs = program("write_actions(output:1),goto_table:3");
    assert!(outputs.ops.is_empty());
    assert_eq!(
        (outputs.action_set, outputs.goto),
        (ActionSetUpdate::Output, Some(TableId(3)))
    );
    let rewriting = program("output:1,clear_actions,write_actions(dec_ttl,output:1)");
    assert_eq!(*rewriting.ops, [Op::Output(PortNo(1))]);
    assert_eq!(rewriting.action_set, ActionSetUpdate::ClearAndWrite);
}

#[test]
fn port_beyond_28_bits_is_not_encoded() {
    let inline = program("output:0x12345678").inline();
    assert_eq!(inline, InlineProgram::Output(PortNo(0x1234_5678)));
    assert_eq!(InlineProgram::decode(inline.encode()), InlineProgram::None);
}

#[test]
fn inline_program_is_encoded_and_decoded() {
    let check = |actions: &str, expected| {
        let inline = program(actions).inline();
        assert_eq!(inline, expected, "{actions}");
        assert_eq!(
            InlineProgram::decode(inline.encode()),
            expected,
            "{actions}"
        );
    };
    check("goto_table:7", InlineProgram::Goto(TableId(7)));
    check(
        "output:0x2345678",
        InlineProgram::Output(PortNo(0x0234_5678)),
    );
    for actions in [
        "clear_actions,goto_table:3",
        "write_actions(output:1),goto_table:3",
        "write_metadata:1,goto_table:3",
        "load:1->NXM_NX_REG0[],move:NXM_NX_REG0[]->NXM_NX_REG1[],goto_table:3",
    ] {
        check(actions, InlineProgram::WriteGoto(TableId(3)));
    }
    check("resubmit(,3)", InlineProgram::WriteResubmit(TableId(3)));
    check(
        "load:1->NXM_NX_REG0[],resubmit(,3)",
        InlineProgram::WriteResubmit(TableId(3)),
    );
    for actions in [
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
        check(actions, InlineProgram::None);
    }
}

#[test]
fn slow_path_reasons_are_numbered_in_order() {
    for (index, (reason, _)) in SlowPathReason::ALL.iter().enumerate() {
        assert_eq!(*reason as usize, index);
    }
}

#[test]
fn operation_has_32_bytes() {
    assert_eq!(size_of::<Op>(), 32);
}

#[test]
fn rules_of_controllers_are_compiled() {
    let rules = include_str!("../../tests/data/controller-rules.txt");
    let rules = rules.lines().filter(|line| !line.starts_with('#'));
    for line in rules.clone() {
        let flow = parse_flow_line(line).expect(line);
        let program = ActionProgram::of(&flow.instructions);
        let is_compiled = !program.ops.iter().any(|op| matches!(op, Op::SlowPath(_)));
        assert!(is_compiled, "{line}");
        for action in &flow.instructions.apply {
            if let Action::Extended(Extension::Clone(actions)) = action {
                let is_compiled = |action| !matches!(Op::of(action), Op::SlowPath(_));
                assert!(actions.iter().all(is_compiled), "{line}");
            }
        }
    }
    assert!(rules.count() > 100, "the file holds rules of each kind");
}
