//! The map of tunnel options, made and told by `ovs-ofctl` of Open vSwitch 3.1 in every
//! version. Not in 1.1, in which it does not send these messages.

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::Rig;

pub(crate) const RULES: &[Rule] = rules![
    tunnel_options_are_mapped_and_told,
    a_map_of_tunnel_options_that_cannot_be_is_refused_by_its_name,
    a_rule_with_tunnel_options_comes_back_as_it_was_given,
];

const FORMS: [&str; 5] = [
    "-O OpenFlow10",
    "-O OpenFlow12",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

const SECURE: &str = "--bridge br0 --fail-mode secure";

/// The lines of the map itself.
fn mapped(told: &str) -> Vec<&str> {
    let lines = told.lines().map(str::trim);
    lines.filter(|line| line.contains("tun_metadata")).collect()
}

fn tunnel_options_are_mapped_and_told(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start(SECURE)?;
    for form in FORMS {
        let two = "{class=0xffff,type=0,len=4}->tun_metadata0,{class=0x102,type=0x80,len=124}->tun_metadata63";
        switch.ofctl(&format!("{form} add-tlv-map br0 {two}"))?;
        let told = switch.ofctl(&format!("{form} dump-tlv-map br0"))?;
        assert!(
            told.contains("max option space=256 max fields=64"),
            "{told}"
        );
        assert!(told.contains("allocated option space=128"), "{told}");
        let both = [
            "0xffff     0       4  tun_metadata0",
            "0x102  0x80     124  tun_metadata63",
        ];
        assert_eq!(mapped(&told), both);
        let one = "{class=0xffff,type=0,len=4}->tun_metadata0";
        switch.ofctl(&format!("{form} del-tlv-map br0 {one}"))?;
        let told = switch.ofctl(&format!("{form} dump-tlv-map br0"))?;
        assert_eq!(mapped(&told), both[1..]);
        switch.ofctl(&format!("{form} del-tlv-map br0"))?;
        let told = switch.ofctl(&format!("{form} dump-tlv-map br0"))?;
        assert!(mapped(&told).is_empty(), "{told}");
    }
    Ok(())
}

/// Maps that cannot be, beside the one that there is, and the error that says so.
const REFUSED: [(&str, &str); 6] = [
    (
        "{class=1,type=2,len=4}->tun_metadata0",
        "NXTTMFC_ALREADY_MAPPED",
    ),
    (
        "{class=0xffff,type=0,len=4}->tun_metadata1",
        "NXTTMFC_DUP_ENTRY",
    ),
    (
        "{class=1,type=2,len=5}->tun_metadata1",
        "NXTTMFC_BAD_OPT_LEN",
    ),
    (
        "{class=1,type=2,len=128}->tun_metadata1",
        "NXTTMFC_BAD_OPT_LEN",
    ),
    (
        "{class=1,type=2,len=4}->tun_metadata64",
        "NXTTMFC_BAD_FIELD_IDX",
    ),
    ("MANY", "NXTTMFC_TABLE_FULL"),
];

fn a_map_of_tunnel_options_that_cannot_be_is_refused_by_its_name(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start(SECURE)?;
    let mapping = |number: u8| format!("{{class=1,type={number},len=16}}->tun_metadata{number}");
    let many: Vec<String> = (1..17).map(mapping).collect();
    switch.ofctl("add-tlv-map br0 {class=0xffff,type=0,len=4}->tun_metadata0")?;
    for form in FORMS {
        for (map, error) in REFUSED {
            let map = map.replace("MANY", &many.join(","));
            let said = switch.ofctl_refused(&format!("{form} add-tlv-map br0 {map}"))?;
            assert!(said.contains(error), "{map}\n{said}");
        }
        // What is refused has changed nothing, and what is not there need not be taken away.
        switch.ofctl(&format!("{form} del-tlv-map br0 {}", many[0]))?;
        let told = switch.ofctl(&format!("{form} dump-tlv-map br0"))?;
        assert_eq!(mapped(&told), ["0xffff     0       4  tun_metadata0"]);
    }
    Ok(())
}

/// Rules with tunnel options, and how each is told where that is otherwise: in part an option
/// is set, whatever it was called. `WIDE` stands for a number of 124 bytes.
const RULES_WITH_OPTIONS: [(&str, &str); 18] = [
    ("tun_metadata0=0x1234 actions=drop", ""),
    ("tun_metadata0=0 actions=drop", ""),
    ("tun_metadata1=0x100/0xff00 actions=drop", ""),
    (
        "tun_metadata0=0x1,tun_metadata1=0x123456789abcdef0123456789abcdef0 actions=drop",
        "",
    ),
    (
        "actions=set_field:0x1234->tun_metadata0,set_field:0x100/0xff00->tun_metadata1",
        "",
    ),
    ("actions=set_field:0->tun_metadata0", ""),
    (
        "actions=load:0x7->NXM_NX_TUN_METADATA1[64..79]",
        "actions=set_field:0x70000000000000000/0xffff0000000000000000->tun_metadata1",
    ),
    (
        "actions=move:NXM_NX_TUN_METADATA0[0..31]->NXM_NX_REG0[],move:NXM_NX_REG1[]->NXM_NX_TUN_METADATA1[8..39]",
        "",
    ),
    (
        "actions=push:NXM_NX_TUN_METADATA1[64..79],pop:NXM_NX_TUN_METADATA0[0..15]",
        "",
    ),
    (
        "actions=delete_field:tun_metadata0,output:NXM_NX_TUN_METADATA0[0..15]",
        "",
    ),
    (
        "actions=learn(table=1,NXM_NX_TUN_METADATA0[0..31],load:0x5->NXM_NX_TUN_METADATA1[0..7])",
        "",
    ),
    ("actions=check_pkt_larger(100)->NXM_NX_TUN_METADATA0[0]", ""),
    ("tun_metadata0,tun_metadata1=0x1 actions=drop", ""),
    ("tun_metadata63=WIDE actions=drop", ""),
    ("tun_metadata63=WIDE/WIDE actions=drop", ""),
    ("actions=set_field:WIDE->tun_metadata63", ""),
    (
        "actions=push:NXM_NX_TUN_METADATA63[],pop:NXM_NX_TUN_METADATA63[0..799],move:NXM_NX_TUN_METADATA63[500..899]->NXM_NX_TUN_METADATA63[0..399]",
        "",
    ),
    (
        "actions=learn(table=1,NXM_NX_TUN_METADATA63[],load:0x5->NXM_NX_REG0[0..7])",
        "",
    ),
];

fn a_rule_with_tunnel_options_comes_back_as_it_was_given(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start(SECURE)?;
    let map = [
        "{class=0xffff,type=0,len=4}->tun_metadata0",
        "{class=0x102,type=0x80,len=16}->tun_metadata1",
        "{class=0x102,type=0x81,len=124}->tun_metadata63",
    ];
    switch.ofctl(&format!("add-tlv-map br0 {}", map.join(",")))?;
    let wide: String = (1..=124).map(|byte| format!("{byte:02x}")).collect();
    let wide = format!("0x{}", wide.trim_start_matches('0'));
    for said_in in FORMS {
        for (given, told) in RULES_WITH_OPTIONS {
            let told = if told.is_empty() { given } else { told };
            let [given, told] = [given, told].map(|rule| rule.replace("WIDE", &wide));
            switch.ofctl(&format!("{said_in} del-flows br0"))?;
            let rule = given.replace(' ', ",");
            switch.ofctl(&format!("{said_in} add-flow br0 {rule}"))?;
            for told_in in FORMS {
                let flows = switch.flows(&format!("{told_in} dump-flows --no-stats br0"))?;
                let told_there: Vec<String> = flows
                    .iter()
                    .map(|flow| flow.trim().replace("reset_counts ", ""))
                    .collect();
                assert_eq!(told_there, [told.as_str()], "{said_in}, {told_in}");
            }
        }
    }
    Ok(())
}
