//! The state of the controllers that a switch connects to. `ovs-ofctl` does not support these
//! messages; the text follows its other lines about controllers.

use super::config::{reason_name, role};
use super::refusal_names::DecodeErrorName;
use super::text::PrintBuffer;
use crate::codec::Reader;
use crate::message::WireFormat as _;
use crate::message::controller_status::{ControlChannelStatus, ControllerStatus, reason_number};
use crate::message::role::short_number;

const REASONS: [&str; 7] = [
    "request",
    "channel_status",
    "role",
    "controller_added",
    "controller_removed",
    "short_id",
    "experimenter_data_changed",
];

/// Writes a controller-status.
pub(super) fn print_status(
    r: &mut Reader<'_>,
    text: &mut PrintBuffer<'_>,
) -> Result<(), DecodeErrorName> {
    text.push(" ");
    print_entry(r, text)
}

/// Writes the state of all controllers, one line each.
pub(super) fn print(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    while !r.is_empty() {
        text.push("\n ");
        print_entry(r, text)?;
    }
    Ok(())
}

fn print_entry(r: &mut Reader<'_>, text: &mut PrintBuffer<'_>) -> Result<(), DecodeErrorName> {
    let mut entry = r.clone();
    let status = ControllerStatus::decode(r)?;
    entry.skip(4)?;
    let (role, _) = role(&mut entry, false)?;
    if let Some(uri) = &status.uri {
        write!(text, "uri={uri} ");
    }
    write!(
        text,
        "short_id={} role={role} reason={} channel={}",
        short_number(status.short_id),
        reason_name(&REASONS, reason_number(status.reason).into()),
        match status.channel {
            ControlChannelStatus::Up => "up",
            ControlChannelStatus::Down => "down",
        }
    );
    Ok(())
}
