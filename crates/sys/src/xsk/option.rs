//! Options of an AF_XDP socket, which are numbers and structures of numbers.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

pub(super) fn set<T: Copy>(fd: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    set_at(fd, libc::SOL_XDP, option, value)
}

pub(super) fn set_at<T: Copy>(
    fd: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let pointer = std::ptr::from_ref(value).cast();
    // SAFETY: the pointer is good for the length, and the kernel only reads. The memory
    // that a registration speaks of is kept mapped by the caller.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, pointer, len_of(value)) };
    done(result).map(drop)
}

/// Reads an option that is made of numbers, and how many bytes of it there are.
pub(super) fn get<T: Numbers>(fd: &OwnedFd, option: libc::c_int) -> io::Result<(T, usize)> {
    get_at(fd, libc::SOL_XDP, option)
}

pub(super) fn get_at<T: Numbers>(
    fd: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<(T, usize)> {
    let mut value = T::default();
    let mut len = len_of(&value);
    let pointer = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the pointer is good for `len` bytes, the kernel writes no more, and whatever
    // it writes is a value of `T`.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, pointer, &raw mut len) };
    done(result)?;
    Ok((value, len as usize))
}

/// Types of which every bit pattern is a value.
pub(super) trait Numbers: Default {}
impl Numbers for [u32; 1] {}
impl Numbers for [u64; 1] {}
impl Numbers for [u64; 6] {}
impl Numbers for [u64; 16] {}

pub(super) fn len_of<T>(value: &T) -> libc::socklen_t {
    libc::socklen_t::try_from(size_of_val(value)).expect("options and addresses are short")
}

pub(super) fn done(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
