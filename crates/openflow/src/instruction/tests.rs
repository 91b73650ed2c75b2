//! Tests of the encoding of instructions.

use base::PortNo;
use flow::Match;
use flow::{Extension, Subfield};

use super::*;
use crate::dialect::Dialect;

fn write(
    instructions: &Instructions,
    version: Version,
    fidelity: Fidelity,
) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    let context = EncodeContext {
        matching: &Match::any(),
        fidelity,
    };
    encode(
        instructions,
        context,
        &mut Writer::new(&mut out, version.into()),
    )?;
    Ok(out)
}

fn read(bytes: &[u8], version: Version) -> Result<Instructions, Refusal> {
    decode(&mut Reader::new(bytes, Dialect::new(version))).map_err(|malformed| malformed.refusal)
}

fn everything() -> Instructions {
    Instructions {
        meter: Some(MeterId(3)),
        apply: vec![Action::output(PortNo(1))],
        clear: true,
        write: vec![Action::output(PortNo(2)), Action::PopVlan],
        metadata: Some(MetadataWrite { value: 5, mask: 7 }),
        goto: Some(TableId(9)),
    }
}

#[test]
fn instructions_round_trip() {
    let bytes = write(&everything(), Version::V13, Fidelity::Lossless).expect("1.3 has it");
    assert_eq!(read(&bytes, Version::V13), Ok(everything()));
}

#[test]
fn openflow_1_0_list_may_end_with_write_metadata() {
    let list = Instructions {
        metadata: everything().metadata,
        ..Instructions::apply(everything().apply)
    };
    let bytes = write(&list, Version::V10, Fidelity::Lossless).expect("Nicira's extension has it");
    assert_eq!(read(&bytes, Version::V10), Ok(list));
}

/// The encoding of `goto_table` in 1.0.
fn resubmit(table: TableId) -> Action {
    Action::Extended(Extension::Resubmit {
        port: PortNo::IN_PORT,
        table: Some(table),
    })
}

#[test]
fn openflow_1_0_goto_table_becomes_resubmit() {
    let list = Instructions {
        goto: Some(TableId(9)),
        ..Instructions::apply(everything().apply)
    };
    let mut expected = Instructions::apply(list.apply.clone());
    expected.apply.push(resubmit(TableId(9)));
    let bytes = write(&list, Version::V10, Fidelity::Lossless).expect("Nicira's extension has it");
    assert_eq!(read(&bytes, Version::V10), Ok(expected));
}

#[test]
fn openflow_1_0_metadata_before_goto_becomes_field_load() {
    let both = Instructions {
        meter: None,
        clear: false,
        write: Vec::new(),
        ..everything()
    };
    let mut expected = both.clone();
    (expected.metadata, expected.goto) = (None, None);
    let to = Subfield::new(Field::Metadata, 0, 3).expect("of 64");
    expected
        .apply
        .push(Action::Extended(Extension::Load { to, value: 5 }));
    expected.apply.push(resubmit(TableId(9)));
    let bytes = write(&both, Version::V10, Fidelity::Lossless).expect("Nicira's extension has it");
    assert_eq!(read(&bytes, Version::V10), Ok(expected));
    assert!(write(&everything(), Version::V10, Fidelity::Lossless).is_err());
    let encoded = write(&everything(), Version::V10, Fidelity::BestEffort).expect("best effort");
    assert_eq!(encoded, bytes, "unsupported instructions are omitted");
}

#[test]
fn openflow_1_0_decodes_metadata_and_goto_of_ovs_ofctl() {
    let part = |list: Instructions| {
        write(&list, Version::V10, Fidelity::Lossless).expect("Nicira's extension has it")
    };
    let metadata = Instructions {
        metadata: everything().metadata,
        ..Instructions::default()
    };
    let goto = Instructions {
        goto: everything().goto,
        ..Instructions::default()
    };
    let bytes = [part(metadata), part(goto)].concat();
    let both = Instructions {
        metadata: everything().metadata,
        goto: everything().goto,
        ..Instructions::default()
    };
    assert_eq!(read(&bytes, Version::V10), Ok(both));
}

#[test]
fn openflow_1_0_only_goto_may_follow_write_metadata() {
    let goto = Instructions {
        goto: Some(TableId(9)),
        ..Instructions::default()
    };
    let output = Instructions::apply(vec![Action::output(PortNo(1))]);
    let metadata = Instructions {
        metadata: Some(MetadataWrite { value: 5, mask: 7 }),
        ..Instructions::default()
    };
    let bytes = |parts: Vec<&Instructions>| {
        let encoded = parts.into_iter().map(|part| {
            write(part, Version::V10, Fidelity::Lossless).expect("Nicira's extension has it")
        });
        encoded.collect::<Vec<_>>().concat()
    };
    for parts in [
        vec![&metadata, &output],
        vec![&metadata, &metadata],
        vec![&metadata, &goto, &goto],
        vec![&metadata, &goto, &output],
    ] {
        assert_eq!(
            read(&bytes(parts), Version::V10),
            Err(Refusal::ActionUnsupportedOrder)
        );
    }
}

#[test]
fn duplicate_instruction_is_refused() {
    let bytes = write(&everything(), Version::V13, Fidelity::Lossless).expect("1.3 has it");
    let twice = [bytes.clone(), bytes].concat();
    assert_eq!(
        read(&twice, Version::V13),
        Err(Refusal::InstructionDuplicate)
    );
}
