//! The smallest XDP program there is a use for: it hands each frame of an interface
//! to the AF_XDP socket that serves the receive queue the frame came in by, or to the
//! machine's own stack where there is none. Loaded by bpf(2) itself.
//!
//! It is attached by a link (`BPF_LINK_CREATE`, kernel 5.9 and later), which is a file
//! descriptor: the program leaves the interface when that is closed, so with the process
//! too, however that ends. Nothing is pinned.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::interface::Ifindex;
use crate::xsk::XskSocket;

/// Where in the kernel the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before the kernel has made anything of the frame.
    Native,
    /// In the kernel's receive path, for drivers that have no place for programs.
    Generic,
}

/// The program on an interface. Dropped, the interface is as it was.
pub struct RedirectProgram {
    map: OwnedFd,
    _program: OwnedFd,
    _link: OwnedFd,
}

impl RedirectProgram {
    /// Puts the program on an interface of the calling thread's network namespace, with
    /// places for the sockets of `queues` receive queues. No frame is redirected yet.
    ///
    /// # Errors
    /// `EPERM`: `CAP_NET_ADMIN` and `CAP_BPF` are missing. `ENODEV`: there is no such
    /// interface. `EBUSY`: another program is there. `EOPNOTSUPP`, `EINVAL`, `ERANGE`,
    /// `ENOSPC`: the driver has no hook, or not for an interface set up like this one, or
    /// the kernel has no links. `ENOSYS`: it has no bpf(2).
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

    /// Sends the frames of receive queue `queue` to `socket`, until that is closed.
    ///
    /// # Errors
    /// `E2BIG`: there is no such queue. `EINVAL`: the socket is not bound.
    pub fn redirect_queue(&self, queue: u32, socket: &XskSocket) -> io::Result<()> {
        let value = unsigned(socket.raw());
        let update = UpdateElement {
            map: unsigned(self.map.as_raw_fd()),
            reserved: 0,
            key: address(&queue),
            value: address(&value),
            flags: 0,
        };
        // SAFETY: the command reads four bytes each at the two addresses, which are those
        // of locals, as the map's key and value are that long.
        unsafe { bpf(MAP_UPDATE, &update) }.map(drop)
    }
}

/// Numbers of linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const XSKMAP: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// `bpf_redirect_map`, among the functions that a program may call.
const REDIRECT_MAP: i32 = 51;
/// What `bpf_redirect_map` answers where there is no socket: the stack has the frame.
const XDP_PASS: i32 = 2;
/// Where `struct xdp_md` has the receive queue's number.
const RX_QUEUE_INDEX: i16 = 16;
/// Marks a 64-bit immediate as a map's descriptor.
const PSEUDO_MAP_FD: u8 = 1;

/// `struct bpf_insn`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Instruction {
    code: u8,
    /// The destination in the low four bits, the source in the high ones.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The program; `map` is the descriptor of the sockets' map.
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
            instructions: u32::try_from(program.len()).expect("six"),
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

/// The fields of `union bpf_attr` that a command reads; the kernel takes those it is not
/// given for zero.
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

/// A command that makes something and returns its descriptor.
fn create_object(command: libc::c_int, attributes: &impl Attributes) -> io::Result<OwnedFd> {
    // SAFETY: of the commands above only loading reads by addresses, those of locals of
    // `load`, as many bytes as they have; the others have numbers only.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just opened this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// bpf(2).
///
/// # Safety
/// The addresses among the attributes are good for what `command` does with them.
unsafe fn bpf(command: libc::c_int, attributes: &impl Attributes) -> io::Result<RawFd> {
    let (pointer, len) = (std::ptr::from_ref(attributes), size_of_val(attributes));
    // SAFETY: the pointer is good for the length; of the rest, the caller takes care.
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
