//! A host that is connected to a port of the switch: ping, TCP transfers, and raw frames.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;

use base::SplitMix64;
use testbed::{Failure, Namespace};

use crate::support::command::{CommandOutput, program};
use crate::support::context::{TestContext, WAIT_LIMIT};
use crate::support::frames::{FrameCapture, encode_frames, send_frames};

/// A host.
pub(crate) struct TestHost<'g> {
    context: &'g TestContext,
    pub(crate) namespace: Namespace,
    /// Name of its only interface.
    pub(crate) interface: &'static str,
    /// Ethernet address of the interface.
    pub(crate) mac: [u8; 6],
    /// IPv4 address of the interface, with a prefix of 24 bits.
    pub(crate) address: Ipv4Addr,
}

/// TCP port of [`TestHost::transfer`].
const TRANSFER_PORT: u16 = 7000;

impl<'g> TestHost<'g> {
    /// Creates a host with a veth pair to `switch_namespace`. The last byte of its Ethernet and
    /// IPv4 addresses is `number`.
    pub(crate) fn attach(
        context: &'g TestContext,
        number: u8,
        switch_namespace: &Namespace,
    ) -> Result<Self, Failure> {
        let host = Self::unconfigured(context, number, "eth0")?;
        let port = format!("p{number}");
        host.namespace
            .join(host.interface, switch_namespace, &port)?;
        switch_namespace.set_up(&port)?;
        host.configure_interface()?;
        Ok(host)
    }

    /// Creates a host and moves `interface` from `switch_namespace` to it.
    pub(crate) fn with_interface(
        context: &'g TestContext,
        number: u8,
        switch_namespace: &Namespace,
        interface: &'static str,
    ) -> Result<Self, Failure> {
        let host = Self::unconfigured(context, number, interface)?;
        switch_namespace.hand_over(interface, &host.namespace)?;
        host.configure_interface()?;
        Ok(host)
    }

    fn unconfigured(
        context: &'g TestContext,
        number: u8,
        interface: &'static str,
    ) -> Result<Self, Failure> {
        Ok(Self {
            context,
            namespace: Namespace::new()?,
            interface,
            mac: [2, 0, 0, 0, 0, number],
            address: Ipv4Addr::new(10, 1, 0, number),
        })
    }

    /// Sets the interface's addresses and brings it up.
    fn configure_interface(&self) -> Result<(), Failure> {
        self.namespace.set_mac(self.interface, self.mac)?;
        self.namespace.set_up(self.interface)?;
        self.namespace.add_address(self.interface, self.address, 24)
    }

    /// Replaces the address of the interface, and adds a default route if there is a gateway.
    pub(crate) fn move_to(
        &mut self,
        address: Ipv4Addr,
        gateway: Option<Ipv4Addr>,
    ) -> Result<(), Failure> {
        let interface = self.interface;
        self.run(&format!("ip address flush dev {interface}"))?
            .expect_success()?;
        self.namespace.add_address(interface, address, 24)?;
        self.address = address;
        if let Some(gateway) = gateway {
            self.run(&format!("ip route add default via {gateway}"))?
                .expect_success()?;
        }
        Ok(())
    }

    /// Moves the host's address into a tunnel `vx0` of the kernel: `outer` is the host's address of
    /// the underlay, and `options` are options of `ip link add vx0 type vxlan`.
    pub(crate) fn move_into_vxlan(&self, options: &str, outer: &str) -> Result<(), Failure> {
        let interface = self.interface;
        let setting = format!("net/ipv6/conf/{interface}/disable_ipv6");
        self.namespace.set_sysctl(&setting, "0")?;
        for words in [
            format!("ip address flush dev {interface}"),
            format!("ip address add {outer} dev {interface} nodad"),
            format!("ip link add vx0 type vxlan dev {interface} {options}"),
            "ip link set vx0 mtu 1400 up".to_owned(),
            format!("ip address add {}/24 dev vx0", self.address),
        ] {
            self.run(&words)?.expect_success()?;
        }
        Ok(())
    }

    /// Runs a program in the host's namespace.
    pub(crate) fn run(&self, words: &str) -> Result<CommandOutput, Failure> {
        CommandOutput::run(self.context, program(words).inside(&self.namespace))
    }

    /// Pings `address` `count` times and asserts that each request is answered.
    ///
    /// Uses fping, which waits a fixed time for the last reply; ping waits twice the longest
    /// round trip so far, which is too short on a busy machine.
    pub(crate) fn ping(&self, address: Ipv4Addr, count: u32) -> Result<(), Failure> {
        let words = format!("fping -q -c {count} -p 2 -t 5000 {address}");
        let summary = self.run(&words)?.stderr;
        let no_loss = format!(" = {count}/{count}/0%,");
        assert!(summary.contains(&no_loss), "{summary}");
        Ok(())
    }

