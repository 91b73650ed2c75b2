//! A raw packet socket (packet(7)) and its options: everything but the ring that
//! frames come in by and the system call that sends many.
//!
//! The options are the kernel's, one method each; which of them a port wants is
//! decided by the port.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use crate::interface::Ifindex;
use crate::socket_option::{self, check, len_of};

/// A raw packet socket that never blocks. It hears nothing before it is bound.
pub struct PacketSocket {
    fd: OwnedFd,
}

/// Which frames a bound socket hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// None: it only sends.
    None,
    /// Those of all protocols (`ETH_P_ALL`).
    AllProtocols,
}

/// How a group shares frames; all of its sockets must say the same.
const FANOUT_MODE: u32 = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;

/// A set of sockets that share the frames of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutGroup(u16);

impl PacketSocket {
    /// A socket, bound to nothing.
    ///
    /// # Errors
    /// `EPERM`: `CAP_NET_RAW` is missing. `EAFNOSUPPORT`: the kernel has no packet sockets.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        Ok(Self { fd })
    }

    /// Puts a `virtio_net_hdr` of ten bytes before every frame, both ways.
    ///
    /// # Errors
    /// `EBUSY`: there is a ring already.
    pub fn set_vnet_header(&self) -> io::Result<()> {
        self.set(libc::PACKET_VNET_HDR, &1)
    }

    /// Sends past the interface's queueing discipline, straight to its driver.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_qdisc_bypass(&self) -> io::Result<()> {
        self.set(libc::PACKET_QDISC_BYPASS, &1)
    }

    /// Reception no frames that this machine sends.
    ///
    /// # Errors
    /// `ENOPROTOOPT`: the kernel is older than 4.20.
    pub fn set_ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::PACKET_IGNORE_OUTGOING, &1)
    }

    /// Queues whole what a ring's slot is too short for.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_copy_oversized(&self) -> io::Result<()> {
        self.set(libc::PACKET_COPY_THRESH, &1)
    }

    /// Asks for `bytes` of receive queue, beyond the system's limit if the process may.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        let forced = sockopt::set_socket_recv_buffer_size_force(&self.fd, bytes);
        Ok(forced.or_else(|_| sockopt::set_socket_recv_buffer_size(&self.fd, bytes))?)
    }

    /// Asks for `bytes` of frames under way, beyond the system's limit if the process may.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        let forced = sockopt::set_socket_send_buffer_size_force(&self.fd, bytes);
        Ok(forced.or_else(|_| sockopt::set_socket_send_buffer_size(&self.fd, bytes))?)
    }

    /// Has frames leave by this class of the interface's queueing discipline from now on
    /// (socket(7), `SO_PRIORITY`); zero for none.
    ///
    /// # Errors
    /// `EPERM`: the process may not (`CAP_NET_ADMIN`).
    pub fn set_priority(&self, priority: u32) -> io::Result<()> {
        socket_option::set(&self.fd, libc::SOL_SOCKET, libc::SO_PRIORITY, &priority)
    }

    /// Ties the socket to one interface. One that is down may be bound; the
    /// socket hears it as soon as it is up.
    ///
    /// # Errors
    /// `ENODEV`: there is no such interface.
    pub fn bind(&self, interface: Ifindex, reception: Reception) -> io::Result<()> {
        let all_protocols = u16::try_from(libc::ETH_P_ALL).expect("a protocol has sixteen bits");
        let address = libc::sockaddr_ll {
            sll_family: u16::try_from(libc::AF_PACKET).expect("a family has sixteen bits"),
            sll_protocol: match reception {
                Reception::None => 0,
                Reception::AllProtocols => all_protocols.to_be(),
            },
            sll_ifindex: index(interface)?,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let pointer = std::ptr::from_ref(&address).cast();
        // SAFETY: the pointer is good for the length, and the kernel only reads.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), pointer, len_of(&address)) }).map(drop)
    }

    /// Receives up to 64 frames by one system call (recvmmsg(2)), each into a room of its
    /// own and cut to its size; writes down their lengths and says how many there are. As
    /// many as there are rooms and lengths at most.
    ///
    /// # Errors
    /// `EAGAIN`: nothing has come. `ENETDOWN`: the interface is down, once.
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
        // SAFETY: integers and pointers: all zeros is a value.
        let mut messages: [libc::mmsghdr; BURST] = unsafe { mem::zeroed() };
        for (message, vector) in messages.iter_mut().zip(&mut vectors) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: `count` messages are there, each with one part that is good for its length;
        // no two parts are of the same room, and all outlive the call.
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
        let received = usize::try_from(received).expect("it is not negative");
        for (length, message) in lengths.iter_mut().zip(&messages[..received]) {
            *length = usize::try_from(message.msg_len).expect("a frame's length fits");
        }
        Ok(received)
    }

    /// Whether the interface that the socket was bound to still exists.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn is_bound(&self) -> io::Result<bool> {
        // SAFETY: integers and arrays of integers: all zeros is a value.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        let mut length = len_of(&address);
        let pointer = std::ptr::from_mut(&mut address).cast();
        // SAFETY: the pointer is good for `length` bytes, and the kernel writes no more.
        check(unsafe { libc::getsockname(self.fd.as_raw_fd(), pointer, &raw mut length) })?;
        Ok(address.sll_ifindex > 0)
    }

    /// Reception frames to all addresses, for as long as the socket is open.
    ///
    /// # Errors
    /// `ENODEV`: there is no such interface.
    pub fn set_promiscuous(&self, interface: Ifindex) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index(interface)?,
            mr_type: u16::try_from(libc::PACKET_MR_PROMISC).expect("a type has sixteen bits"),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Founds a group that shares frames by a hash of their flow, the same for
    /// both directions. Its number is one that nobody in the namespace uses. It hears
    /// no frames that this machine sends: the group decides that, not its sockets.
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

    /// Joins a group that another socket on the same interface has founded.
    ///
    /// # Errors
    /// `EINVAL`: this socket is bound elsewhere, or the interface is down and the
    /// kernel older than 6.13.
    pub fn join_fanout(&self, group: FanoutGroup) -> io::Result<()> {
        let argument = (FANOUT_MODE << 16) | u32::from(group.0);
        self.set(libc::PACKET_FANOUT, &argument)
    }

    /// Reception nothing until [`PacketSocket::detach_filter`], whatever it is bound to.
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

    /// Reception again what it is bound to.
    ///
    /// # Errors
    /// `ENOENT`: it was not muted.
    pub fn detach_filter(&self) -> io::Result<()> {
        socket_option::set(&self.fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0)
    }

    /// How many frames the kernel has dropped for want of room since the last call.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn take_drops(&self) -> io::Result<u64> {
        let (statistics, _): ([u32; 2], _) =
            socket_option::get(&self.fd, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        let [_seen, dropped] = statistics;
        Ok(u64::from(dropped))
    }

    /// The error that waits on the socket, if one does; it waits no longer then.
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
