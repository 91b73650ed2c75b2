//! Copies that nothing follows are omitted.

use base::PortNo;

use super::*;

/// The effects of a walk, a letter each: `(` and `)` for a copy, `t` for `ct`, a digit for an output.
fn shape(effects: &[WalkEffect]) -> String {
    let letter = |effect: &WalkEffect| match effect {
        WalkEffect::Send(PortNo(port)) => port.to_string(),
        WalkEffect::Drop(_) => "d".to_owned(),
        WalkEffect::BeginCopy => "(".to_owned(),
        WalkEffect::EndCopy => ")".to_owned(),
        _ => "?".to_owned(),
    };
    effects.iter().map(letter).collect()
}

fn walk_of(shape: &str) -> Walk {
    let effect = |letter: char| match letter {
        '(' => WalkEffect::BeginCopy,
        ')' => WalkEffect::EndCopy,
        'd' => WalkEffect::Drop(DropReason::OutputToIngress),
        port => WalkEffect::Send(PortNo(port.to_digit(10).expect("a digit"))),
    };
    Walk::of(shape.chars().map(effect).collect(), Vec::new())
}

#[test]
fn copies_that_nothing_follows_are_omitted() {
    for (recorded, kept) in [
        ("", ""),
        ("12", "12"),
        ("(1)", "1"),
        ("(1)2", "(1)2"),
        ("1((2)d)", "12d"),
        ("(1)(2)", "(1)2"),
        ("((1)2)d", "(1)2d"),
    ] {
        assert_eq!(shape(&walk_of(recorded).effects), kept, "{recorded}");
    }
}
