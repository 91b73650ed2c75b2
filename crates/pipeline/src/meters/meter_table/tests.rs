//! Properties of the meter table that no case can state: limits and references.

use flow::text::parse_meter_line;

use super::*;
use crate::limits::Limits;
use crate::pipeline::Pipeline;
use crate::rules::Changes;
use crate::testing::{NOW, apply, pipeline};

fn change(pipeline: &mut Pipeline, line: &str) -> Result<Changes, Refusal> {
    let command = parse_meter_line(line).expect(line);
    pipeline.meter_mod(&command, NOW)
}

#[test]
fn meter_limit_is_enforced() {
    let limits = Limits {
        meters: 2,
        ..Limits::default()
    };
    let mut pipeline = Pipeline::new(limits, 1);
    let mut refusal = |line: &str| change(&mut pipeline, line).err();
    assert_eq!(refusal("meter=1,kbps,bands=type=drop,rate=1"), None);
    assert_eq!(
        refusal("meter=controller,kbps,bands=type=drop,rate=1"),
        None
    );
    let full = Some(Refusal::MeterModOutOfMeters);
    assert_eq!(refusal("meter=2,kbps,bands=type=drop,rate=1"), full);
    assert_eq!(refusal("modify meter=1,kbps,bands=type=drop,rate=2"), None);
    assert_eq!(refusal("delete meter=1"), None);
    assert_eq!(refusal("meter=2,kbps,bands=type=drop,rate=1"), None);
}

#[test]
fn unknown_flags_are_refused() {
    let mut pipeline = pipeline(&[]);
    let mut command = parse_meter_line("meter=1,kbps,bands=type=drop,rate=1").expect("legal");
    command.flags = MeterFlags(1 << 4);
    let refused = pipeline.meter_mod(&command, NOW).err();
    assert_eq!(refused, Some(Refusal::MeterModBadFlags));
}

#[test]
fn missing_meter_has_no_statistics() {
    let pipeline = pipeline(&[]);
    let unknown = Refusal::MeterModUnknownMeter;
    assert_eq!(pipeline.meter_stats(MeterId(1), NOW), Err(unknown));
    assert_eq!(pipeline.meter_configs(MeterId(1)), Err(unknown));
    assert_eq!(pipeline.meter_stats(MeterId::ALL, NOW), Ok(Vec::new()));
}

#[test]
fn deleted_meters_leave_no_references() {
    let mut pipeline = pipeline(&[]);
    for _ in 0..3 {
        let line = "meter=1,kbps,bands=type=dscp_remark,rate=1,prec_level=1";
        change(&mut pipeline, line).expect("legal");
        change(&mut pipeline, &format!("modify {line}")).expect("legal");
        apply(&mut pipeline, "in_port=1,actions=meter:1,output:2").expect("legal");
        assert_eq!(pipeline.depth(), Depth::Network);
        let changes = change(&mut pipeline, "delete").expect("legal");
        assert_eq!(changes.removed.len(), 1);
        assert_eq!(pipeline.depth(), Depth::Link);
        assert_eq!(pipeline.meters().rules.count(MeterId(1)), 0);
        assert!(pipeline.is_empty());
    }
}
