//! Links, addresses and neighbours, over rtnetlink sockets opened inside the
//! namespace in question.
//!
//! Not through `ip`: a namespace without a name is only reachable by descriptor,
//! and the kernel's own refusals say more than a program's exit code.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkMessage};
use rtnetlink::{Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth};
use tokio::runtime::Builder;

use crate::{Failure, Namespace};

impl Namespace {
    /// Lays a cable (a veth pair) from `interface` here to `peer` in `other`.
    /// Both ends are down.
    ///
    /// # Errors
    /// A name is taken or too long, or the kernel has no veth.
    pub fn join(&self, interface: &str, other: &Self, peer: &str) -> Result<(), Failure> {
        let far_end = LinkMessageBuilder::<LinkUnspec>::new()
            .name(peer)
            .setns_by_fd(other.as_fd().as_raw_fd())
            .build();
        let message = LinkMessageBuilder::<LinkVeth>::new(interface, peer)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(far_end)))
            .build();
        self.request(
            format!("make the veth pair {interface} and {peer}"),
            async move |handle| handle.link().add(message).execute().await,
        )
    }

    /// Makes a bridge of `ports`, up, with the kernel's defaults: it learns, and
    /// speaks no spanning tree.
    ///
    /// # Errors
    /// A name is taken, a port does not exist, or the kernel has no bridge.
    pub fn bridge(&self, name: &str, ports: &[&str]) -> Result<(), Failure> {
        let message = LinkBridge::new(name).build();
        self.request(format!("make the bridge {name}"), async move |handle| {
            handle.link().add(message).execute().await
        })?;
        ports.iter().try_for_each(|port| self.enslave(port, name))
    }

    /// Makes `port` a port of `bridge`.
    pub(crate) fn enslave(&self, port: &str, bridge: &str) -> Result<(), Failure> {
        let index = self.index(bridge)?.0;
        self.change(port, &format!("add {port} to {bridge}"), |link| {
            link.controller(index)
        })
    }

    /// Gives `interface` a maximum transmission unit, in bytes above Ethernet.
    ///
    /// # Errors
    /// There is no such interface here, or the size is none it can have.
    pub fn set_mtu(&self, interface: &str, bytes: u32) -> Result<(), Failure> {
        self.change(interface, &format!("set the MTU of {interface}"), |link| {
            link.mtu(bytes)
        })
    }

    /// Takes `interface` away, and so the other end of its cable.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn remove(&self, interface: &str) -> Result<(), Failure> {
        let index = self.index(interface)?.0;
        self.request(format!("remove {interface}"), async move |handle| {
            handle.link().del(index).execute().await
        })
    }

    /// Gives `interface`, which is down, another name.
    ///
    /// # Errors
    /// There is no such interface here, or the name is taken.
    pub(crate) fn rename(&self, interface: &str, name: &str) -> Result<(), Failure> {
        self.change(interface, &format!("call {interface} {name}"), |link| {
            link.name(name)
        })
    }

    /// Moves `interface` to another namespace. It keeps its name, and is down there.
    ///
    /// # Errors
    /// There is no such interface here, or one of its name there.
    pub fn hand_over(&self, interface: &str, to: &Self) -> Result<(), Failure> {
        self.change(interface, &format!("hand {interface} over"), |link| {
            link.setns_by_fd(to.as_fd().as_raw_fd())
        })
    }

    /// Gives `interface` an IPv4 address, `prefix` bits of it being the network's.
    ///
    /// # Errors
    /// There is no such interface here, or it has the address.
    pub fn add_address(
        &self,
        interface: &str,
        address: Ipv4Addr,
        prefix: u8,
    ) -> Result<(), Failure> {
        let index = self.index(interface)?.0;
        self.request(
            format!("give {interface} the address {address}/{prefix}"),
            async move |handle| {
                let address = IpAddr::V4(address);
                handle.address().add(index, address, prefix).execute().await
            },
        )
    }

    /// Tells `interface` for good that `address` is at `mac`, so that nobody asks by ARP.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn add_neighbour(
        &self,
        interface: &str,
        address: Ipv4Addr,
        mac: [u8; 6],
    ) -> Result<(), Failure> {
        let index = self.index(interface)?.0;
        self.request(
            format!("tell {interface} where {address} is"),
            async move |handle| {
                let neighbours = handle.neighbours();
                let request = neighbours.add(index, IpAddr::V4(address));
                request.link_layer_address(&mac).replace().execute().await
            },
        )
    }

    fn change(
        &self,
        interface: &str,
        what: &str,
        edit: impl FnOnce(LinkMessageBuilder<LinkUnspec>) -> LinkMessageBuilder<LinkUnspec>,
    ) -> Result<(), Failure> {
        let link = LinkUnspec::new_with_index(self.index(interface)?.0);
        let message: LinkMessage = edit(link).build();
        self.request(what.to_owned(), async move |handle| {
            handle.link().set(message).execute().await
        })
    }

    /// Opens a netlink socket here, makes one request and waits for its answer.
    pub(crate) fn request<F>(&self, what: String, request: F) -> Result<(), Failure>
    where
        F: AsyncFnOnce(Handle) -> Result<(), rtnetlink::Error> + Send,
    {
        let outcome = self.run(|| {
            let runtime = Builder::new_current_thread().enable_io().build()?;
            runtime.block_on(async {
                let (connection, handle, _) = rtnetlink::new_connection()?;
                let connection = tokio::spawn(connection);
                let outcome = request(handle).await.map_err(refusal);
                connection.abort();
                outcome
            })
        })?;
        outcome.map_err(Failure::to(what))
    }
}

/// The kernel's errno, where there is one.
fn refusal(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}
