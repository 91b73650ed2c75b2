//! Users and groups by their names, from wherever the system has them (getpwnam(3), getgrnam(3)).

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// The longest that what the system says of one of them may be, in bytes.
const TOLD_LEN_MAX: usize = 1 << 20;

/// A user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub gid: u32,
    /// Users that are in it though it is not their own.
    pub members: Vec<String>,
}

/// The user of this name, if there is one.
///
/// # Errors
/// The system cannot say.
pub fn user(name: &str) -> io::Result<Option<User>> {
    look_up(name, libc::getpwnam_r, |told: &libc::passwd| User {
        uid: told.pw_uid,
        gid: told.pw_gid,
    })
}

/// The group of this name, if there is one.
///
/// # Errors
/// The system cannot say.
pub fn group(name: &str) -> io::Result<Option<Group>> {
    look_up(name, libc::getgrnam_r, |told: &libc::group| Group {
        gid: told.gr_gid,
        members: members(told),
    })
}

fn members(told: &libc::group) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = told.gr_mem;
    // SAFETY: getgrnam_r(3) has made this an array of strings with a null pointer behind the
    // last, in memory that `look_up` keeps while this runs.
    while let Some(name) = NonNull::new(unsafe { *next }) {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        names.push(name.to_string_lossy().into_owned());
        // SAFETY: the one behind a pointer that is not null is in the array.
        next = unsafe { next.add(1) };
    }
    names
}

/// getpwnam_r(3), or getgrnam_r(3).
type Ask<T> = unsafe extern "C" fn(*const c_char, *mut T, *mut c_char, usize, *mut *mut T) -> c_int;

fn look_up<T, U>(name: &str, ask: Ask<T>, read: impl Fn(&T) -> U) -> io::Result<Option<U>> {
    let name = CString::new(name)?;
    let mut buffer: Vec<c_char> = vec![0; 1024];
    loop {
        let mut told = MaybeUninit::<T>::uninit();
        let mut found = ptr::null_mut();
        // SAFETY: all pointers are of things that live until the call returns, and the length is
        // the buffer's.
        let code = unsafe {
            ask(
                name.as_ptr(),
                told.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        match code {
            0 if found.is_null() => return Ok(None),
            // SAFETY: where the call says that it found something, it has written `told`, which
            // points into `buffer`; both live until `read` returns.
            0 => return Ok(Some(read(unsafe { told.assume_init_ref() }))),
            libc::ENOENT | libc::ESRCH => return Ok(None),
            libc::ERANGE if buffer.len() < TOLD_LEN_MAX => buffer.resize(buffer.len() * 2, 0),
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_and_a_stranger_is_not() {
        assert_eq!(user("root").unwrap(), Some(User { uid: 0, gid: 0 }));
        assert_eq!(group("root").unwrap().map(|group| group.gid), Some(0));
        assert_eq!(user("nobody of this name").unwrap(), None);
        assert_eq!(group("nobody of this name").unwrap(), None);
        assert!(user("\0").is_err());
    }
}
