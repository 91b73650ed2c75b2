//! Users and groups by their names, from wherever the system has them (getpwnam(3), getgrnam(3)).

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// The longest that what the system says of one of them may be, in bytes.
const RECORD_LEN_MAX: usize = 1 << 20;

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
pub struct UserGroup {
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
    lookup(name, libc::getpwnam_r, |record: &libc::passwd| User {
        uid: record.pw_uid,
        gid: record.pw_gid,
    })
}

/// The group of this name, if there is one.
///
/// # Errors
/// The system cannot say.
pub fn group(name: &str) -> io::Result<Option<UserGroup>> {
    lookup(name, libc::getgrnam_r, |record: &libc::group| UserGroup {
        gid: record.gr_gid,
        members: members(record),
    })
}

fn members(record: &libc::group) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = record.gr_mem;
    // SAFETY: getgrnam_r(3) has made this an array of strings with a null pointer behind the
    // last, in memory that `lookup` keeps while this runs.
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
type DatabaseLookup<T> =
    unsafe extern "C" fn(*const c_char, *mut T, *mut c_char, usize, *mut *mut T) -> c_int;

fn lookup<T, U>(
    name: &str,
    lookup: DatabaseLookup<T>,
    read: impl Fn(&T) -> U,
) -> io::Result<Option<U>> {
    let name = CString::new(name)?;
    let mut buffer: Vec<c_char> = vec![0; 1024];
    loop {
        let mut record = MaybeUninit::<T>::uninit();
        let mut result = ptr::null_mut();
        // SAFETY: all pointers are of things that live until the call returns, and the length is
        // the buffer's.
        let code = unsafe {
            lookup(
                name.as_ptr(),
                record.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut result,
            )
        };
        match code {
            0 if result.is_null() => return Ok(None),
            // SAFETY: where the call says that it found something, it has written `record`, which
            // points into `buffer`; both live until `read` returns.
            0 => return Ok(Some(read(unsafe { record.assume_init_ref() }))),
            libc::ENOENT | libc::ESRCH => return Ok(None),
            libc::ERANGE if buffer.len() < RECORD_LEN_MAX => buffer.resize(buffer.len() * 2, 0),
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_and_unknown_name_is_not() {
        assert_eq!(user("root").unwrap(), Some(User { uid: 0, gid: 0 }));
        assert_eq!(group("root").unwrap().map(|group| group.gid), Some(0));
        assert_eq!(user("nobody of this name").unwrap(), None);
        assert_eq!(group("nobody of this name").unwrap(), None);
        assert!(user("\0").is_err());
    }
}
