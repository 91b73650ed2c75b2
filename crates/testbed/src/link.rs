//! Links, addresses and neighbours, by rtnetlink sockets that are opened inside the namespace.
//!
//! The program `ip` is not used: a namespace without a name is only reachable by descriptor, and
//! the kernel's errors say more than an exit code.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkMessage};
use rtnetlink::{Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth};
use tokio::runtime::Builder;

use crate::{Failure, Namespace};

impl Namespace {
    /// Creates a veth pair from `interface` here to `peer` in `other`. Both ends are down.
    ///
    /// # Errors
    /// A name exists or is too long, or the kernel has no veth.
    pub fn join(&self, interface: &str, other: &Self, peer: &str) -> Result<(), Failure> {
        let far_end = LinkMessageBuilder::<LinkUnspec>::new()
            .name(peer)
            .setns_by_fd(other.as_fd().as_raw_fd())
            .build();
        let message = LinkMessageBuilder::<LinkVeth>::new(interface, peer)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(far_end)))
            .build();
        self.request(
            format!("create the veth pair {interface} and {peer}"),
            async move |handle| handle.link().add(message).execute().await,
        )
    }

    /// Creates a bridge of `ports`, up, with the kernel's defaults: it learns, without a spanning
    /// tree.
    ///
    /// # Errors
    /// A name exists, a port does not, or the kernel has no bridge.
    pub fn bridge(&self, name: &str, ports: &[&str]) -> Result<(), Failure> {
        let message = LinkBridge::new(name).build();
        self.request(format!("create the bridge {name}"), async move |handle| {
            handle.link().add(message).execute().await
        })?;
        ports.iter().try_for_each(|port| self.enslave(port, name))
    }

    /// Adds `port` to `bridge`.
    pub(crate) fn enslave(&self, port: &str, bridge: &str) -> Result<(), Failure> {
        let index = self.index(bridge)?.0;
        self.change(port, &format!("add {port} to {bridge}"), |link| {
            link.controller(index)
        })
    }

    /// Sets the MTU of `interface`, in bytes above Ethernet.
    ///
    /// # Errors
    /// There is no such interface here, or the MTU is not permitted.
    pub fn set_mtu(&self, interface: &str, bytes: u32) -> Result<(), Failure> {
        self.change(interface, &format!("set the MTU of {interface}"), |link| {
            link.mtu(bytes)
        })
    }

    /// Deletes `interface`, and with it the other end of its link.
    ///
    /// # Errors
    /// There is no such interface here.
    pub fn remove(&self, interface: &str) -> Result<(), Failure> {
        let index = self.index(interface)?.0;
        self.request(format!("remove {interface}"), async move |handle| {
            handle.link().del(index).execute().await
        })
    }

    /// Renames `interface`, which is down.
    ///
    /// # Errors
    /// There is no such interface here, or the name exists.
    pub(crate) fn rename(&self, interface: &str, name: &str) -> Result<(), Failure> {
        self.change(
            interface,
            &format!("rename {interface} to {name}"),
            |link| link.name(name),
        )
    }

    /// Moves `interface` to another namespace. It keeps its name, and is down there.
    ///
    /// # Errors
    /// There is no such interface here, or its name exists there.
    pub fn hand_over(&self, interface: &str, to: &Self) -> Result<(), Failure> {
        self.change(interface, &format!("move {interface}"), |link| {
            link.setns_by_fd(to.as_fd().as_raw_fd())
        })
    }

    /// Adds an IPv4 address with a network of `prefix` bits to `interface`.
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
            format!("add to {interface} the address {address}/{prefix}"),
            async move |handle| {
                let address = IpAddr::V4(address);
                handle.address().add(index, address, prefix).execute().await
            },
        )
    }

    /// Adds a permanent neighbour entry to `interface`, so that no ARP is sent.
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
            format!("add the neighbour {address} to {interface}"),
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

    /// Opens a netlink socket here, makes one request and waits for its reply.
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

/// Returns the kernel's errno, if there is one.
fn refusal(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}
