//! What a batch has found out about ports: most of its frames leave by few of them, and
//! in one snapshot a port is as it is.

use base::PortNo;
use pipeline::Pipeline;

/// Ports that are remembered at a time; one that finds its place taken takes it.
const PLACES: usize = 16;

/// Whether a frame may leave by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    Closed,
    /// There is no such port.
    Missing,
}

/// The ports of a pipeline.
#[derive(Debug)]
pub(crate) struct Doors<'a> {
    pipeline: &'a Pipeline,
    known: [(PortNo, Door); PLACES],
}

impl<'a> Doors<'a> {
    pub(crate) const fn new(pipeline: &'a Pipeline) -> Self {
        Self {
            pipeline,
            // No port has that number.
            known: [(PortNo::ANY, Door::Missing); PLACES],
        }
    }

    #[inline]
    pub(crate) fn door(&mut self, port: PortNo) -> Door {
        let place = &mut self.known[port.0 as usize % PLACES];
        if place.0 != port {
            let door = match self.pipeline.port(port) {
                None => Door::Missing,
                Some(view) if view.forwards() => Door::Open,
                Some(_) => Door::Closed,
            };
            *place = (port, door);
        }
        place.1
    }
}
