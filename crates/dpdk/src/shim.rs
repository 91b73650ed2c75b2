//! What `shim/shim.h` declares, declared for Rust. Nothing is done here.

use std::ffi::{c_char, c_int, c_void};

/// Where a driver's name ends at the latest.
pub(crate) const NAME_LEN: usize = 64;

/// The most frames of one call.
pub(crate) const BATCH: usize = 64;

/// A frame in DPDK's memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawFrame {
    /// The handle that is given back.
    pub(crate) mbuf: *mut c_void,
    /// Where its first buffer begins.
    pub(crate) buffer: *mut u8,
    /// Where in it the first piece begins.
    pub(crate) start: u32,
    /// Bytes of the first piece.
    pub(crate) piece: u32,
    /// All of its bytes.
    pub(crate) len: u32,
    /// Bytes of the buffer, if it is whole, ours alone and of our memory; or zero.
    pub(crate) room: u32,
}

/// A frame that is about to go, in one piece in a buffer of our memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawLeaving {
    /// Where the buffer begins.
    pub(crate) buffer: *mut u8,
    /// Where in it the frame does.
    pub(crate) start: u32,
    /// Its bytes.
    pub(crate) len: u32,
}

/// What a device is.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawDevice {
    pub(crate) driver: [c_char; NAME_LEN],
    pub(crate) address: [u8; 6],
    pub(crate) mtu: u16,
    pub(crate) mtu_max: u16,
    pub(crate) receive_queues_max: u16,
    pub(crate) transmit_queues_max: u16,
    pub(crate) interface: u32,
}

/// How a device is to be started.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawWish {
    pub(crate) receive_queues: u16,
    pub(crate) transmit_queues: u16,
    pub(crate) descriptors: u16,
    pub(crate) mtu: u16,
    pub(crate) buffers: u32,
    pub(crate) room: u32,
}

/// How a device's link is.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawLink {
    pub(crate) mbps: u32,
    pub(crate) up: u8,
}

/// What the device itself counts, from its start.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Losses {
    /// Frames for which it had no descriptor.
    pub(crate) missed: u64,
    /// Frames that came damaged.
    pub(crate) receive_errors: u64,
    /// Frames for which its memory had no buffer.
    pub(crate) no_buffer: u64,
    /// Frames that it took and did not send.
    pub(crate) transmit_errors: u64,
}

const _: () = {
    assert!(size_of::<RawFrame>() == 32);
    assert!(size_of::<RawLeaving>() == 16);
    assert!(size_of::<RawDevice>() == 84);
    assert!(size_of::<RawWish>() == 16);
    assert!(size_of::<RawLink>() == 8);
    assert!(size_of::<Losses>() == 32);
};

unsafe extern "C" {
    pub(crate) fn shim_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub(crate) fn shim_said(to: *mut c_char, room: u32) -> u32;

    pub(crate) fn shim_probe(arguments: *const c_char, port: *mut u16) -> c_int;
    pub(crate) fn shim_look(port: u16, device: *mut RawDevice) -> c_int;
    pub(crate) fn shim_start(
        port: u16,
        wish: *const RawWish,
        name: *const c_char,
        pool: *mut *mut c_void,
    ) -> c_int;
    pub(crate) fn shim_close(port: u16);
    pub(crate) fn shim_out(pool: *const c_void) -> u32;
    pub(crate) fn shim_free(pool: *mut c_void);

    pub(crate) fn shim_link(port: u16, link: *mut RawLink) -> c_int;
    pub(crate) fn shim_set_link(port: u16, up: c_int) -> c_int;
    pub(crate) fn shim_losses(port: u16, losses: *mut Losses) -> c_int;
    pub(crate) fn shim_is_removed(port: u16) -> c_int;

    pub(crate) fn shim_enter_thread() -> c_int;
    pub(crate) fn shim_leave_thread();

    pub(crate) fn shim_receive(
        port: u16,
        queue: u16,
        pool: *const c_void,
        frames: *mut RawFrame,
        count: u32,
    ) -> u32;
    pub(crate) fn shim_copy(frame: *const RawFrame, to: *mut u8);
    pub(crate) fn shim_release(frames: *const RawFrame, count: u32);
    pub(crate) fn shim_give_back(buffer: *mut u8);
    pub(crate) fn shim_reap(port: u16, queue: u16);
    pub(crate) fn shim_allocate(pool: *mut c_void, frames: *mut RawFrame, count: u32) -> c_int;
    pub(crate) fn shim_send(port: u16, queue: u16, frames: *const RawLeaving, count: u32) -> u32;
}
