//! Tests of arguments, and of the error messages for invalid ones.

use clap::{Command, FromArgMatches};

use lab::instrument::{Pattern, Speed, Target};

use super::*;

/// Parses a command; an error is its message.
fn read(words: &str) -> Result<InstrumentCommand, String> {
    let command = InstrumentCommand::augment_subcommands(Command::new("lab"));
    let words = ["lab"].into_iter().chain(words.split_whitespace());
    let matches = command
        .try_get_matches_from(words)
        .map_err(|error| error.to_string())?;
    InstrumentCommand::from_arg_matches(&matches).map_err(|error| error.to_string())
}

fn refused(words: &str) -> String {
    read(words)
        .err()
        .unwrap_or_else(|| panic!("{words} was accepted"))
}

#[test]
fn instrument_arguments_are_consistent() {
    InstrumentCommand::augment_subcommands(Command::new("lab")).debug_assert();
}

#[test]
fn generate_arguments_select_templates_rates_and_sizes() {
    let Ok(InstrumentCommand::Generate(args)) = read(
        "generate a ns:b --to c,d --rate 10kpps,100Mbit,flat-out --size 64,imix \
         --frames vlan+tcp --flows 1000 --random --pattern burst:64 --seconds 2.5 --xdp --json",
    ) else {
        panic!("valid arguments");
    };
    assert_eq!((args.from.len(), args.target.to.len()), (2, 2));
    assert_eq!((args.rate.len(), args.size.len()), (3, 2));
    assert_eq!(args.rate[2], Speed::FlatOut);
    assert_eq!(args.pattern, Pattern::Bursts(64));
    assert_eq!(args.seconds, Duration::from_millis(2_500));
    let headers = args.headers.headers();
    assert_eq!((headers.flows, headers.random), (1_000, true));
    assert_eq!(headers.kind.to_string(), "vlan+tcp");
    assert_eq!(args.common.by(), IoMethod::Xdp);
}

#[test]
fn invalid_arguments_get_a_suggestion() {
    let expect_error = |words: &str, expected: &str| {
        let error = refused(words);
        assert!(error.contains(expected), "{error}");
    };
    expect_error("generate a --rate 10kpp", "did you mean 'kpps'?");
    expect_error("generate a --frames vxlam", "did you mean 'vxlan'?");
    expect_error("generate a --pattern poison", "did you mean 'poisson'?");
    expect_error("generate a --size 63", "64 to 9000 bytes");
    expect_error("generate a --count 0", "0");
    expect_error("generate a --seconds 5 --count 7", "cannot be used with");
    expect_error("generate a --to b --reflected", "cannot be used with");
    expect_error("generate a:b:c/d", "is not an interface name");
    expect_error("calibrate one-end", "2 values required");
    expect_error("calibrate --sweep sise", "did you mean 'size'?");
    expect_error(
        "controller --application learnin",
        "did you mean 'learning'?",
    );
    expect_error("controller --listen nowhere", "ADDRESS:PORT");
    expect_error(
        "replay x.pcap a --speed 2 --rate 1kpps",
        "cannot be used with",
    );
    expect_error("replay x.pcap a --speed fast", "not a speed");
}

#[test]
fn namespace_option_applies_to_unqualified_interfaces() {
    let Ok(InstrumentCommand::Generate(args)) = read("generate a other:b --to c -n lab") else {
        panic!("valid arguments");
    };
    let GenerateArgs {
        from,
        target,
        common,
        ..
    } = *args;
    let names: Vec<String> = common
        .in_namespaces(from)
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["lab:a", "other:b"]);
    let Ok(Target::Interfaces(to)) = target.target(&common) else {
        panic!("there is a target");
    };
    assert_eq!(to[0].to_string(), "lab:c");
}

#[test]
fn reflected_frames_are_received_on_the_sending_interface() {
    let target = |words: &str| match read(words) {
        Ok(InstrumentCommand::Generate(args)) => {
            let GenerateArgs { target, common, .. } = *args;
            target.target(&common).ok()
        }
        _ => None,
    };
    let back = |reflection| Some(Target::Back(reflection));
    assert_eq!(target("generate a --reflected"), back(Reflection::Macs));
    assert_eq!(
        target("generate a --reflected addresses"),
        back(Reflection::Addresses)
    );
    assert_eq!(target("generate a"), Some(Target::Nobody));
}
