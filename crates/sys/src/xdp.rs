//! A minimal XDP program, loaded by bpf(2) directly: it redirects each received frame of an
//! interface to the AF_XDP socket of its receive queue, and passes it to the kernel's stack if the
//! queue has no socket.
//!
//! ```text
//!  interface --> XDP hook (6 instructions) --> XSKMAP[rx queue] --> socket's RX ring
//!                         |
//!                         +--> no socket: XDP_PASS, the kernel's stack
//! ```
//!
//! The program is attached by a link (`BPF_LINK_CREATE`, Linux 5.9 and later). A link is a file
//! descriptor: the kernel detaches the program when it is closed, hence also when the process ends
//! for any reason. Nothing is pinned (Documentation/bpf/map_xskmap.rst).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::interface::Ifindex;
use crate::xsk::XskSocket;

/// Place of the program in the receive path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before an skb is allocated.
    Native,
    /// After skb allocation, for drivers without XDP support.
    Generic,
}

/// The program on one interface; dropping it detaches the program.
pub struct RedirectProgram {
    map: OwnedFd,
    _program: OwnedFd,
    _link: OwnedFd,
}

impl RedirectProgram {
    /// Attaches the program to an interface of the calling thread's network namespace, with map
    /// entries for `queues` receive queues. No frame is redirected yet.
    ///
    /// # Errors
    /// `EPERM`: `CAP_NET_ADMIN` and `CAP_BPF` are missing. `ENODEV`: no interface has this index.
    /// `EBUSY`: another program is attached. `EOPNOTSUPP`, `EINVAL`, `ERANGE`, `ENOSPC`: the driver
    /// does not support XDP, or not in the interface's configuration, or the kernel has no links.
    /// `ENOSYS`: the kernel has no bpf(2).
    pub fn attach(interface: Ifindex, queues: u32, mode: XdpMode) -> io::Result<Self> {
        let map = create_object(
            MAP_CREATE,
            &CreateMap {
                kind: XSKMAP,
                key_len: 4,
                value_len: 4,
                entries: queues,
                flags: 0,
            },
        )?;
        let program = load(&map)?;
        let link = create_object(
            LINK_CREATE,
            &CreateLink {
                program: unsigned(program.as_raw_fd()),
                interface: interface.0,
                kind: ATTACH_XDP,
                flags: match mode {
                    XdpMode::Generic => 1 << 1, // XDP_FLAGS_SKB_MODE
                    XdpMode::Native => 1 << 2,  // XDP_FLAGS_DRV_MODE
                },
            },
        )?;
        Ok(Self {
            map,
            _program: program,
            _link: link,
        })
    }

    /// Redirects frames of receive queue `queue` to `socket`, until that is closed.
    ///
    /// # Errors
    /// `E2BIG`: the map has no such queue. `EINVAL`: the socket is not bound.
    pub fn redirect_queue(&self, queue: u32, socket: &XskSocket) -> io::Result<()> {
        let value = unsigned(socket.raw());
        let update = UpdateElement {
            map: unsigned(self.map.as_raw_fd()),
            reserved: 0,
            key: address(&queue),
            value: address(&value),
            flags: 0,
        };
        // SAFETY: the command reads four bytes at each of the two addresses, the lengths of the
        // map's key and value; both are addresses of local variables.
        unsafe { bpf(MAP_UPDATE, &update) }.map(drop)
    }
}

/// Constants of linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const XSKMAP: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// Number of the helper function `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;
/// Result of `bpf_redirect_map` for a queue without socket: the kernel's stack receives the frame.
const XDP_PASS: i32 = 2;
/// Offset of the receive queue's number in `struct xdp_md`.
const RX_QUEUE_INDEX: i16 = 16;
/// Marks a 64-bit immediate as the descriptor of a map.
const PSEUDO_MAP_FD: u8 = 1;

/// `struct bpf_insn`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Instruction {
    code: u8,
    /// Destination register in the low four bits, source register in the high four.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Returns the program; `map` is the descriptor of the XSKMAP.
fn program(map: RawFd) -> [Instruction; 6] {
    let instruction = |code, registers, offset, immediate| Instruction {
        code,
        registers,
        offset,
        immediate,
    };
    [
        // r2 = context->rx_queue_index
        instruction(0x61, 0x12, RX_QUEUE_INDEX, 0),
        // r1 = map, in two parts
        instruction(0x18, PSEUDO_MAP_FD << 4 | 1, 0, map),
        instruction(0, 0, 0, 0),
        // r3 = XDP_PASS
        instruction(0xb7, 3, 0, XDP_PASS),
        // return bpf_redirect_map(r1, r2, r3)
        instruction(0x85, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0),
    ]
}

fn load(map: &OwnedFd) -> io::Result<OwnedFd> {
    let program = program(map.as_raw_fd());
    let licence = c"Apache-2.0";
    let mut name = [0; 16];
    name[..8].copy_from_slice(b"comporta");
    create_object(
        PROG_LOAD,
        &LoadProgram {
            kind: PROGRAM_XDP,
            instructions: u32::try_from(program.len()).expect("six instructions"),
            program: address(&program),
            licence: licence.as_ptr().addr() as u64,
            log_level: 0,
            log_len: 0,
            log: 0,
            kernel: 0,
            flags: 0,
            name,
            interface: 0,
            attach: ATTACH_XDP,
        },
    )
}

/// The fields of `union bpf_attr` that a command reads; the kernel treats missing ones as zero.
trait Attributes {}

#[repr(C)]
struct CreateMap {
    kind: u32,
    key_len: u32,
    value_len: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct UpdateElement {
    map: u32,
    reserved: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct LoadProgram {
    kind: u32,
    instructions: u32,
    program: u64,
    licence: u64,
    log_level: u32,
    log_len: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

#[repr(C)]
struct CreateLink {
    program: u32,
    interface: u32,
    kind: u32,
    flags: u32,
}

impl Attributes for CreateMap {}
impl Attributes for UpdateElement {}
impl Attributes for LoadProgram {}
impl Attributes for CreateLink {}

/// Executes a command that creates an object, and returns its descriptor.
fn create_object(command: libc::c_int, attributes: &impl Attributes) -> io::Result<OwnedFd> {
    // SAFETY: of the commands above only PROG_LOAD contains addresses: those of local variables of
    // `load`, with their lengths. The others contain numbers only.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Calls bpf(2).
///
/// # Safety
/// The addresses among the attributes are valid for `command`.
unsafe fn bpf(command: libc::c_int, attributes: &impl Attributes) -> io::Result<RawFd> {
    let (pointer, len) = (std::ptr::from_ref(attributes), size_of_val(attributes));
    // SAFETY: the pointer is valid for the length; the caller guarantees the rest.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, len) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(RawFd::try_from(result).expect("descriptors have 32 bits"))
}

fn address<T>(value: &T) -> u64 {
    std::ptr::from_ref(value).addr() as u64
}

fn unsigned(fd: RawFd) -> u32 {
    u32::try_from(fd).expect("an open descriptor is not negative")
}
