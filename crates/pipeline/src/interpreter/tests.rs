//! Properties of the interpreter that no case can state: exhausted buffers, and counters of several
//! writers.

use base::{BufferId, Instant, PortNo, TableId};
use flow::{Action, PacketOut, Refusal, SampleId};
use packet::Pool;

use super::{InputFrame, Interpreter};
use crate::counters::Totals;
use crate::limits::{ACTION_SET_MAX, ACTIONS_PER_FRAME_MAX, OUTPUTS_PER_FRAME_MAX};
use crate::testing::{frame, pipeline, run};
use crate::trace::Trace;
use crate::verdict::{Destination, DropReason, Egress, Verdict};

fn ports(verdict: &Verdict) -> Vec<Destination> {
    verdict
        .egress
        .iter()
        .map(|egress| egress.to.clone())
        .collect()
}

#[test]
fn outputs_are_kept_if_buffers_run_out() {
    let pipeline = pipeline(&["in_port=1,actions=output:2,mod_dl_src:02:00:00:00:00:aa,output:3"]);
    let mut pool = Pool::new(1);
    let verdict = run(&pipeline, "eth", &mut pool, &mut ());
    assert_eq!(ports(&verdict), [Destination::Port(PortNo(2))]);
    assert_eq!(verdict.frames, [frame("eth")]);
    assert_eq!(verdict.drops, [DropReason::NoBuffer]);
}

#[test]
fn frame_without_space_for_a_tag_is_dropped() {
    let pushes = "push_vlan:0x8100,".repeat(40);
    let pipeline = pipeline(&[&format!("in_port=1,actions=output:2,{pushes}output:3")]);
    let mut pool = Pool::new(4);
    let verdict = run(&pipeline, "eth", &mut pool, &mut ());
    assert_eq!(ports(&verdict), [Destination::Port(PortNo(2))]);
    assert_eq!(verdict.frames, [frame("eth")]);
    assert_eq!(verdict.drops, [DropReason::NoRoom]);
    assert_eq!(pool.outstanding(), 1, "the frame that leaves");
}

#[test]
fn sample_has_the_values_of_its_fields() {
    let pipeline = pipeline(&["in_port=1,actions=set_field:0x1234->reg0,\
         sample(probability=9,obs_domain_id=reg0[0..7],obs_point_id=reg0[])"]);
    let verdict = run(&pipeline, "eth", &mut Pool::new(2), &mut ());
    let [Destination::Collectors(sample)] = &ports(&verdict)[..] else {
        panic!("{verdict:?}");
    };
    let numbers = (SampleId::Number(0x34), SampleId::Number(0x1234));
    assert_eq!((sample.domain, sample.point), numbers);
}

#[test]
fn action_set_limit_is_enforced() {
    // Such actions do not replace each other.
    const COPY: &str = "move:NXM_NX_REG0[]->NXM_NX_REG1[],";
    let write = |more: usize| {
        let written = COPY.repeat(ACTION_SET_MAX - 1);
        let first = format!("in_port=1,actions=write_actions({written}output:2),goto_table:1");
        let written = COPY.repeat(more);
        let second = format!("table=1,actions=write_actions({written}output:2)");
        let pipeline = pipeline(&[&first, &second]);
        run(&pipeline, "eth", &mut Pool::new(2), &mut ())
    };
    assert_eq!(write(0).drops, []);
    let verdict = write(1);
    assert_eq!(verdict.drops, [DropReason::ActionSetTooLong]);
    assert!(verdict.egress.is_empty());
}

#[test]
fn last_queue_applies_to_later_outputs() {
    let pipeline = pipeline(&[
        "in_port=1,actions=output:2,set_queue:0,output:2,enqueue:3:7,output:4,\
         clone(set_queue:5,output:2),set_queue:61440,resubmit(,1),output:2,pop_queue,output:2",
        "table=1,actions=set_queue:61439",
    ]);
    let mut pool = Pool::new(4);
    let verdict = run(&pipeline, "eth", &mut pool, &mut ());
    let queues = verdict.egress.iter().map(|egress| egress.priority.queue());
    let queues: Vec<_> = queues.map(|queue| queue.map(|queue| queue.0)).collect();
    let wanted = [None, Some(0), Some(7), Some(0), Some(5), Some(61_439), None];
    assert_eq!(queues, wanted);
    let handles = verdict.egress.iter().map(|egress| egress.priority.handle());
    let handles: Vec<_> = handles.collect();
    assert_eq!(handles[..3], [0, 0x1_0001, 0x1_0008]);
}

#[test]
fn outputs_of_one_state_share_a_frame() {
    let pipeline =
        pipeline(&["in_port=1,actions=output:2,output:3,mod_dl_src:02:00:00:00:00:aa,output:4"]);
    let mut pool = Pool::new(4);
    let verdict = run(&pipeline, "eth", &mut pool, &mut ());
    let to = |frame, port| Egress::new(frame, Destination::Port(PortNo(port)));
    assert_eq!(verdict.egress, [to(0, 2), to(0, 3), to(1, 4)]);
    assert_eq!(pool.outstanding(), 2);
}

