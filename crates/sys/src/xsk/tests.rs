//! What is done when the kernel's side of the rings says what cannot be. No interface
//! is needed: a socket has its rings before it is bound.

use super::*;

const LAYOUT: Layout = Layout {
    chunk_len: NonZeroU32::new(2048).expect("not zero"),
    coming: NonZeroU32::new(4).expect("not zero"),
    going: NonZeroU32::new(2).expect("not zero"),
};

fn socket() -> Option<XskSocket> {
    let socket = XskSocket::open(LAYOUT);
    if let Err(error) = &socket {
        println!("skipped: no AF_XDP socket to be had ({error})");
    }
    socket.ok()
}

fn frame(addr: u64, len: u32) -> libc::xdp_desc {
    libc::xdp_desc {
        addr,
        len,
        options: 0,
    }
}

/// What is said of a ring in which these entries stand, of which `count` are said to be there.
fn complaint(entries: &[libc::xdp_desc], count: u32) -> Option<String> {
    let mut socket = socket()?;
    socket.received.pretend(entries, count);
    let outcome = (0..=count).map(|_| socket.next_received().map(drop));
    let error = outcome.filter_map(Result::err).next();
    Some(error.expect("it makes no sense").to_string())
}

#[test]
fn frames_that_came_where_none_can_be_are_told() {
    let rows: [(&[libc::xdp_desc], u32, &str); 6] = [
        (&[], 5, "more was written than there is room for"),
        (&[], u32::MAX, "more was written than there is room for"),
        (
            &[frame(4 * 2048, 60)],
            1,
            "a frame that came is where none can be",
        ),
        (
            &[frame(u64::MAX, 60)],
            1,
            "a frame that came is where none can be",
        ),
        (
            &[frame(2048 + 256, 1793)],
            1,
            "a frame that came is longer than its chunk",
        ),
        (
            &[frame(0, u32::MAX)],
            1,
            "a frame that came is longer than its chunk",
        ),
    ];
    for (entries, count, wanted) in rows {
        let Some(said) = complaint(entries, count) else {
            return;
        };
        assert_eq!(said, format!("the kernel's ring makes no sense: {wanted}"));
    }
}

#[test]
fn a_frame_that_came_is_read_and_its_chunk_given_back() {
    let Some(mut socket) = socket() else { return };
    for chunk in [3_u64, 1, 3] {
        socket
            .received
            .pretend(&[frame(chunk * 2048 + 256, 1792)], 1);
        let received = socket.next_received().unwrap().unwrap();
        assert_eq!(received.bytes(), [0; 1792]);
        drop(received);
        assert!(socket.next_received().unwrap().is_none());
        assert_eq!(socket.owners[..4], [Owner::Kernel; 4]);
    }
}

#[test]
fn what_was_never_sent_is_not_taken_back_and_nothing_twice() {
    let Some(mut socket) = socket() else { return };
    for addr in [0, 4 * 2048, 6 * 2048, u64::MAX] {
        socket.sent.pretend(&[addr], 1);
        socket.reap().unwrap_err();
    }
    assert_eq!(socket.room(), 2);
    assert!(socket.place(&[1; 60]) && socket.place(&[2; 2048]));
    assert!(!socket.place(&[3; 60]), "there are two chunks");
    assert_eq!(socket.unsent().unwrap(), 2);
    socket.sent.pretend(&[5 * 2048], 1);
    socket.reap().unwrap();
    assert_eq!(socket.room(), 1);
    socket.sent.pretend(&[5 * 2048], 1);
    socket.reap().unwrap_err();
    assert!(!socket.place(&[4; 2049]), "a chunk is shorter");
    assert_eq!(socket.room(), 1);
}
