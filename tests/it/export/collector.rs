//! A collector, whose datagrams tshark dissects: its dissectors are independent of Comporta and
//! Open vSwitch.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use capture_file::LINKTYPE_RAW;
use capture_file::pcap::PcapHeader;
use testbed::Failure;

use crate::support::command::{CommandOutput, program};
use crate::support::network::TestNetwork;

/// Longest wait for a datagram in one poll.
const POLL_TIMEOUT: Duration = Duration::from_millis(50);

/// A collector in a network's switch namespace.
pub(crate) struct TestCollector<'r, 'g> {
    network: &'r TestNetwork<'g>,
    socket: UdpSocket,
    port: u16,
    datagrams: Vec<Vec<u8>>,
}

impl<'r, 'g> TestCollector<'r, 'g> {
    /// Opens a collector on a free port.
    pub(crate) fn new(network: &'r TestNetwork<'g>) -> Result<Self, Failure> {
        let failure = Failure::to("open a collector's socket");
        let socket = network.switch_namespace.run(|| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_read_timeout(Some(POLL_TIMEOUT))?;
            let port = socket.local_addr()?.port();
            Ok::<_, std::io::Error>((socket, port))
        })?;
        let (socket, port) = socket.map_err(failure)?;
        Ok(Self {
            network,
            socket,
            port,
            datagrams: Vec::new(),
        })
    }

    /// Address of the collector.
    pub(crate) fn target(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port)
    }

    /// Datagrams received so far.
    pub(crate) fn datagrams(&mut self) -> &[Vec<u8>] {
        let mut bytes = [0; 65_536];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            self.datagrams.push(bytes[..length].to_vec());
        }
        &self.datagrams
    }

    /// Datagrams received so far, dissected by `tshark -V`: trimmed lines.
    pub(crate) fn dissect(&mut self, protocol: &str) -> Result<Vec<String>, Failure> {
        self.datagrams();
        let file = self.network.context.unique_path("collected.pcap");
        fs::write(&file, self.pcap_file()).map_err(Failure::to("write a capture file"))?;
        let words = format!(
            "tshark -V -r {} -d udp.port=={},{protocol}",
            file.display(),
            self.port
        );
        let output = CommandOutput::run(self.network.context, program(&words))?.expect_success()?;
        assert!(!output.contains("Malformed"), "{output}");
        Ok(output.lines().map(|line| line.trim().to_owned()).collect())
    }

    /// Waits until `find` returns a value for the dissected lines.
    pub(crate) fn wait_for<T>(
        &mut self,
        protocol: &str,
        condition: &str,
        mut find: impl FnMut(&[String]) -> Option<T>,
    ) -> Result<T, Failure> {
        let context = self.network.context;
        context.wait_for(condition, || Ok(find(&self.dissect(protocol)?)))
    }

    /// Capture file of the datagrams as IPv4 packets (LINKTYPE_RAW).
    fn pcap_file(&self) -> Vec<u8> {
        let header = PcapHeader {
            link_type: LINKTYPE_RAW,
            ..PcapHeader::ETHERNET
        };
        let mut pcap_file = header.encode();
        for datagram in &self.datagrams {
            let length =
                u16::try_from(datagram.len() + 28).expect("a datagram is shorter than 64 KB");
            let mut packet = vec![0x45, 0];
            packet.extend(length.to_be_bytes());
            packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
            for word in [self.port, self.port, length - 20, 0] {
                packet.extend(word.to_be_bytes());
            }
            packet.extend(datagram);
            header.append_packet(&mut pcap_file, &packet);
        }
        pcap_file
    }
}
