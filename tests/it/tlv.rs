//! The map of tunnel options, made and told by `ovs-ofctl` of Open vSwitch 3.1 in every
//! version. Not in 1.1, in which it does not send these messages.

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::Rig;

pub(crate) const RULES: &[Rule] = rules![
    tunnel_options_are_mapped_and_told,
    a_map_of_tunnel_options_that_cannot_be_is_refused_by_its_name,
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
        let two = "{class=0xffff,type=0,len=4}->tun_metadata0,{class=0x102,type=0x80,len=16}->tun_metadata31";
        switch.ofctl(&format!("{form} add-tlv-map br0 {two}"))?;
        let told = switch.ofctl(&format!("{form} dump-tlv-map br0"))?;
        assert!(
            told.contains("max option space=256 max fields=32"),
            "{told}"
        );
        assert!(told.contains("allocated option space=20"), "{told}");
        let both = [
            "0xffff     0       4  tun_metadata0",
            "0x102  0x80      16  tun_metadata31",
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
        "{class=1,type=2,len=20}->tun_metadata1",
        "NXTTMFC_BAD_OPT_LEN",
    ),
    (
        "{class=1,type=2,len=4}->tun_metadata32",
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
