//! Tests of what a rule does, on the wire.

use base::PortNo;
use flow::Match;
use flow::{Extension, Part};

use super::*;
use crate::dialect::Dialect;

fn write(
    instructions: &Instructions,
    version: Version,
    faith: Faith,
) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    let context = Context {
        matching: &Match::any(),
        faith,
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
fn all_instructions_are_read_as_they_were_written() {
    let bytes = write(&everything(), Version::V13, Faith::Exact).expect("1.3 has words");
    assert_eq!(read(&bytes, Version::V13), Ok(everything()));
}

#[test]
fn in_1_0_a_list_may_end_with_metadata() {
    let list = Instructions {
        metadata: everything().metadata,
        ..Instructions::apply(everything().apply)
    };
    let bytes = write(&list, Version::V10, Faith::Exact).expect("Nicira has words");
    assert_eq!(read(&bytes, Version::V10), Ok(list));
}

/// What 1.0 makes of `goto_table`.
fn resubmit(table: TableId) -> Action {
    Action::Extended(Extension::Resubmit {
        port: PortNo::IN_PORT,
        table: Some(table),
    })
}

#[test]
fn in_1_0_a_later_table_is_resubmitted_to() {
    let list = Instructions {
        goto: Some(TableId(9)),
        ..Instructions::apply(everything().apply)
    };
    let mut said = Instructions::apply(list.apply.clone());
    said.apply.push(resubmit(TableId(9)));
    let bytes = write(&list, Version::V10, Faith::Exact).expect("Nicira has words");
    assert_eq!(read(&bytes, Version::V10), Ok(said));
}

#[test]
fn in_1_0_metadata_before_a_later_table_is_written_as_a_field() {
    let both = Instructions {
        meter: None,
        clear: false,
        write: Vec::new(),
        ..everything()
    };
    let mut said = both.clone();
    (said.metadata, said.goto) = (None, None);
    let to = Part::new(Field::Metadata, 0, 3).expect("of 64");
    said.apply
        .push(Action::Extended(Extension::Load { to, value: 5 }));
    said.apply.push(resubmit(TableId(9)));
    let bytes = write(&both, Version::V10, Faith::Exact).expect("Nicira has words");
    assert_eq!(read(&bytes, Version::V10), Ok(said));
    assert!(write(&everything(), Version::V10, Faith::Exact).is_err());
    let told = write(&everything(), Version::V10, Faith::Good).expect("good faith");
    assert_eq!(told, bytes, "what it has no words for is left out");
}

#[test]
fn in_1_0_both_are_read_as_ovs_ofctl_sends_them() {
    let part =
        |list: Instructions| write(&list, Version::V10, Faith::Exact).expect("Nicira has words");
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
fn in_1_0_nothing_comes_behind_metadata_but_a_later_table() {
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
        let told = parts
            .into_iter()
            .map(|part| write(part, Version::V10, Faith::Exact).expect("Nicira has words"));
        told.collect::<Vec<_>>().concat()
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
fn an_instruction_may_come_once() {
    let bytes = write(&everything(), Version::V13, Faith::Exact).expect("1.3 has words");
    let twice = [bytes.clone(), bytes].concat();
    assert_eq!(
        read(&twice, Version::V13),
        Err(Refusal::InstructionDuplicate)
    );
}