    /// Pings `address` until it replies.
    pub(crate) fn ping_until_reply(&self, address: Ipv4Addr) -> Result<(), Failure> {
        self.context
            .wait_until(&format!("{address} to reply"), || self.can_ping(address))
    }

    /// True if `address` replies to one ping within 200 ms.
    pub(crate) fn can_ping(&self, address: Ipv4Addr) -> Result<bool, Failure> {
        let words = format!("ping -n -q -c 1 -W 0.2 {address}");
        Ok(self.run(&words)?.status.success())
    }

    /// Sends 100 MB to `other` by `iperf3`, or receives them if `direction` is `--reverse`.
    pub(crate) fn iperf(&self, other: &Self, direction: &str) -> Result<(), Failure> {
        let server = program("iperf3 --server --one-off --forceflush")
            .inside(&other.namespace)
            .log(self.context.unique_path("iperf3.log"));
        let mut server = self.context.spawner.start(server)?;
        self.context.wait_until("iperf3 to listen", || {
            Ok(server.written()?.contains("Server listening"))
        })?;
        let address = other.address;
        self.run(&format!(
            "iperf3 --client {address} --bytes 100M {direction}"
        ))?
        .expect_success()?;
        let status = server.wait(WAIT_LIMIT)?;
        if !status.success() {
            return Err(server.failed(status));
        }
        Ok(())
    }

    /// Sends frames by a raw socket.
    pub(crate) fn send(&self, stacks: &[&str]) -> Result<(), Failure> {
        self.send_bytes(&encode_frames(stacks))
    }

    /// Sends encoded frames by a raw socket.
    pub(crate) fn send_bytes<F: AsRef<[u8]>>(&self, frames: &[F]) -> Result<(), Failure> {
        send_frames(self.context, &self.namespace, self.interface, frames)
    }

    /// Starts to capture the frames that the host receives.
    pub(crate) fn capture_frames(&self) -> Result<FrameCapture<'g>, Failure> {
        FrameCapture::open(self.context, &self.namespace, self.interface)
    }

    /// Sends `bytes` to `other` by one TCP connection, and returns the bytes received there.
    pub(crate) fn transfer(&self, other: &Self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let server = other.listen(TRANSFER_PORT)?;
        let stream = self.connect(other.address, TRANSFER_PORT)?;
        let (accepted, _) = server
            .accept()
            .map_err(Failure::to("accept a TCP connection"))?;
        accepted
            .set_read_timeout(Some(WAIT_LIMIT))
            .map_err(Failure::to("set a read timeout"))?;
        copy_stream(bytes, &stream, &accepted)
    }

    /// Transfers a file of `length` bytes in both directions, and asserts that it arrives
    /// unchanged.
    #[track_caller]
    pub(crate) fn exchange_files(&self, other: &Self, length: usize) -> Result<(), Failure> {
        let file = pseudo_random_bytes(length);
        // `assert_eq` would print both files.
        for (from, to) in [(self, other), (other, self)] {
            let received = from.transfer(to, &file)?;
            let (from, to) = (from.address, to.address);
            assert!(received == file, "the file from {from} to {to} differs");
        }
        Ok(())
    }

    /// Listens for TCP connections on the host.
    pub(crate) fn listen(&self, port: u16) -> Result<TcpListener, Failure> {
        let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
        self.namespace
            .run(|| TcpListener::bind(address))?
            .map_err(Failure::to("listen for TCP connections"))
    }

    /// Connects by TCP.
    pub(crate) fn connect(&self, address: Ipv4Addr, port: u16) -> Result<TcpStream, Failure> {
        let failure = || Failure::to(format!("connect to {address}"));
        let address = SocketAddrV4::new(address, port).into();
        let stream = self
            .namespace
            .run(|| TcpStream::connect_timeout(&address, WAIT_LIMIT))?
            .map_err(failure())?;
        stream
            .set_write_timeout(Some(WAIT_LIMIT))
            .map_err(failure())?;
        stream
            .set_read_timeout(Some(WAIT_LIMIT))
            .map_err(failure())?;
        Ok(stream)
    }
}

/// Writes `bytes` to one end of a connection, and returns as many bytes read from the other.
pub(crate) fn copy_stream(
    bytes: &[u8],
    mut from: &TcpStream,
    mut to: &TcpStream,
) -> Result<Vec<u8>, Failure> {
    let mut received = vec![0; bytes.len()];
    thread::scope(|scope| {
        let writer = scope.spawn(move || from.write_all(bytes));
        to.read_exact(&mut received)?;
        writer.join().expect("the writer does not panic")
    })
    .map_err(Failure::to("transfer bytes by TCP"))?;
    Ok(received)
}

/// Pseudo-random bytes, the same in every run.
pub(crate) fn pseudo_random_bytes(length: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(0);
    let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
    words.flatten().take(length).collect()
}
