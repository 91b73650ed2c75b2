//! A raw packet socket (packet(7)) and its options, except the receive ring (`packet_ring`) and
//! transmission of several frames (`packet_send`).
//!
//! One method per option of the kernel; the port chooses the options.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use crate::interface::Ifindex;
use crate::socket_option::{self, check, len_of};

/// A non-blocking raw packet socket. It receives nothing before it is bound.
pub struct PacketSocket {
    fd: OwnedFd,
}

/// Frames that a bound socket receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveFilter {
    /// None: the socket only sends.
    None,
    /// Frames of all protocols (`ETH_P_ALL`).
    AllProtocols,
}

/// Distribution mode of a fanout group; all of its sockets must use the same.
const FANOUT_MODE: u32 = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;

/// A fanout group: sockets that share the frames of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutGroup(u16);

impl PacketSocket {
    /// Opens a socket that is not bound.
    ///
    /// # Errors
    /// `EPERM`: `CAP_NET_RAW` is missing. `EAFNOSUPPORT`: the kernel has no packet sockets.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        Ok(Self { fd })
    }

    /// Puts a `virtio_net_hdr` of ten bytes before every received and sent frame.
    ///
    /// # Errors
    /// `EBUSY`: the socket has a ring already.
    pub fn set_vnet_header(&self) -> io::Result<()> {
        self.set(libc::PACKET_VNET_HDR, &1)
    }

    /// Sends directly to the driver, without the interface's queueing discipline.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_qdisc_bypass(&self) -> io::Result<()> {
        self.set(libc::PACKET_QDISC_BYPASS, &1)
    }

    /// Excludes frames that this machine sends from reception.
    ///
    /// # Errors
    /// `ENOPROTOOPT`: the kernel is older than 4.20.
    pub fn set_ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::PACKET_IGNORE_OUTGOING, &1)
    }

    /// Queues frames that are longer than a ring slot on the socket, complete.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_copy_oversized(&self) -> io::Result<()> {
        self.set(libc::PACKET_COPY_THRESH, &1)
    }

    /// Sets the size of the receive queue to `bytes`, above the system's limit if the process is
    /// privileged.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        let forced = sockopt::set_socket_recv_buffer_size_force(&self.fd, bytes);
        Ok(forced.or_else(|_| sockopt::set_socket_recv_buffer_size(&self.fd, bytes))?)
    }

    /// Limits the bytes in transmission to `bytes`, above the system's limit if the process is
    /// privileged.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        let forced = sockopt::set_socket_send_buffer_size_force(&self.fd, bytes);
        Ok(forced.or_else(|_| sockopt::set_socket_send_buffer_size(&self.fd, bytes))?)
    }

    /// Selects the class of the interface's queueing discipline for frames sent from now on
    /// (socket(7), `SO_PRIORITY`); 0 selects none.
    ///
    /// # Errors
    /// `EPERM`: `CAP_NET_ADMIN` is missing.
    pub fn set_priority(&self, priority: u32) -> io::Result<()> {
        socket_option::set(&self.fd, libc::SOL_SOCKET, libc::SO_PRIORITY, &priority)
    }

    /// Binds the socket to one interface. The interface may be down; reception starts when it is
    /// up.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this index.
    pub fn bind(&self, interface: Ifindex, filter: ReceiveFilter) -> io::Result<()> {
        let all_protocols = u16::try_from(libc::ETH_P_ALL).expect("a protocol has sixteen bits");
        let address = libc::sockaddr_ll {
            sll_family: u16::try_from(libc::AF_PACKET).expect("a family has sixteen bits"),
            sll_protocol: match filter {
                ReceiveFilter::None => 0,
                ReceiveFilter::AllProtocols => all_protocols.to_be(),
            },
            sll_ifindex: index(interface)?,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let pointer = std::ptr::from_ref(&address).cast();
        // SAFETY: the pointer is valid for the length, and the kernel only reads.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), pointer, len_of(&address)) }).map(drop)
    }

    /// Receives up to 64 frames by one system call (recvmmsg(2)), each into its own buffer and
    /// truncated to its size. Writes their lengths and returns their number, at most the number of
    /// buffers and of lengths.
    ///
    /// # Errors
    /// `EAGAIN`: no frame is queued. `ENETDOWN`: the interface went down; reported once.
    pub fn receive_burst(
        &self,
        buffers: &mut [Vec<u8>],
        lengths: &mut [usize],
    ) -> io::Result<usize> {
        const BURST: usize = 64;
        let count = buffers.len().min(lengths.len()).min(BURST);
        let mut vectors = [libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; BURST];
        for (vector, buffer) in vectors.iter_mut().zip(&mut buffers[..count]) {
            vector.iov_base = buffer.as_mut_ptr().cast();
            vector.iov_len = buffer.len();
        }
        // SAFETY: all fields are integers and pointers, for which zero is a valid value.
        let mut messages: [libc::mmsghdr; BURST] = unsafe { mem::zeroed() };
        for (message, vector) in messages.iter_mut().zip(&mut vectors) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: there are `count` messages, each with one vector that is valid for its length; no
        // two vectors share a buffer, and all outlive the call.
        let received = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                u32::try_from(count).expect("at most 64"),
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        check(received)?;
        let received = usize::try_from(received).expect("the call succeeded");
        for (length, message) in lengths.iter_mut().zip(&messages[..received]) {
            *length = usize::try_from(message.msg_len).expect("a length fits a usize");
        }
        Ok(received)
    }

    /// True if the interface that the socket was bound to still exists.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn is_bound(&self) -> io::Result<bool> {
        // SAFETY: all fields are integers and arrays of integers, for which zero is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        let mut length = len_of(&address);
        let pointer = std::ptr::from_mut(&mut address).cast();
        // SAFETY: the pointer is valid for `length` bytes, and the kernel writes no more.
        check(unsafe { libc::getsockname(self.fd.as_raw_fd(), pointer, &raw mut length) })?;
        Ok(address.sll_ifindex > 0)
    }

    /// Enables promiscuous mode of the interface for as long as the socket is open.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this index.
    pub fn set_promiscuous(&self, interface: Ifindex) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index(interface)?,
            mr_type: u16::try_from(libc::PACKET_MR_PROMISC).expect("a type has sixteen bits"),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Creates a fanout group that distributes frames by a hash of their flow, the same for both
    /// directions. The kernel chooses a number that is unused in the namespace. The group excludes
    /// frames that this machine sends: this is a property of the group, not of its sockets.
    ///
    /// # Errors
    /// `EINVAL`: the interface is down, and the kernel is older than 6.13.
    pub fn create_fanout(&self) -> io::Result<FanoutGroup> {
        let kind = FANOUT_MODE | libc::PACKET_FANOUT_FLAG_UNIQUEID;
        self.set(libc::PACKET_FANOUT, &(kind << 16))?;
        let (chosen, _): (u32, _) =
            socket_option::get(&self.fd, libc::SOL_PACKET, libc::PACKET_FANOUT)?;
        Ok(FanoutGroup(
            u16::try_from(chosen & 0xffff).expect("masked to sixteen bits"),
        ))
    }

    /// Joins a group that another socket on the same interface has created.
    ///
    /// # Errors
    /// `EINVAL`: this socket is bound to another interface, or the interface is down and the kernel
    /// older than 6.13.
    pub fn join_fanout(&self, group: FanoutGroup) -> io::Result<()> {
        let argument = (FANOUT_MODE << 16) | u32::from(group.0);
        self.set(libc::PACKET_FANOUT, &argument)
    }

    /// Drops all received frames until [`PacketSocket::detach_filter`].
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn attach_drop_filter(&self) -> io::Result<()> {
        let mut drop_all = libc::sock_filter {
            code: 0x06, // BPF_RET | BPF_K: accept `k` bytes
            jt: 0,
            jf: 0,
            k: 0,
        };
        let program = libc::sock_fprog {
            len: 1,
            filter: &raw mut drop_all,
        };
        socket_option::set(&self.fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Removes the filter of [`PacketSocket::attach_drop_filter`].
    ///
    /// # Errors
    /// `ENOENT`: the socket has no filter.
    pub fn detach_filter(&self) -> io::Result<()> {
        socket_option::set(&self.fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0)
    }

    /// Returns the number of frames that the kernel has dropped since the last call because the
    /// receive queue or ring was full.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn take_drops(&self) -> io::Result<u64> {
        let (statistics, _): ([u32; 2], _) =
            socket_option::get(&self.fd, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        let [_seen, dropped] = statistics;
        Ok(u64::from(dropped))
    }

    /// Returns and clears the pending error of the socket, or `None` if there is none.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(sockopt::socket_error(&self.fd)?.err().map(io::Error::from))
    }

    pub(crate) fn set<T: Copy>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        socket_option::set(&self.fd, libc::SOL_PACKET, option, value)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn index(interface: Ifindex) -> io::Result<libc::c_int> {
    libc::c_int::try_from(interface.0).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))
}
