//! A bridge's mirrors on the control thread: what they are told while it runs, and copies of
//! frames that controllers send.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::PortNo;
use packet::Frame;

use super::{Bridge, Effect};
use config::MirrorConfig;
use dataplane::mirrors::{MirrorContext, MirrorDirection, MirrorSet, MirrorSink, Mirrors};

/// Sends copies as frames of the bridge's own.
struct Copying<'a>(&'a mut Vec<Effect>);

impl MirrorSink for Copying<'_> {
    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        Some(frame.clone())
    }

    fn send(&mut self, port: PortNo, mut copy: Frame, snaplen: Option<u16>) {
        if let Some(snaplen) = snaplen {
            copy.complete_checksum();
            copy.truncate(usize::from(snaplen));
        }
        self.0.push(Effect::Transmit(port, copy, None));
    }

    fn give_up(&mut self, _: Frame) {}
}

impl Bridge {
    /// Has these mirrors from now on. Nobody is behind their ports any more: those take no part
    /// in switching.
    pub fn set_mirrors(&mut self, mirrors: &[MirrorConfig]) {
        self.mirrors = Mirrors::compile(mirrors, self.mirrors.as_deref());
        for port in self.mirrors.iter().flat_map(|mirrors| mirrors.outputs()) {
            self.stations.remove_port(port);
        }
        self.unpublished = true;
    }

    /// Its mirrors; none if there are none.
    pub const fn mirrors(&self) -> Option<&Arc<Mirrors>> {
        self.mirrors.as_ref()
    }

    /// How many frames each has copied, by its key, and how many bytes they had.
    pub fn mirrored(&self) -> BTreeMap<String, (u64, u64)> {
        let mirrors = self.mirrors.iter().flat_map(|mirrors| mirrors.counts());
        mirrors
            .map(|(key, counts)| (key.to_owned(), counts))
            .collect()
    }

    /// Whether what comes in by a port goes nowhere, since it is a mirror's alone.
    pub(super) fn is_mirrors_own(&self, port: PortNo) -> bool {
        let mirrors = self.mirrors.as_ref();
        mirrors.is_some_and(|mirrors| mirrors.is_output(port))
    }

    /// Copies a frame that passes a port, for the mirrors that have not `had` it.
    pub(super) fn mirror(
        &self,
        frame: &Frame,
        (from, passing): (PortNo, (PortNo, MirrorDirection)),
        had: &mut MirrorSet,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(mirrors) = self.mirrors.as_deref() {
            let scene = MirrorContext {
                mirrors,
                pipeline: &self.pipeline,
                switching: self.switching.as_deref(),
                from,
            };
            scene.mirror(frame, passing, had, &mut Copying(effects));
        }
    }

    /// The mirrors that have had a frame which came in by `from` and waited since.
    pub(super) fn mirrors_had(&self, from: PortNo) -> MirrorSet {
        let mirrors = self.mirrors.as_ref();
        mirrors.map(|mirrors| mirrors.had(from)).unwrap_or_default()
    }
}
