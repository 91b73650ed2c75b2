//! Rows of the table `Controller`.

use std::collections::BTreeSet;

use ovsdb::Database;

use super::interface::unheeded;
use super::{ControllerFate, Desired, Place};
use crate::config::{BridgeConfig, ControllerRate, Listen, Target};
use crate::vswitch::rows::Record;

/// Columns that only tune something.
const UNHEEDED: [&str; 7] = [
    "max_backoff",
    "inactivity_probe",
    "controller_queue_size",
    "local_ip",
    "local_netmask",
    "local_gateway",
    "other_config",
];

/// What rates there are.
const ONE_RATE: &str = "all controllers of a bridge have the same, of 100 frames a second or \
                        more, with a burst of 25 or more";

/// Reads the controllers of a bridge.
pub(super) fn read_controllers(
    database: &Database,
    bridge: Record<'_>,
    config: &mut BridgeConfig,
    desired: &mut Desired,
) {
    let mut rows: Vec<_> = bridge
        .named_by(database, "controller", "Controller")
        .collect();
    rows.sort_by_key(|row| (row.text("target"), row.uuid));
    let rates: BTreeSet<_> = rows.iter().map(|row| rate(*row)).collect();
    let shared = rates.first().copied().filter(|_| rates.len() == 1);
    if let Some(Ok((limit, burst))) = shared {
        (config.controller_rate_limit, config.controller_burst_limit) = (limit, burst);
    }
    for row in rows {
        let place = row
            .text("target")
            .map_or_else(|| Err("no target".to_owned()), read_place);
        match &place {
            Ok(Place::Target(target)) if !config.controllers.contains(target) => {
                config.controllers.push(target.clone());
            }
            Ok(Place::Listen(listen)) if !config.listen.contains(listen) => {
                config.listen.push(listen.clone());
            }
            _ => {}
        }
        let mut notes = notes_of(row);
        if rates.len() > 1 || rates.contains(&Err(())) {
            notes.push(format!("controller_rate_limit: not honoured: {ONE_RATE}"));
        }
        let fate = ControllerFate {
            bridge: config.name.clone(),
            place,
            notes,
        };
        desired.controllers.insert(row.uuid, fate);
    }
}

/// How many frames go to a controller; an error if that cannot be.
fn rate(row: Record<'_>) -> Result<(Option<u32>, Option<u32>), ()> {
    let number = |column| match row.integer(column) {
        None => Ok(None),
        Some(number) => u32::try_from(number).map(Some).map_err(|_| ()),
    };
    let rate = ControllerRate {
        limit: number("controller_rate_limit")?,
        burst: number("controller_burst_limit")?,
    };
    rate.rate().map_err(|_| ())?;
    Ok((rate.limit, rate.burst))
}

/// Where a controller is met. That a target of Open vSwitch waits for peers is said by a
/// `p` before it.
fn read_place(target: &str) -> Result<Place, String> {
    match target.starts_with('p') {
        true => target.parse::<Listen>().map(Place::Listen),
        false => target.parse::<Target>().map(Place::Target),
    }
    .map_err(|error| error.problem)
}

fn notes_of(row: Record<'_>) -> Vec<String> {
    let given = UNHEEDED.into_iter().filter(|column| row.has(column));
    let mut notes: Vec<_> = given
        .map(|column| format!("{column}: {}", unheeded(column)))
        .collect();
    if row.text("connection_mode") == Some("in-band") {
        notes.push("connection_mode: not honoured: there is no control in band".to_owned());
    }
    if row.has("enable_async_messages") && !row.is_true("enable_async_messages") {
        notes.push("enable_async_messages: not honoured: the controller is told".to_owned());
    }
    let service = row.text("type") == Some("service");
    let goes = row
        .text("target")
        .is_some_and(|target| !target.starts_with('p'));
    if service && goes {
        notes.push("type: not honoured: who is gone to is a primary controller".to_owned());
    }
    notes
}
