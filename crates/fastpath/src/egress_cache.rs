//! Egress cache: the results of the egress checks of one batch. Most frames of a batch leave by
//! few ports, and within one published program the state of a port does not change.

use base::PortNo;
use pipeline::{DropReason, Pipeline};

/// Ports that are cached. A port whose slot is taken replaces the other.
const SLOTS: usize = 16;

/// Result of the egress check of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EgressCheck {
    /// The port exists, is up and forwards.
    Allowed,
    Denied(DropReason),
}

impl EgressCheck {
    /// Checks a port, without the cache.
    #[inline(never)]
    pub(crate) fn of(pipeline: &Pipeline, in_port: PortNo, port: PortNo) -> Self {
        let check = pipeline.check_egress(in_port, port);
        check.map_or_else(Self::Denied, |()| Self::Allowed)
    }
}

/// Egress checks of a pipeline for frames of one ingress port.
#[derive(Debug)]
pub(crate) struct EgressCache<'a> {
    pipeline: &'a Pipeline,
    in_port: PortNo,
    checks: [(PortNo, EgressCheck); SLOTS],
    /// Ports by which the frames may leave: allowed, and not the ingress port.
    allowed: [PortNo; SLOTS],
}

impl<'a> EgressCache<'a> {
    pub(crate) const fn new(pipeline: &'a Pipeline, in_port: PortNo) -> Self {
        Self {
            pipeline,
            in_port,
            allowed: [PortNo::ANY; SLOTS],
            // No port has that number.
            checks: [(PortNo::ANY, EgressCheck::Denied(DropReason::OutputNoPort)); SLOTS],
        }
    }

    /// True if frames may leave by a port: it is allowed, and not the ingress port.
    #[inline]
    pub(crate) fn may_egress(&mut self, port: PortNo) -> bool {
        self.allowed[port.0 as usize % SLOTS] == port || self.check_and_insert(port)
    }

    #[inline(never)]
    fn check_and_insert(&mut self, port: PortNo) -> bool {
        let may_egress = port != self.in_port && self.check(port) == EgressCheck::Allowed;
        if may_egress {
            self.allowed[port.0 as usize % SLOTS] = port;
        }
        may_egress
    }

    /// Egress check of a port, the ingress port included.
    #[inline]
    pub(crate) fn check(&mut self, port: PortNo) -> EgressCheck {
        let slot = &mut self.checks[port.0 as usize % SLOTS];
        if slot.0 != port {
            let check = self.pipeline.check_egress(self.in_port, port);
            *slot = (
                port,
                check.map_or_else(EgressCheck::Denied, |()| EgressCheck::Allowed),
            );
        }
        slot.1
    }
}
