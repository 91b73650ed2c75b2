//! Anonymous network namespaces. A namespace exists as long as a process, a socket or a file
//! descriptor refers to it (namespaces(7)), so a killed process leaves none behind.
//!
//! Not here: interfaces and addresses inside a namespace.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Creates a network namespace. It contains a loopback interface that is down, and is destroyed
/// with its last descriptor, socket and process.
///
/// # Errors
/// `EPERM`: `CAP_SYS_ADMIN` is missing. `EINVAL`: the kernel has no network namespaces.
pub fn create() -> io::Result<OwnedFd> {
    on_another_thread(|| {
        // SAFETY: the caller must tolerate that descriptors, memory or signal handlers are no
        // longer shared with other threads. NEWNET affects none of these: it changes only the
        // namespace in which this thread, which ends here, opens its sockets.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
        Ok(File::open("/proc/thread-self/ns/net")?.into())
    })
}

/// Returns the namespace of the calling thread.
///
/// # Errors
/// Those of opening `/proc/thread-self/ns/net`.
pub fn current() -> io::Result<OwnedFd> {
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Runs `body` on a separate thread inside `namespace` and waits for it. A socket opened there
/// stays in that namespace, whichever thread uses it later.
///
/// # Errors
/// Those of `setns(2)` and of starting a thread.
///
/// # Panics
/// If `body` does.
pub fn run<R: Send>(namespace: BorrowedFd<'_>, body: impl FnOnce() -> R + Send) -> io::Result<R> {
    on_another_thread(|| {
        enter(namespace)?;
        Ok(body())
    })
}

/// Moves the calling thread into `namespace` permanently. Only for the child of a fork, or a thread
/// that serves only that namespace.
pub(crate) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(
        namespace.as_fd(),
        Some(LinkNameSpaceType::Network),
    )?)
}

fn on_another_thread<R: Send>(body: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
    thread::scope(|scope| {
        thread::Builder::new()
            .name("netns".to_owned())
            .spawn_scoped(scope, body)?
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn inode(fd: &OwnedFd) -> u64 {
        let file = File::from(fd.try_clone().unwrap());
        file.metadata().unwrap().ino()
    }

    #[test]
    fn thread_enters_namespace_and_caller_keeps_its_own() {
        let own = current().unwrap();
        let Ok(created) = create() else {
            println!("skipped: not permitted to create network namespaces");
            return;
        };
        let inside = run(created.as_fd(), || current().unwrap()).unwrap();
        assert_eq!(inode(&inside), inode(&created));
        assert_ne!(inode(&created), inode(&own));
        assert_eq!(inode(&current().unwrap()), inode(&own));
    }
}
