//! TLV map of tunnel options by `ovs-ofctl` of Open vSwitch 3.1 in all versions except 1.1, in
//! which it does not send these messages.

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    tlv_map_is_set_and_dumped,
    tlv_map_errors_name_the_reason,
    rules_with_tunnel_options_survive_a_round_trip,
];

const VERSION_OPTIONS: [&str; 5] = [
    "-O OpenFlow10",
    "-O OpenFlow12",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

const SECURE: &str = "--bridge br0 --fail-mode secure";

/// Lines of the mappings.
fn mappings(output: &str) -> Vec<&str> {
    let lines = output.lines().map(str::trim);
    lines.filter(|line| line.contains("tun_metadata")).collect()
}

fn tlv_map_is_set_and_dumped(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch(SECURE)?;
    for options in VERSION_OPTIONS {
        let two = "{class=0xffff,type=0,len=4}->tun_metadata0,{class=0x102,type=0x80,len=124}->tun_metadata63";
        switch.ofctl(&format!("{options} add-tlv-map br0 {two}"))?;
        let output = switch.ofctl(&format!("{options} dump-tlv-map br0"))?;
        assert!(
            output.contains("max option space=256 max fields=64"),
            "{output}"
        );
        assert!(output.contains("allocated option space=128"), "{output}");
        let both = [
            "0xffff     0       4  tun_metadata0",
            "0x102  0x80     124  tun_metadata63",
        ];
        assert_eq!(mappings(&output), both);
        let one = "{class=0xffff,type=0,len=4}->tun_metadata0";
        switch.ofctl(&format!("{options} del-tlv-map br0 {one}"))?;
        let output = switch.ofctl(&format!("{options} dump-tlv-map br0"))?;
        assert_eq!(mappings(&output), both[1..]);
        switch.ofctl(&format!("{options} del-tlv-map br0"))?;
        let output = switch.ofctl(&format!("{options} dump-tlv-map br0"))?;
        assert!(mappings(&output).is_empty(), "{output}");
    }
    Ok(())
}

/// Mappings that conflict with the existing one or are invalid, and the error.
const REFUSED_MAPPINGS: [(&str, &str); 6] = [
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

fn tlv_map_errors_name_the_reason(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch(SECURE)?;
    let mapping = |number: u8| format!("{{class=1,type={number},len=16}}->tun_metadata{number}");
    let many: Vec<String> = (1..17).map(mapping).collect();
    switch.ofctl("add-tlv-map br0 {class=0xffff,type=0,len=4}->tun_metadata0")?;
    for options in VERSION_OPTIONS {
        for (map, error) in REFUSED_MAPPINGS {
            let map = map.replace("MANY", &many.join(","));
            let stderr = switch.ofctl_failure(&format!("{options} add-tlv-map br0 {map}"))?;
            assert!(stderr.contains(error), "{map}\n{stderr}");
        }
        // A refused message changes nothing, and deletion of an absent mapping is no error.
        switch.ofctl(&format!("{options} del-tlv-map br0 {}", many[0]))?;
        let output = switch.ofctl(&format!("{options} dump-tlv-map br0"))?;
        assert_eq!(mappings(&output), ["0xffff     0       4  tun_metadata0"]);
    }
    Ok(())
}

/// Rules with tunnel options, and their text in a flow dump if it differs: an option that is partly
/// set is printed as `set_field`. `WIDE` stands for a number of 124 bytes.
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

fn rules_with_tunnel_options_survive_a_round_trip(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch(SECURE)?;
    let map = [
        "{class=0xffff,type=0,len=4}->tun_metadata0",
        "{class=0x102,type=0x80,len=16}->tun_metadata1",
        "{class=0x102,type=0x81,len=124}->tun_metadata63",
    ];
    switch.ofctl(&format!("add-tlv-map br0 {}", map.join(",")))?;
    let wide: String = (1..=124).map(|byte| format!("{byte:02x}")).collect();
    let wide = format!("0x{}", wide.trim_start_matches('0'));
    for add_options in VERSION_OPTIONS {
        for (added, output) in RULES_WITH_OPTIONS {
            let output = if output.is_empty() { added } else { output };
            let [added, output] = [added, output].map(|rule| rule.replace("WIDE", &wide));
            switch.ofctl(&format!("{add_options} del-flows br0"))?;
            let rule = added.replace(' ', ",");
            switch.ofctl(&format!("{add_options} add-flow br0 {rule}"))?;
            for dump_options in VERSION_OPTIONS {
                let flows = switch.flows(&format!("{dump_options} dump-flows --no-stats br0"))?;
                let dumped: Vec<String> = flows
                    .iter()
                    .map(|flow| flow.trim().replace("reset_counts ", ""))
                    .collect();
                assert_eq!(dumped, [output.as_str()], "{add_options}, {dump_options}");
            }
        }
    }
    Ok(())
}
