//! A collector, whose datagrams tshark dissects: its dissectors are others' than ours and Open
//! vSwitch's.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use testbed::Failure;

use crate::support::command::{CommandOutput, program};
use crate::support::network::TestNetwork;

/// A look for a datagram takes so long.
const LOOK: Duration = Duration::from_millis(50);

/// A collector at the home of a rig.
pub(crate) struct Collector<'r, 'g> {
    network: &'r TestNetwork<'g>,
    socket: UdpSocket,
    port: u16,
    datagrams: Vec<Vec<u8>>,
}

impl<'r, 'g> Collector<'r, 'g> {
    /// One at a port that is free.
    pub(crate) fn new(network: &'r TestNetwork<'g>) -> Result<Self, Failure> {
        let failure = Failure::to("open a collector's socket");
        let socket = network.switch_namespace.run(|| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_read_timeout(Some(LOOK))?;
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

    /// Where it is.
    pub(crate) fn target(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port)
    }

    /// The datagrams that it has heard so far.
    pub(crate) fn datagrams(&mut self) -> &[Vec<u8>] {
        let mut bytes = [0; 65_536];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            self.datagrams.push(bytes[..length].to_vec());
        }
        &self.datagrams
    }

    /// The same as `tshark -V` tells of this protocol, line by line.
    pub(crate) fn heard(&mut self, protocol: &str) -> Result<Vec<String>, Failure> {
        self.datagrams();
        let file = self.network.context.unique_path("heard.pcap");
        fs::write(&file, self.capture()).map_err(Failure::to("write a capture"))?;
        let words = format!(
            "tshark -V -r {} -d udp.port=={},{protocol}",
            file.display(),
            self.port
        );
        let told = CommandOutput::run(self.network.context, program(&words))?.expect_success()?;
        assert!(!told.contains("Malformed"), "{told}");
        Ok(told.lines().map(|line| line.trim().to_owned()).collect())
    }

    /// Waits until `find` finds something in that.
    pub(crate) fn wait_for<T>(
        &mut self,
        protocol: &str,
        what: &str,
        mut find: impl FnMut(&[String]) -> Option<T>,
    ) -> Result<T, Failure> {
        let context = self.network.context;
        context.wait_for(what, || Ok(find(&self.heard(protocol)?)))
    }

    /// The datagrams as a capture of IPv4 packets (LINKTYPE_RAW).
    fn capture(&self) -> Vec<u8> {
        let mut capture = Vec::new();
        for word in [0xa1b2_c3d4, 0x0002_0004, 0, 0, 0xffff, 101_u32] {
            capture.extend(word.to_le_bytes());
        }
        // The version's halves are numbers of their own.
        capture[4..8].copy_from_slice(&[2, 0, 4, 0]);
        for datagram in &self.datagrams {
            let length = u16::try_from(datagram.len() + 28).expect("datagrams are short");
            for word in [0, 0, length.into(), length.into()] {
                let word: u32 = word;
                capture.extend(word.to_le_bytes());
            }
            capture.extend([0x45, 0]);
            capture.extend(length.to_be_bytes());
            capture.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
            for half in [self.port, self.port, length - 20, 0] {
                capture.extend(half.to_be_bytes());
            }
            capture.extend(datagram);
        }
        capture
    }
}
