//! What a bridge's mirrors take of a frame, in the story of its way.

use base::PortNo;
use packet::Frame;

use super::{Departure, Traced};
use dataplane::mirrors::{MirrorContext, MirrorDirection, MirrorSet, MirrorSink};

/// Copies that would be sent.
#[derive(Default)]
struct Copies(Vec<Departure>);

impl MirrorSink for Copies {
    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        Some(frame.clone())
    }

    fn send(&mut self, port: PortNo, frame: Frame, snaplen: Option<u16>) {
        self.0.push(Departure {
            port,
            frame,
            snaplen,
        });
    }

    fn give_up(&mut self, _: Frame) {}
}

impl Traced {
    /// The copies of a frame that passes a port, for the mirrors that have not `had` it.
    pub(super) fn copies(
        &self,
        frame: &Frame,
        (from, passing): (PortNo, (PortNo, MirrorDirection)),
        had: &mut MirrorSet,
    ) -> Vec<Departure> {
        let mut copies = Copies::default();
        if let Some(mirrors) = self.mirrors.as_deref() {
            let scene = MirrorContext {
                mirrors,
                pipeline: &self.pipeline,
                switching: self.switching.as_deref(),
                from,
            };
            scene.mirror(frame, passing, had, &mut copies);
        }
        copies.0
    }

    /// The story of a frame that came in by a port which is a mirror's alone, if it did: of its
    /// way only the first table is told, as Open vSwitch has it.
    pub(super) fn barred(&self, story: &str, from: PortNo) -> Option<String> {
        let mirrors = self.mirrors.as_deref();
        mirrors.filter(|mirrors| mirrors.is_output(from))?;
        let mut text = first_table(story);
        let name = self.ports.get(&from);
        let name = name.map_or_else(|| from.to_string(), |(_, name)| name.clone());
        text += "     >>>> dropping packet received on port ";
        text += &name;
        text += ", which is reserved exclusively for mirroring <<<<\n\nFinal flow: unchanged\n";
        Some(text)
    }
}

/// A story as far as the first table.
pub(super) fn first_table(story: &str) -> String {
    let mut lines = story.split_inclusive('\n');
    let mut text = String::new();
    for line in lines.by_ref() {
        text += line;
        if line.starts_with("---") {
            break;
        }
    }
    text + lines.next().unwrap_or_default()
}
