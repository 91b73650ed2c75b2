//! Connection tracking and translation: rates of new connections, their number, packets of
//! established ones, the first packet, and HTTP by real programs (after RFC 9411 and RFC 2647).

pub(crate) mod concurrent;
pub(crate) mod connection_rate;
mod conversation;
mod conversation_frame;
pub(crate) mod established_rate;
pub(crate) mod first_packet;
pub(crate) mod http;
mod rule_sets;
pub(crate) mod throughput;

use testbed::DeviceKind;

use self::conversation::{ConversationPlan, ConversationResult, converse};
use self::rule_sets::StatefulRules;
use super::offered::on_tester;
use super::prelude::*;
use crate::frame_echo;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// Returns true for devices that track connections, and for the bare link, which shows the tester's
/// own share.
fn tracks_connections(device: DeviceKind) -> bool {
    let is_tracker = device.speaks_openflow() || device == DeviceKind::Nftables;
    (is_tracker && !device.makes_taps()) || device == DeviceKind::Direct
}

/// The setup of every experiment: another device for each trial, since connections outlive a trial.
const fn separate_setup(_: &Point) -> DedicatedSetup {
    DedicatedSetup {
        mode: None,
        fail_mode: testbed::FailMode::Secure,
        application: controller::Application::Silent,
        on_all_cores: false,
        separate: true,
    }
}

/// Puts the firewall into force, and checks that it refuses connections from outside.
fn prepare_firewall(setup: &mut TestSetup, tools: &Tools<'_>) -> Result<(), TrialError> {
    StatefulRules::Firewall.put_in_force(setup, tools)?;
    if setup.kind() == DeviceKind::Direct {
        return Ok(());
    }
    // A reply without its request: the first packet of a connection from outside.
    let stray = ConversationPlan::udp(0..1).steps(1, 2);
    match run(&stray, setup, tools) {
        Ok(result) if result.completed == 0 => Ok(()),
        Err(TrialError::Interrupted) => Err(TrialError::Interrupted),
        Ok(_) => {
            let text = "the firewall passes a connection from outside: the device does not track";
            Err(TrialError::Impossible(text.to_owned()))
        }
        Err(error) => Err(error),
    }
}

/// Runs conversations between the client and the server of a setup.
fn run(
    plan: &ConversationPlan,
    setup: &TestSetup,
    tools: &Tools<'_>,
) -> Result<ConversationResult, TrialError> {
    let mut ends = frame_echo::open(&setup.bench, tools.clock)?;
    let result = on_tester(tools, || {
        converse(&mut ends, plan, tools.clock, tools.interrupt)
    })?;
    Ok(result?)
}
