//! A capture as a pcapng file: an interface for each port, the direction of each frame, and the
//! matching rules as its comment.

use std::collections::BTreeMap;
use std::io::{self, Write};

use capture_file::pcapng::{self, EnhancedPacket, FrameDirection};
use control_api::capture::{CapturedFrame, TruncatedFrame};

use super::{format_rules, port_name};

/// A pcapng file that is being written.
pub(super) struct PcapngFile<W> {
    out: W,
    /// The ports that have an interface in the file, in the order of their interfaces.
    interfaces: Vec<String>,
}

impl<W: Write> PcapngFile<W> {
    /// Writes the header of the file.
    pub(super) fn begin(mut out: W) -> io::Result<Self> {
        let mut head = Vec::new();
        pcapng::append_section_header(&mut head);
        out.write_all(&head)?;
        out.flush()?;
        Ok(Self {
            out,
            interfaces: Vec::new(),
        })
    }

    /// Writes a frame as received, and as sent on each port. The comment of a dropped frame
    /// contains the reason.
    pub(super) fn write(
        &mut self,
        captured: &CapturedFrame,
        names: &BTreeMap<String, String>,
    ) -> io::Result<()> {
        let mut blocks = Vec::new();
        let mut comment = format_rules(&captured.rules);
        for reason in &captured.drops {
            comment += &format!("; dropped: {reason}");
        }
        let received = (&captured.port, &captured.frame);
        self.packet(
            &mut blocks,
            captured.time_ns,
            FrameDirection::In,
            received,
            (&comment, names),
        );
        for exit in &captured.exits {
            let until = captured.rules.get(..exit.rules);
            let comment = format_rules(until.unwrap_or(&captured.rules));
            let sent = (&exit.port, &exit.frame);
            self.packet(
                &mut blocks,
                captured.time_ns,
                FrameDirection::Out,
                sent,
                (&comment, names),
            );
        }
        self.out.write_all(&blocks)
    }

    fn packet(
        &mut self,
        blocks: &mut Vec<u8>,
        time_ns: u64,
        direction: FrameDirection,
        (port, frame): (&String, &TruncatedFrame),
        (comment, names): (&str, &BTreeMap<String, String>),
    ) {
        let existing = self.interfaces.iter().position(|known| known == port);
        let interface = existing.unwrap_or_else(|| {
            pcapng::append_interface(blocks, port_name(port, names));
            self.interfaces.push(port.clone());
            self.interfaces.len() - 1
        });
        let packet = EnhancedPacket {
            interface: u32::try_from(interface).unwrap_or(u32::MAX),
            time_ns,
            direction,
            bytes: &frame.bytes(),
            original_length: frame.length,
            comment,
        };
        pcapng::append_packet(blocks, &packet);
    }

    /// Flushes buffered output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::super::tests::{captured, names};
    use super::*;

    #[test]
    fn wireshark_reads_ports_directions_and_rules() {
        let mut bytes = Vec::new();
        let mut file = PcapngFile::begin(&mut bytes).unwrap();
        file.write(&captured(), &names()).unwrap();
        let mut dropped = captured();
        dropped.exits.clear();
        dropped.drops.push("no_output".to_owned());
        file.write(&dropped, &names()).unwrap();
        file.flush().unwrap();
        let mut tshark = Command::new("tshark")
            .args(["-r", "-", "-T", "fields", "-E", "separator=|"])
            .args(["-e", "frame.time_epoch", "-e", "frame.p2p_dir"])
            .args(["-e", "frame.interface_name", "-e", "frame.len"])
            .args(["-e", "eth.dst", "-e", "frame.comment"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tshark.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = String::from_utf8(tshark.wait_with_output().unwrap().stdout).unwrap();
        let rules = "table=0,cookie=0x2a,priority=9,arp";
        assert_eq!(
            output,
            format!(
                "1700000000.000000123|1|eth1|60|00:00:00:00:00:01|{rules} -> table=4,priority=0\n\
                 1700000000.000000123|0|eth2|60|00:00:00:00:00:02|{rules}\n\
                 1700000000.000000123|1|eth1|60|00:00:00:00:00:01|{rules} -> table=4,priority=0; dropped: no_output\n"
            )
        );
    }
}
