//! The columns of BFD and CFM.

use l2::bfd::BfdStatus;
use l2::cfm::CfmStatus;
use ovsdb::Datum;

use super::Columns;

/// Returns the columns of an interface with this BFD session and this CFM maintenance point.
pub(super) fn columns(bfd: Option<&BfdStatus>, cfm: Option<&CfmStatus>) -> Columns {
    let truth = |truth: bool| if truth { "true" } else { "false" };
    let bfd = bfd.into_iter().flat_map(|bfd| {
        [
            ("forwarding", truth(bfd.is_forwarding).to_owned()),
            ("state", bfd.local.state.name().to_owned()),
            ("diagnostic", bfd.local.diagnostic.name().to_owned()),
            ("flap_count", bfd.flaps.to_string()),
            ("remote_state", bfd.remote.state.name().to_owned()),
            ("remote_diagnostic", bfd.remote.diagnostic.name().to_owned()),
        ]
    });
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    // The column of identifiers is signed, the identifiers are not.
    let mpid = |mpid: &u64| i64::from_ne_bytes(mpid.to_ne_bytes());
    let remote_state = cfm.filter(|cfm| cfm.is_extended);
    let remote_state = remote_state.map(|cfm| if cfm.is_remote_up { "up" } else { "down" });
    vec![
        ("bfd_status", Datum::map(bfd)),
        (
            "cfm_fault",
            Datum::optional(cfm.map(|cfm| !cfm.faults.is_none())),
        ),
        (
            "cfm_fault_status",
            Datum::set(cfm.into_iter().flat_map(|cfm| cfm.faults.names())),
        ),
        (
            "cfm_flap_count",
            Datum::optional(cfm.map(|cfm| count(cfm.flaps))),
        ),
        (
            "cfm_health",
            Datum::optional(cfm.and_then(|cfm| cfm.health).map(i64::from)),
        ),
        (
            "cfm_remote_mpids",
            Datum::set(cfm.into_iter().flat_map(|cfm| &cfm.heard).map(mpid)),
        ),
        ("cfm_remote_opstate", Datum::optional(remote_state)),
    ]
}
