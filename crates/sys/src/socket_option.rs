//! Socket options whose values are integers or structures of integers (setsockopt(2)).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets `option` of `level`.
pub(crate) fn set<T: Copy>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let pointer = std::ptr::from_ref(value).cast();
    // SAFETY: the pointer is valid for the length, and the kernel only reads. Memory that the
    // value points to (a UMEM, a filter program) outlives the call: the caller keeps it.
    check(unsafe { libc::setsockopt(fd, level, option, pointer, len_of(value)) }).map(drop)
}

/// Returns the value of `option` of `level`, and the number of bytes that the kernel wrote.
pub(crate) fn get<T: OptionValue>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<(T, usize)> {
    let fd = socket.as_fd().as_raw_fd();
    let mut value = T::default();
    let mut len = len_of(&value);
    let pointer = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the pointer is valid for `len` bytes, the kernel writes no more, and every bit
    // pattern is a value of `T`.
    check(unsafe { libc::getsockopt(fd, level, option, pointer, &raw mut len) })?;
    Ok((value, len as usize))
}

/// Types of which every bit pattern is a value.
pub(crate) trait OptionValue: Default {}
impl OptionValue for u32 {}
impl OptionValue for [u32; 1] {}
impl OptionValue for [u32; 2] {}
impl OptionValue for [u64; 1] {}
impl OptionValue for [u64; 6] {}
impl OptionValue for [u64; 16] {}

/// Length of an option or a socket address.
pub(crate) fn len_of<T>(value: &T) -> libc::socklen_t {
    libc::socklen_t::try_from(size_of_val(value)).expect("options and addresses are short")
}

/// Converts the result of a system call: -1 is the error in `errno`.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
