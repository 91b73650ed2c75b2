//! Lookup of users and groups by name in the system's databases (getpwnam(3), getgrnam(3)).

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// Maximum length of a database record, in bytes.
const RECORD_LEN_MAX: usize = 1 << 20;

/// A user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Numeric user ID.
    pub uid: u32,
    /// Numeric ID of the user's primary group.
    pub gid: u32,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserGroup {
    /// Numeric group ID.
    pub gid: u32,
    /// Users that belong to the group although it is not their primary group.
    pub members: Vec<String>,
}

/// Returns the user called `name`, or `None` if the database has no such user.
///
/// # Errors
/// The database cannot be read.
pub fn user(name: &str) -> io::Result<Option<User>> {
    lookup(name, libc::getpwnam_r, |record: &libc::passwd| User {
        uid: record.pw_uid,
        gid: record.pw_gid,
    })
}

/// Returns the group called `name`, or `None` if the database has no such group.
///
/// # Errors
/// The database cannot be read.
pub fn group(name: &str) -> io::Result<Option<UserGroup>> {
    lookup(name, libc::getgrnam_r, |record: &libc::group| UserGroup {
        gid: record.gr_gid,
        members: members(record),
    })
}

fn members(record: &libc::group) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = record.gr_mem;
    // SAFETY: getgrnam_r(3) has written an array of strings that ends with a null pointer, in
    // memory that `lookup` keeps alive while this runs.
    while let Some(name) = NonNull::new(unsafe { *next }) {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        names.push(name.to_string_lossy().into_owned());
        // SAFETY: the entry after a non-null pointer is inside the array.
        next = unsafe { next.add(1) };
    }
    names
}

/// Signature of getpwnam_r(3) and getgrnam_r(3).
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
        // SAFETY: all pointers refer to values that live until the call returns, and the length is
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
            // SAFETY: if the call returns a result it has written `record`, which points into
            // `buffer`; both live until `read` returns.
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
