//! A host at a port of the switch: what people do at one.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;

use testbed::{Failure, Namespace};

use crate::eye::{self, Eye, frames};
use crate::ground::{Ground, PATIENCE};
use crate::rig::{Ran, program};

/// A host.
pub(crate) struct Host<'g> {
    ground: &'g Ground,
    /// Where it lives.
    pub(crate) namespace: Namespace,
    /// Its one interface.
    pub(crate) interface: &'static str,
    /// The Ethernet address of that.
    pub(crate) mac: [u8; 6],
    /// The IPv4 address of that, in a network of 24 bits.
    pub(crate) address: Ipv4Addr,
}

/// The port of test transfers.
const PORT: u16 = 7000;

impl<'g> Host<'g> {
    /// A host with a cable to `home`. Its Ethernet address ends in its number, as does its IPv4 address.
    pub(crate) fn join(ground: &'g Ground, number: u8, home: &Namespace) -> Result<Self, Failure> {
        let host = Self::alone(ground, number, "eth0")?;
        let port = format!("p{number}");
        host.namespace.join(host.interface, home, &port)?;
        home.set_up(&port)?;
        host.settle()?;
        Ok(host)
    }

    /// A host that takes `interface` out of `home`.
    pub(crate) fn behind(
        ground: &'g Ground,
        number: u8,
        home: &Namespace,
        interface: &'static str,
    ) -> Result<Self, Failure> {
        let host = Self::alone(ground, number, interface)?;
        home.hand_over(interface, &host.namespace)?;
        host.settle()?;
        Ok(host)
    }

    fn alone(ground: &'g Ground, number: u8, interface: &'static str) -> Result<Self, Failure> {
        Ok(Self {
            ground,
            namespace: Namespace::new()?,
            interface,
            mac: [2, 0, 0, 0, 0, number],
            address: Ipv4Addr::new(10, 1, 0, number),
        })
    }

    /// Gives the interface its addresses and puts it into use.
    fn settle(&self) -> Result<(), Failure> {
        self.namespace.set_mac(self.interface, self.mac)?;
        self.namespace.set_up(self.interface)?;
        self.namespace.add_address(self.interface, self.address, 24)
    }

    /// Runs a program here.
    pub(crate) fn ran(&self, words: &str) -> Result<Ran, Failure> {
        Ran::of(self.ground, program(words).inside(&self.namespace))
    }

    /// Pings `address` `count` times, all of which must be answered.
    ///
    /// By fping, which waits for the last answer as long as it is told; ping gives
    /// it twice the longest round trip so far, which is little on a busy machine.
    pub(crate) fn ping(&self, address: Ipv4Addr, count: u32) -> Result<(), Failure> {
        let words = format!("fping -q -c {count} -p 2 -t 5000 {address}");
        let said = self.ran(&words)?.errors;
        let all = format!(" = {count}/{count}/0%,");
        assert!(said.contains(&all), "{said}");
        Ok(())
    }

    /// Pings `address` until it answers.
    pub(crate) fn reach(&self, address: Ipv4Addr) -> Result<(), Failure> {
        self.ground
            .wait_until(&format!("{address} to answer"), || self.answers(address))
    }

    /// Whether `address` answers one ping within a fifth of a second.
    pub(crate) fn answers(&self, address: Ipv4Addr) -> Result<bool, Failure> {
        let words = format!("ping -n -q -c 1 -W 0.2 {address}");
        Ok(self.ran(&words)?.status.success())
    }

    /// Sends 100 MB to `other` by `iperf3`, or the other way with `--reverse`.
    pub(crate) fn iperf(&self, other: &Self, direction: &str) -> Result<(), Failure> {
        let server = program("iperf3 --server --one-off --forceflush")
            .inside(&other.namespace)
            .log(self.ground.file("iperf3.log"));
        let mut server = self.ground.spawner.start(server)?;
        self.ground.wait_until("iperf3 to listen", || {
            Ok(server.written()?.contains("Server listening"))
        })?;
        let address = other.address;
        self.ran(&format!(
            "iperf3 --client {address} --bytes 100M {direction}"
        ))?
        .good()?;
        let status = server.wait(PATIENCE)?;
        if !status.success() {
            return Err(server.failed(status));
        }
        Ok(())
    }

    /// Sends frames, past this host's own protocols.
    pub(crate) fn send(&self, stacks: &[&str]) -> Result<(), Failure> {
        eye::send(
            self.ground,
            &self.namespace,
            self.interface,
            &frames(stacks),
        )
    }

    /// Sends bytes as frames.
    pub(crate) fn send_bytes<F: AsRef<[u8]>>(&self, frames: &[F]) -> Result<(), Failure> {
        eye::send(self.ground, &self.namespace, self.interface, frames)
    }

    /// Opens an eye on what comes in here from now on.
    pub(crate) fn eye(&self) -> Result<Eye<'g>, Failure> {
        Eye::open(self.ground, &self.namespace, self.interface)
    }

    /// Sends `bytes` to `other` through one TCP connection, and returns what came there.
    pub(crate) fn transfer(&self, other: &Self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let server = other.listen(PORT)?;
        let stream = self.connect(other.address, PORT)?;
        let (peer, _) = server.accept().map_err(Failure::to("accept by TCP"))?;
        peer.set_read_timeout(Some(PATIENCE))
            .map_err(Failure::to("limit patience"))?;
        pour(bytes, &stream, &peer)
    }

    /// Waits for TCP connections here.
    pub(crate) fn listen(&self, port: u16) -> Result<TcpListener, Failure> {
        let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
        self.namespace
            .run(|| TcpListener::bind(address))?
            .map_err(Failure::to("listen by TCP"))
    }

    /// Connects by TCP.
    pub(crate) fn connect(&self, address: Ipv4Addr, port: u16) -> Result<TcpStream, Failure> {
        let failure = || Failure::to(format!("connect to {address}"));
        let address = SocketAddrV4::new(address, port).into();
        let stream = self
            .namespace
            .run(|| TcpStream::connect_timeout(&address, PATIENCE))?
            .map_err(failure())?;
        stream
            .set_write_timeout(Some(PATIENCE))
            .map_err(failure())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failure())?;
        Ok(stream)
    }
}

/// Writes `bytes` to one end of a connection while it reads as many from the other.
pub(crate) fn pour(
    bytes: &[u8],
    mut from: &TcpStream,
    mut to: &TcpStream,
) -> Result<Vec<u8>, Failure> {
    let mut received = vec![0; bytes.len()];
    thread::scope(|scope| {
        let sending = scope.spawn(move || from.write_all(bytes));
        to.read_exact(&mut received)?;
        sending.join().expect("writing does not panic")
    })
    .map_err(Failure::to("transfer bytes by TCP"))?;
    Ok(received)
}

/// Bytes that repeat themselves nowhere, and are the same in every run.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(length).collect()
}
