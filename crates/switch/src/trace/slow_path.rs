//! The reasons for which Open vSwitch handles a flow in its slow path.

use dataplane::punt::PuntedProtocol;

use super::{TraceRequest, TracedBridge};

/// A reason for the slow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowFlowReason {
    /// The bridge takes the frame for one of its own protocols.
    Punted(PuntedProtocol),
    /// No datapath of Open vSwitch has one of the actions.
    Action,
}

impl SlowFlowReason {
    /// Returns the name in datapath actions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Punted(PuntedProtocol::Cfm) => "cfm",
            Self::Punted(PuntedProtocol::Bfd) => "bfd",
            Self::Punted(PuntedProtocol::Slow) => "lacp",
            Self::Punted(PuntedProtocol::Spanning) => "stp",
            Self::Punted(PuntedProtocol::Lldp) => "lldp",
            Self::Action => "action",
        }
    }

    /// Returns Open vSwitch's text at the end of a trace.
    pub(super) fn remark(self) -> String {
        let reason = match self {
            Self::Punted(_) => {
                let protocol = self.name().to_uppercase();
                format!("Consists of {protocol} packets")
            }
            Self::Action => "Uses action(s) not supported by datapath".to_owned(),
        };
        format!("This flow is handled by the userspace slow path because it:\n  - {reason}.\n")
    }
}

impl TracedBridge {
    /// Returns the reason for which the ingress port punts a frame; packet-outs pass.
    pub(super) fn punt_reason(&self, request: &TraceRequest) -> Option<SlowFlowReason> {
        let punts = self.punts.as_ref()?;
        let protocols = punts
            .of(request.from)
            .filter(|_| request.actions.is_none())?;
        let tunnel_key = request.registers(self).tunnel_id;
        let protocol = protocols.protocol(request.frame.bytes(), tunnel_key);
        protocol.map(SlowFlowReason::Punted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_path_reason_is_explained_in_the_words_of_open_vswitch() {
        let reason = SlowFlowReason::Punted(PuntedProtocol::Bfd);
        let title = "This flow is handled by the userspace slow path because it:";
        assert_eq!(
            reason.remark(),
            format!("{title}\n  - Consists of BFD packets.\n")
        );
        assert_eq!(
            (reason.name(), SlowFlowReason::Action.name()),
            ("bfd", "action")
        );
    }
}
