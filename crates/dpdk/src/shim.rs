//! Declarations of `shim/shim.h`.

use std::ffi::{c_char, c_int, c_void};

/// The size of the driver name in bytes.
pub(crate) const NAME_LEN: usize = 64;

/// The maximum number of frames of one call.
pub(crate) const BATCH: usize = 64;

/// A frame in an mbuf.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawFrame {
    /// The mbuf.
    pub(crate) mbuf: *mut c_void,
    /// The start of its first buffer.
    pub(crate) buffer: *mut u8,
    /// The offset of the first segment in the buffer.
    pub(crate) start: u32,
    /// The length of the first segment in bytes.
    pub(crate) piece: u32,
    /// The length of the frame in bytes.
    pub(crate) len: u32,
    /// The size of the buffer, if the frame has one segment, has no other reference and is from our
    /// memory; otherwise zero.
    pub(crate) room: u32,
}

/// A frame to be sent, in one segment in a buffer of our memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawTxFrame {
    /// The start of the buffer.
    pub(crate) buffer: *mut u8,
    /// The offset of the frame in the buffer.
    pub(crate) start: u32,
    /// The length of the frame in bytes.
    pub(crate) len: u32,
}

/// Properties of a device.
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

/// The configuration with which a device is started.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawConfig {
    pub(crate) receive_queues: u16,
    pub(crate) transmit_queues: u16,
    pub(crate) descriptors: u16,
    pub(crate) mtu: u16,
    pub(crate) buffers: u32,
    pub(crate) room: u32,
}

/// The state of a device's link.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawLink {
    pub(crate) mbps: u32,
    pub(crate) up: u8,
}

/// Loss counters of the device since its start.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Losses {
    /// Frames dropped for lack of a descriptor.
    pub(crate) missed: u64,
    /// Frames received with errors.
    pub(crate) receive_errors: u64,
    /// Frames dropped for lack of a buffer.
    pub(crate) no_buffer: u64,
    /// Frames that it accepted and did not send.
    pub(crate) transmit_errors: u64,
}

const _: () = {
    assert!(size_of::<RawFrame>() == 32);
    assert!(size_of::<RawTxFrame>() == 16);
    assert!(size_of::<RawDevice>() == 84);
    assert!(size_of::<RawConfig>() == 16);
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
        config: *const RawConfig,
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
    pub(crate) fn shim_send(port: u16, queue: u16, frames: *const RawTxFrame, count: u32) -> u32;
}
