//! The text of traces.

use packet::Pool;

use super::TracePrinter;
use crate::testing::{pipeline, run};

fn story(flows: &[&str], frame: &str) -> String {
    let mut story = TracePrinter::new();
    run(&pipeline(flows), frame, &mut Pool::new(8), &mut story);
    story.text().to_owned()
}

#[test]
fn trace_prints_each_table() {
    let flows = [
        "priority=10,ip,cookie=5,actions=dec_ttl,output:2,write_actions(output:3),goto_table:1",
        "table=1,priority=0,actions=mod_dl_src:02:00:00:00:00:aa",
    ];
    let wanted = "\
Flow: udp,in_port=1,vlan_tci=0x0000,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,\
nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=1000,tp_dst=2000

 0. ip, priority 10, cookie 0x5
    dec_ttl
    output:2
     >> port 2
    write_actions(output:3),goto_table:1
 1. priority 0
    set_field:02:00:00:00:00:aa->eth_src
    -> the action set is executed
    output:3
     >> port 3

Final flow: udp,in_port=1,vlan_tci=0x0000,dl_src=02:00:00:00:00:aa,\
dl_dst=02:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=63,\
nw_frag=no,tp_src=1000,tp_dst=2000
";
    assert_eq!(story(&flows, "eth / ipv4 / udp"), wanted);
}

#[test]
fn trace_prints_pop_from_empty_stack_and_continues() {
    let flows = ["actions=pop:NXM_NX_REG0[],output:2"];
    let printed = story(&flows, "eth / arp");
    let expected = "    pop:NXM_NX_REG0[]\n     >>>> stack underflow <<<<\n    output:2\n";
    assert!(printed.contains(expected), "{printed}");
}

#[test]
fn trace_prints_misses_and_malformed_frames() {
    let told = story(&["arp,actions=NORMAL"], "eth / ipv4 / udp");
    assert!(told.ends_with(" 0. No match.\n    drop\n\nFinal flow: unchanged\n"));
    let told = story(&["arp,actions=NORMAL"], "raw(0102)");
    assert_eq!(
        told,
        "     >> dropped: runt\n\nFinal flow: a frame that cannot be read\n"
    );
    let told = story(&["arp,actions=NORMAL"], "eth / arp");
    assert!(told.contains("    NORMAL\n     >> normal forwarding\n"));
}
