//! Connection tracking in a trace: a data path of Open vSwitch executes `ct(...)` and recirculates
//! the packet. The trace continues it, with the state of the connection that the user gives.

use std::fmt::Write;

use conntrack::{
    AddressFamily, AlgHelper, CtAddress, CtCommit, CtNat, CtRequest, NatPersistence, NatPortChoice,
    NatRange, NatSide,
};
use flow::ConnectionFields;

/// The state without `--ct-next`: `new` and `trk`.
const DEFAULT_STATE: u8 = 1 << 5 | 1;

/// The width of a heading.
const HEADING_WIDTH: usize = 79;

/// Returns the heading of a packet that continues with this state of its connection.
pub(super) fn heading(id: u32, state: u8) -> String {
    let line = "=".repeat(HEADING_WIDTH);
    let state = match state {
        DEFAULT_STATE => "default ct_state=trk|new (use --ct-next to customize)".to_owned(),
        state => {
            let is_set = |bit: &usize| state >> bit & 1 == 1;
            let names: Vec<&str> = (0..8)
                .filter(is_set)
                .map(|bit| ConnectionFields::STATES[bit])
                .collect();
            format!("ct_state={}", names.join("|"))
        }
    };
    format!("\n\n{line}\nrecirc({id:#x}) - resume conntrack with {state}\n{line}\n\n")
}

/// Returns the datapath action.
pub(super) fn action_text(request: &CtRequest, family: AddressFamily) -> String {
    let mut parts = Vec::new();
    match request.commit {
        CtCommit::No => {}
        CtCommit::Commit => parts.push("commit".to_owned()),
        CtCommit::Force => parts.push("force_commit".to_owned()),
    }
    if request.zone.0 != 0 {
        parts.push(format!("zone={}", request.zone.0));
    }
    if let Some(mark) = request.mark {
        parts.push(format!("mark={:#x}/{:#x}", mark.value, mark.mask));
    }
    if let Some(label) = request.label {
        let mask = match label.mask {
            u128::MAX => String::new(),
            mask => format!("/{mask:#x}"),
        };
        parts.push(format!("label={:#x}{mask}", label.value));
    }
    match request.helper {
        Some(AlgHelper::Ftp) => parts.push("helper=ftp".to_owned()),
        Some(AlgHelper::Tftp) => parts.push("helper=tftp".to_owned()),
        None => {}
    }
    match request.nat {
        Some(CtNat::Existing) => parts.push("nat".to_owned()),
        Some(CtNat::New(range)) => parts.push(nat_text(&range, family)),
        None => {}
    }
    match parts.is_empty() {
        true => "ct".to_owned(),
        false => format!("ct({})", parts.join(",")),
    }
}

fn nat_text(range: &NatRange, family: AddressFamily) -> String {
    let side = match range.side {
        NatSide::Source => "src",
        NatSide::Destination => "dst",
    };
    let mut text = format!("nat({side}");
    if let Some((first, last)) = range.addresses {
        let is_bracketed = family == AddressFamily::V6 && range.ports.is_some();
        let address = |address: CtAddress| match is_bracketed {
            true => format!("[{}]", address.to_ip(family)),
            false => address.to_ip(family).to_string(),
        };
        let _ = write!(text, "={}", address(first));
        if last != first {
            let _ = write!(text, "-{}", address(last));
        }
        if let Some((first, last)) = range.ports {
            let _ = write!(text, ":{first}");
            if last != first {
                let _ = write!(text, "-{last}");
            }
        }
    }
    if range.persistence == NatPersistence::PerClient {
        text += ",persistent";
    }
    if range.choice == NatPortChoice::Random {
        text += ",random";
    }
    text + ")"
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use conntrack::{CtZone, MaskedWrite};

    use super::*;

    #[test]
    fn ct_action_is_written_as_a_data_path_has_it() {
        assert_eq!(action_text(&CtRequest::default(), AddressFamily::V4), "ct");
        let request = CtRequest {
            zone: CtZone(2),
            commit: CtCommit::Commit,
            mark: Some(MaskedWrite {
                value: 1,
                mask: 0xff,
            }),
            nat: Some(CtNat::New(NatRange {
                ports: Some((5, 9)),
                ..NatRange::to_address(NatSide::Source, Ipv4Addr::new(10, 0, 0, 1).into())
            })),
            ..CtRequest::default()
        };
        let text = action_text(&request, AddressFamily::V4);
        assert_eq!(
            text,
            "ct(commit,zone=2,mark=0x1/0xff,nat(src=10.0.0.1:5-9))"
        );
    }

    #[test]
    fn heading_names_the_state() {
        let text = heading(1, DEFAULT_STATE);
        assert!(text.contains("recirc(0x1) - resume conntrack with default ct_state=trk|new"));
        assert!(heading(2, 1 << 5 | 2).contains("with ct_state=est|trk\n"));
    }
}
