//! OpenFlow: messages, controllers, rules, groups, meters and bundles.

mod actions;
mod barriers;
mod bundles;
mod conntrack;
mod conntrack_fragments;
pub(crate) mod controllers;
mod flow_monitors;
mod groups_and_meters;
mod hostile_peers;
mod memory_growth;
mod message_encoding;
mod nicira_extensions;
mod ofp_print;
mod ovs_ofctl;
mod ovs_ofctl_commands;
mod packet_in_rate;
mod padding;
mod robustness;
mod table_config;
mod text_formats;
mod tlv_map;

use crate::support::context::SystemTest;

/// Tests of this folder.
pub(crate) const TESTS: &[&[SystemTest]] = &[
    actions::TESTS,
    barriers::TESTS,
    bundles::TESTS,
    conntrack::TESTS,
    conntrack_fragments::TESTS,
    controllers::TESTS,
    flow_monitors::TESTS,
    groups_and_meters::TESTS,
    hostile_peers::TESTS,
    memory_growth::TESTS,
    message_encoding::TESTS,
    nicira_extensions::TESTS,
    ofp_print::TESTS,
    ovs_ofctl::TESTS,
    ovs_ofctl_commands::TESTS,
    packet_in_rate::TESTS,
    padding::TESTS,
    robustness::TESTS,
    table_config::TESTS,
    text_formats::TESTS,
    tlv_map::TESTS,
];