#[test]
fn verdict_holds_the_last_packet_only() {
    let pipeline = pipeline(&["arp,actions=output:2"]);
    let (mut interpreter, mut verdict, mut pool) =
        (Interpreter::new(0), Verdict::new(), Pool::new(2));
    for text in ["eth / arp", "eth / ipv4"] {
        let arrival = InputFrame {
            frame: frame(text),
            in_port: PortNo(1),
            now: Instant::START,
        };
        interpreter.run(&pipeline, arrival, &mut pool, &mut (), &mut verdict);
    }
    assert!(verdict.frames.is_empty() && verdict.egress.is_empty());
    assert_eq!(verdict.drops, [DropReason::NoMatch]);
}

#[test]
fn writers_count_separately_and_are_summed() {
    let pipeline = pipeline(&["in_port=1,actions=output:2"]);
    let (mut verdict, mut pool) = (Verdict::new(), Pool::new(2));
    for writer in [0, 1, 1] {
        let arrival = InputFrame {
            frame: frame("eth / data(46)"),
            in_port: PortNo(1),
            now: Instant::from_secs(200),
        };
        Interpreter::new(writer).run(&pipeline, arrival, &mut pool, &mut (), &mut verdict);
    }
    let rule = pipeline.rules(TableId::ALL).next().expect("one rule");
    let three = Totals {
        packets: 3,
        bytes: 180,
    };
    assert_eq!(rule.counters.totals(), three);
    assert_eq!(rule.last_used(), Instant::from_secs(200));
}

#[test]
fn packet_with_too_long_a_continuation_is_not_paused() {
    let wait = |pushes: usize| {
        let pushes = "push:xxreg0,".repeat(pushes);
        let first = format!("in_port=1,actions={pushes}resubmit(,1),output:2");
        let second = format!("table=1,actions={pushes}controller(pause)");
        let pipeline = pipeline(&[&first, &second]);
        run(&pipeline, "eth", &mut Pool::new(2), &mut ())
    };
    assert_eq!(wait(600).drops, []);
    let verdict = wait(700);
    assert_eq!(verdict.drops, [DropReason::ContinuationTooLong]);
    assert!(verdict.egress.is_empty() && verdict.frames.is_empty());
}

#[test]
fn packet_out_of_a_buffer_is_refused() {
    let message = PacketOut {
        buffer: Some(BufferId(1)),
        registers: flow::PipelineFields::new(PortNo::CONTROLLER),
        actions: vec![Action::output(PortNo(1))],
        data: Vec::new(),
    };
    let refused = Err(Refusal::RequestBufferUnknown);
    assert_eq!(pipeline(&[]).check_packet_out(&message), refused);
}

/// A trace that shows recirculations.
struct RecirculationTrace;

impl Trace for RecirculationTrace {
    fn recirculates(&self) -> bool {
        true
    }
}

#[test]
fn recirculation_ends_a_trace_with_the_continuation() {
    let flows = [
        "in_port=1,actions=resubmit(,1),output:3",
        "table=1,actions=output:2,debug_recirc,output:1",
    ];
    let pipeline = pipeline(&flows);
    let verdict = run(&pipeline, "eth", &mut Pool::new(4), &mut RecirculationTrace);
    let [first, second] = verdict.egress.as_slice() else {
        panic!("{:?}", verdict.egress);
    };
    assert_eq!(first.to, Destination::Port(PortNo(2)));
    let Destination::Controller(meta) = &second.to else {
        panic!("{second:?}");
    };
    let continuation = meta.continuation.as_ref().expect("the rest");
    let rest: Vec<_> = continuation.steps.iter().map(|step| step.table).collect();
    assert_eq!(rest, [TableId(1), TableId(0)]);
    let verdict = run(&pipeline, "eth", &mut Pool::new(4), &mut ());
    let outputs = [2, 3].map(|port| Destination::Port(PortNo(port)));
    assert_eq!(ports(&verdict), outputs);
}

#[test]
fn packet_output_limit_is_enforced() {
    let outputs = |resubmits: usize| {
        let first = "resubmit(,1),".repeat(resubmits);
        let second = "output:2,".repeat(128);
        let first = format!("in_port=1,actions={}", first.trim_end_matches(','));
        let second = format!("table=1,actions={}", second.trim_end_matches(','));
        let pipeline = pipeline(&[&first, &second]);
        run(&pipeline, "eth", &mut Pool::new(2), &mut ())
    };
    let verdict = outputs(OUTPUTS_PER_FRAME_MAX / 128);
    assert_eq!(verdict.egress.len(), OUTPUTS_PER_FRAME_MAX);
    assert_eq!(verdict.drops, []);
    let verdict = outputs(OUTPUTS_PER_FRAME_MAX / 128 + 1);
    assert!(verdict.egress.is_empty() && verdict.frames.is_empty());
    assert_eq!(verdict.drops, [DropReason::TooManyOutputs]);
}

#[test]
fn packet_action_limit_is_enforced() {
    let actions = |resubmits: usize| {
        let first = "resubmit(,1),".repeat(resubmits);
        let second = "load:1->NXM_NX_REG0[],".repeat(1023);
        let first = format!("in_port=1,actions={first}output:2");
        let second = format!("table=1,actions={second}load:2->NXM_NX_REG1[]");
        let pipeline = pipeline(&[&first, &second]);
        run(&pipeline, "eth", &mut Pool::new(2), &mut ())
    };
    let verdict = actions(ACTIONS_PER_FRAME_MAX / 1024 - 1);
    assert_eq!(ports(&verdict), [Destination::Port(PortNo(2))]);
    let verdict = actions(ACTIONS_PER_FRAME_MAX / 1024);
    assert!(verdict.egress.is_empty());
    assert_eq!(verdict.drops, [DropReason::TooManyActions]);
}
