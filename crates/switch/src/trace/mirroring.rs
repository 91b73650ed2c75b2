//! Mirrors in a trace.

use base::PortNo;
use packet::Frame;

use super::{TraceEgress, TracedBridge};
use dataplane::mirrors::{MirrorContext, MirrorDirection, MirrorSet, MirrorSink};

/// A mirror sink that collects the copies.
#[derive(Default)]
struct CopyCollector(Vec<TraceEgress>);

impl MirrorSink for CopyCollector {
    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        Some(frame.clone())
    }

    fn send(&mut self, port: PortNo, frame: Frame, snaplen: Option<u16>) {
        self.0.push(TraceEgress {
            port,
            frame,
            registers: None,
            truncated: None,
            snaplen,
            bond: None,
        });
    }

    fn release(&mut self, _: Frame) {}
}

impl TracedBridge {
    /// Returns the copies of a frame at a port for the mirrors that are not in `had`.
    pub(super) fn copies(
        &self,
        frame: &Frame,
        (from, passing): (PortNo, (PortNo, MirrorDirection)),
        copied: &mut MirrorSet,
    ) -> Vec<TraceEgress> {
        let mut copies = CopyCollector::default();
        if let Some(mirrors) = self.mirrors.as_deref() {
            let context = MirrorContext {
                mirrors,
                pipeline: &self.pipeline,
                switching: self.switching.as_deref(),
                from,
            };
            context.mirror(frame, passing, copied, &mut copies);
        }
        copies.0
    }

    /// Returns the text for a frame received on a port that is reserved for mirror output: as in
    /// Open vSwitch, only the first table and the reason.
    pub(super) fn mirror_output_text(&self, trace_text: &str, from: PortNo) -> Option<String> {
        let mirrors = self.mirrors.as_deref();
        mirrors.filter(|mirrors| mirrors.is_output(from))?;
        let mut text = first_table(trace_text);
        let name = self.ports.get(&from);
        let name = name.map_or_else(|| from.to_string(), |(_, name)| name.clone());
        text += "     >>>> dropping packet received on port ";
        text += &name;
        text += ", which is reserved exclusively for mirroring <<<<\n\nFinal flow: unchanged\n";
        Some(text)
    }
}

/// Returns the text up to the first table.
pub(super) fn first_table(trace_text: &str) -> String {
    let mut lines = trace_text.split_inclusive('\n');
    let mut text = String::new();
    for line in lines.by_ref() {
        text += line;
        if line.starts_with("---") {
            break;
        }
    }
    text + lines.next().unwrap_or_default()
}
