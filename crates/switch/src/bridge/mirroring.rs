//! Mirrors on the control thread: their configuration, and copies of packet-outs.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::PortNo;
use packet::Frame;

use super::{Bridge, Effect};
use config::MirrorConfig;
use dataplane::mirrors::{MirrorContext, MirrorDirection, MirrorSet, MirrorSink, Mirrors};

/// A mirror sink that sends copies as effects.
struct EffectSink<'a>(&'a mut Vec<Effect>);

impl MirrorSink for EffectSink<'_> {
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

    fn release(&mut self, _: Frame) {}
}

impl Bridge {
    /// Sets the mirrors. Entries of the forwarding database on their output ports are removed,
    /// because those ports take no part in switching.
    pub fn set_mirrors(&mut self, mirrors: &[MirrorConfig]) {
        self.normal.mirrors = Mirrors::compile(mirrors, self.normal.mirrors.as_deref());
        for port in self
            .normal
            .mirrors
            .iter()
            .flat_map(|mirrors| mirrors.outputs())
        {
            self.normal.fdb.remove_port(port);
        }
        self.publication.request();
    }

    /// Returns the mirrors; none if there are none.
    pub const fn mirrors(&self) -> Option<&Arc<Mirrors>> {
        self.normal.mirrors.as_ref()
    }

    /// Returns the copied frames and bytes of each mirror, by its key.
    pub fn mirrored(&self) -> BTreeMap<String, (u64, u64)> {
        let mirrors = self
            .normal
            .mirrors
            .iter()
            .flat_map(|mirrors| mirrors.counts());
        mirrors
            .map(|(key, counts)| (key.to_owned(), counts))
            .collect()
    }

    /// Returns whether a port is reserved for mirror output, so that its input is dropped.
    pub(super) fn is_mirror_output(&self, port: PortNo) -> bool {
        let mirrors = self.normal.mirrors.as_ref();
        mirrors.is_some_and(|mirrors| mirrors.is_output(port))
    }

    /// Copies a frame at a port to the mirrors that are not in `had`.
    pub(super) fn mirror(
        &self,
        frame: &Frame,
        (from, passing): (PortNo, (PortNo, MirrorDirection)),
        copied: &mut MirrorSet,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(mirrors) = self.normal.mirrors.as_deref() {
            let context = MirrorContext {
                mirrors,
                pipeline: &self.tables.pipeline,
                switching: self.normal.switching.as_deref(),
                from,
            };
            context.mirror(frame, passing, copied, &mut EffectSink(effects));
        }
    }
}
