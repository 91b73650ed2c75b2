//! Check that new rules are in force: the rules drop probe frames, which were forwarded before. A
//! barrier reply is not sufficient, since flow caches may still have the earlier rules.

use std::time::Duration;

use flow::{Field, FlowMod, FlowModCommand, Instructions, Match};
use testbed::Failure;

use crate::setup::TestSetup;
use crate::tools::Tools;
use crate::trial::TrialError;

/// Local experimental Ethernet type of the probe frames (IEEE 802, 9.2.3), to which no host
/// replies.
const KIND: u16 = 0x88b6;

/// Priority of the probe rule, above all other rules.
const PRIORITY: u16 = u16::MAX;

/// Interval between probe frames.
const PAUSE: Duration = Duration::from_millis(1);

/// Number of consecutive dropped probe frames.
const ENOUGH: u32 = 20;

/// Time limit; a device that uses earlier rules for longer is not measured.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the rule that drops probe frames. Install it with the others.
pub(super) fn rule() -> FlowMod {
    let kind = Match::any().with(Field::EthType, KIND.into());
    let kind = kind.expect("the type of a frame has no prerequisite");
    FlowMod::new(FlowModCommand::Add, PRIORITY, kind, Instructions::default())
}

/// Waits until the device applies [`rule`].
pub(super) fn wait(setup: &TestSetup, tools: &Tools<'_>) -> Result<(), TrialError> {
    let (client, server) = (setup.bench.client(), setup.bench.server());
    let sender = client.namespace.raw_sender(client.interface)?;
    let receiver = server.namespace.raw_receiver(server.interface)?;
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&[0x02, 0, 0, 0, 0, 0xc2]);
    frame[6..12].copy_from_slice(&[0x02, 0, 0, 0, 0, 0xc1]);
    frame[12..14].copy_from_slice(&KIND.to_be_bytes());
    let mut room = [0; 128];
    let deadline = tools.clock.now() + TIMEOUT;
    let mut quiet = 0;
    while quiet < ENOUGH {
        if tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        let now = tools.clock.now();
        if now >= deadline {
            let seconds = TIMEOUT.as_secs();
            let reason =
                format!("{seconds} s after its barrier reply the device still used earlier rules");
            return Err(TrialError::Impossible(reason));
        }
        sender
            .send(&[frame])
            .map_err(Failure::to("send a probe frame"))?;
        tools.clock.sleep_until(now + PAUSE);
        quiet += 1;
        let failure = || Failure::to("receive probe frames");
        while let Some(length) = receiver.receive(&mut room).map_err(failure())? {
            if length >= 14 && room[12..14] == KIND.to_be_bytes() {
                quiet = 0;
            }
        }
    }
    Ok(())
}
