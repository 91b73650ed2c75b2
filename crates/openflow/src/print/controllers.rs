//! How the controllers are that a switch goes to. `ovs-ofctl` does not know these
//! messages: the words are those of its other lines about controllers.

use super::config::{name, role};
use super::names::Unreadable;
use super::text::Text;
use crate::codec::Reader;
use crate::message::Body as _;
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

/// Writes news of one.
pub(super) fn print_news(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    text.push(" ");
    print_one(r, text)
}

/// Writes how all are, a line for each.
pub(super) fn print(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
    while !r.is_empty() {
        text.push("\n ");
        print_one(r, text)?;
    }
    Ok(())
}

fn print_one(r: &mut Reader<'_>, text: &mut Text<'_>) -> Result<(), Unreadable> {
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
        name(&REASONS, reason_number(status.reason).into()),
        match status.channel {
            ControlChannelStatus::Up => "up",
            ControlChannelStatus::Down => "down",
        }
    );
    Ok(())
}
