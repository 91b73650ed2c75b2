//! Changes to the packet sockets of another process. A device runs as packaged, and Open vSwitch
//! has no option for the receive buffer of its sockets.

use std::os::fd::AsFd;
use std::{fs, io};

use rustix::net::{AddressFamily, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// Sets the receive buffer of each packet socket of the process to `bytes`, and returns the number
/// of sockets. Requires the privilege to trace the process.
pub(crate) fn enlarge_receive_buffers(pid: Pid, bytes: usize) -> io::Result<usize> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let mut enlarged = 0;
    for entry in fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()))? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The descriptor was closed after it was listed.
        let Ok(descriptor) = pidfd_getfd(process.as_fd(), number, PidfdGetfdFlags::empty()) else {
            continue;
        };
        if sockopt::socket_domain(&descriptor) == Ok(AddressFamily::PACKET) {
            sockopt::set_socket_recv_buffer_size_force(&descriptor, bytes)?;
            enlarged += 1;
        }
    }
    Ok(enlarged)
}

#[cfg(test)]
mod tests {
    use std::process;

    use rustix::net::{SocketType, socket};

    use super::*;

    #[test]
    fn packet_sockets_of_a_process_are_enlarged_and_others_are_not() {
        let Ok(packets) = socket(AddressFamily::PACKET, SocketType::RAW, None) else {
            assert!(!rustix::process::geteuid().is_root(), "root may open one");
            println!("skipped: packet sockets need root");
            return;
        };
        let stream = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        let before = sockopt::socket_recv_buffer_size(&stream).expect("its size");
        let own = i32::try_from(process::id()).ok().and_then(Pid::from_raw);
        let enlarged = enlarge_receive_buffers(own.expect("a process id"), 1 << 24)
            .expect("it is ours to change");
        assert!(enlarged >= 1);
        // The kernel doubles the value for its own overhead (socket(7)).
        let size = sockopt::socket_recv_buffer_size(&packets);
        assert_eq!(size, Ok(2 << 24));
        assert_eq!(sockopt::socket_recv_buffer_size(&stream), Ok(before));
    }
}
