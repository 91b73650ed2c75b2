//! What a batch has found out about ports: most of its frames leave by few of them, and
//! in one snapshot a port is as it is.

use base::PortNo;
use pipeline::{DropReason, Pipeline};

/// Ports that are remembered at a time; one that finds its place taken takes it.
const PLACES: usize = 16;

/// Whether a frame may leave by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    Closed(DropReason),
}

/// The ports of a pipeline.
#[derive(Debug)]
pub(crate) struct Doors<'a> {
    pipeline: &'a Pipeline,
    /// By which the frames came in.
    from: PortNo,
    known: [(PortNo, Door); PLACES],
    /// Of the known ones, those by which the frames may leave.
    ways_out: [PortNo; PLACES],
}

impl<'a> Doors<'a> {
    pub(crate) const fn new(pipeline: &'a Pipeline, from: PortNo) -> Self {
        Self {
            pipeline,
            from,
            ways_out: [PortNo::ANY; PLACES],
            // No port has that number.
            known: [(PortNo::ANY, Door::Closed(DropReason::OutputNoPort)); PLACES],
        }
    }

    /// Whether frames may leave by a port: it is open, and not the one by which they came in.
    #[inline]
    pub(crate) fn is_way_out(&mut self, port: PortNo) -> bool {
        self.ways_out[port.0 as usize % PLACES] == port || self.becomes_way_out(port)
    }

    #[inline(never)]
    fn becomes_way_out(&mut self, port: PortNo) -> bool {
        let is_one = port != self.from && self.door(port) == Door::Open;
        if is_one {
            self.ways_out[port.0 as usize % PLACES] = port;
        }
        is_one
    }

    #[inline]
    pub(crate) fn door(&mut self, port: PortNo) -> Door {
        let place = &mut self.known[port.0 as usize % PLACES];
        if place.0 != port {
            let way_out = self.pipeline.check_egress(self.from, port);
            *place = (port, way_out.map_or_else(Door::Closed, |()| Door::Open));
        }
        place.1
    }
}
