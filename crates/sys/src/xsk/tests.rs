//! What chunks do, and what is done when the kernel's side of the rings says what cannot
//! be. No interface is needed: a socket has its rings before it is bound, and the kernel is
//! played here.

use std::num::NonZeroU32;
use std::sync::Weak;

use super::*;

const LAYOUT: Layout = Layout {
    chunk_len: NonZeroU32::new(2048).expect("not zero"),
    coming: NonZeroU32::new(4).expect("not zero"),
    going: NonZeroU32::new(2).expect("not zero"),
};

/// So many chunks has a memory for one socket, and for each further one.
const CHUNKS: usize = 4 + 2 + 64 + 128;
const EACH: usize = 4 + 2 + 64;

fn memory(sockets: u32) -> Arc<Memory> {
    let sockets = NonZeroU32::new(sockets).expect("some");
    Memory::new(LAYOUT, sockets).expect("there is memory")
}

/// A socket with its chunks written down for the kernel, but bound to nothing.
fn socket(memory: &Arc<Memory>, queue: u32) -> Option<XskSocket> {
    let device = DeviceQueue {
        interface: Ifindex(1),
        queue,
    };
    let mut socket = match XskSocket::open(memory, device) {
        Err(error) if error.raw_os_error() != Some(libc::ENOSPC) => {
            println!("skipped: no AF_XDP socket to be had ({error})");
            return None;
        }
        socket => socket.expect("there is a share"),
    };
    socket.fill();
    Some(socket)
}

fn frame(addr: u64, len: u32) -> libc::xdp_desc {
    libc::xdp_desc {
        addr,
        len,
        options: 0,
    }
}

/// Has a frame come in this chunk, and takes it as it lies.
fn lent(socket: &mut XskSocket, chunk: u64) -> Lent {
    let entry = frame(chunk * 2048 + 256, 60);
    socket.received.pretend(&[entry], 1);
    assert_eq!(socket.waiting(64).expect("it makes sense"), 1);
    let received = socket.next_received().expect("it makes sense");
    let lent = received.expect("it is there").lend();
    lent.ok().expect("there is a chunk in its place")
}

/// The chunk that the kernel was given last by this socket, to receive into.
fn given_last(socket: &XskSocket) -> u64 {
    socket.refill.last() / 2048
}

fn tally(free: usize, lent: usize, kernel: usize) -> Tally {
    Tally { free, lent, kernel }
}

/// What is said of a ring in which these entries stand, of which `count` are said to be there.
fn complaint(entries: &[libc::xdp_desc], count: u32) -> Option<String> {
    let memory = memory(2);
    let mut socket = socket(&memory, 0)?;
    socket.received.pretend(entries, count);
    let outcome = (0..=count).map(|_| socket.next_received().map(drop));
    let error = outcome.filter_map(Result::err).next();
    Some(error.expect("it makes no sense").to_string())
}

#[test]
fn frames_that_came_where_none_can_be_are_told() {
    let far = (CHUNKS + EACH) as u64;
    let rows: [(&[libc::xdp_desc], u32, &str); 7] = [
        (&[], 5, "more was written than there is room for"),
        (&[], u32::MAX, "more was written than there is room for"),
        (
            &[frame(4 * 2048, 60)],
            1,
            "a chunk comes back that was never given",
        ),
        (
            &[frame(far * 2048, 60)],
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
    let memory = memory(1);
    let Some(mut socket) = socket(&memory, 0) else {
        return;
    };
    for chunk in [3_u64, 1, 3] {
        let entry = frame(chunk * 2048 + 256, 1792);
        socket.received.pretend(&[entry], 1);
        let received = socket.next_received().unwrap().unwrap();
        assert_eq!(received.bytes(), [0; 1792]);
        drop(received);
        assert!(socket.next_received().unwrap().is_none());
        assert_eq!(given_last(&socket), chunk);
        assert_eq!(memory.tally(), tally(CHUNKS - 4, 0, 4));
    }
    drop(socket);
    assert_eq!(memory.tally(), tally(CHUNKS, 0, 0));
}

#[test]
fn a_lent_frame_is_sent_by_another_socket_as_it_lies() {
    let memory = memory(2);
    let sockets = [0, 1].map(|queue| socket(&memory, queue));
    let [Some(mut a), Some(mut b)] = sockets else {
        return;
    };
    let all = CHUNKS + EACH;
    let mut lent = lent(&mut a, 2);
    // The kernel has as many to receive into as before.
    assert_eq!(memory.tally(), tally(all - 9, 1, 8));
    assert_ne!(given_last(&a), 2);
    lent.storage[256] = 7;
    // A tag in front: it begins earlier.
    lent.start -= 4;
    lent.len += 4;
    b.place_lent(lent).unwrap();
    let sent = b.sending.last();
    assert_eq!((sent.addr, sent.len), (2 * 2048 + 252, 64));
    assert_eq!(memory.tally(), tally(all - 9, 0, 9));
    assert_eq!((a.room(), b.room()), (2, 1));
    // It was b that sent it.
    a.sent.pretend(&[2 * 2048 + 252], 1);
    a.reap().unwrap_err();
    b.sent.pretend(&[2 * 2048 + 252], 1);
    b.reap().unwrap();
    assert_eq!(memory.tally(), tally(all - 8, 0, 8));
    assert_eq!(b.room(), 2);
    drop((a, b));
    assert_eq!(memory.tally(), tally(all, 0, 0));
}

#[test]
fn what_is_of_another_memory_or_does_not_fit_comes_back() {
    let (one, other) = (memory(1), memory(1));
    let sockets = [&one, &other].map(|memory| socket(memory, 0));
    let [Some(mut a), Some(mut b)] = sockets else {
        return;
    };
    let lent = lent(&mut a, 0);
    let (start, len) = (lent.start, lent.len);
    let mut storage = b.place_lent(lent).unwrap_err();
    for (start, len) in [(2000, 49), (2049, 1), (0, 2049), (usize::MAX, 60), (256, 0)] {
        let lent = Lent {
            storage,
            start,
            len,
        };
        storage = a.place_lent(lent).unwrap_err();
    }
    let lent = Lent {
        storage,
        start,
        len,
    };
    a.place_lent(lent).unwrap();
    assert_eq!(one.tally(), tally(CHUNKS - 5, 0, 5));
    assert_eq!(other.tally(), tally(CHUNKS - 4, 0, 4));
}

#[test]
fn where_no_chunk_is_free_none_is_lent_and_the_kernel_keeps_its_own() {
    let memory = memory(2);
    let sockets = [0, 1].map(|queue| socket(&memory, queue));
    let [Some(mut a), Some(mut b)] = sockets else {
        return;
    };
    let mut held = Vec::new();
    let mut next = 0;
    loop {
        let entry = frame(next * 2048 + 256, 60);
        a.received.pretend(&[entry], 1);
        assert_eq!(a.waiting(64).unwrap(), 1);
        if !a.can_lend() {
            break;
        }
        let received = a.next_received().unwrap().unwrap();
        held.push(received.lend().ok().unwrap());
        next = given_last(&a);
    }
    // b has none at hand; all others are lent, and each socket can receive as ever.
    assert_eq!(memory.tally(), tally(0, CHUNKS + EACH - 8, 8));
    assert!(!b.place(&[1; 60]), "no chunk is free");
    let received = a.next_received().unwrap().unwrap();
    assert_eq!(received.len(), 60);
    drop(received);
    assert_eq!(given_last(&a), next);
    b.place_lent(held.pop().unwrap()).unwrap();
    held.truncate(1);
    assert!(b.place(&[1; 60]));
    assert!(!b.place(&[1; 60]), "so many are under way at most");
    assert_eq!(memory.tally(), tally(CHUNKS + EACH - 11, 1, 10));
    drop((a, b));
    assert_eq!(memory.tally(), tally(CHUNKS + EACH - 1, 1, 0));
}

#[test]
fn frames_outlive_sockets_and_memory_and_come_back_from_any_thread() {
    let (kept, held): (Weak<Memory>, Vec<Lent>) = {
        let memory = memory(1);
        let Some(mut socket) = socket(&memory, 0) else {
            return;
        };
        let held = (0..3).map(|chunk| lent(&mut socket, chunk)).collect();
        (Arc::downgrade(&memory), held)
    };
    let memory = kept.upgrade().expect("frames lie in it");
    assert_eq!(memory.tally(), tally(CHUNKS - 3, 3, 0));
    drop(memory);
    let mut threads = Vec::new();
    for mut lent in held {
        threads.push(std::thread::spawn(move || lent.storage[0] = 1));
    }
    assert!(threads.into_iter().all(|thread| thread.join().is_ok()));
    assert!(kept.upgrade().is_none(), "nobody has anything of it");
}

#[test]
fn shares_are_counted_and_come_back() {
    let memory = memory(1);
    let Some(first) = socket(&memory, 0) else {
        return;
    };
    let device = DeviceQueue {
        interface: Ifindex(1),
        queue: 1,
    };
    let refused = XskSocket::open(&memory, device).err().unwrap();
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC));
    drop(first);
    drop(socket(&memory, 1));
    assert_eq!(memory.tally(), tally(CHUNKS, 0, 0));
}

#[test]
fn what_was_never_sent_is_not_taken_back_and_nothing_twice() {
    let memory = memory(1);
    let Some(mut socket) = socket(&memory, 0) else {
        return;
    };
    for addr in [0, 4 * 2048, CHUNKS as u64 * 2048, u64::MAX] {
        socket.sent.pretend(&[addr], 1);
        socket.reap().unwrap_err();
    }
    assert_eq!(socket.room(), 2);
    assert!(socket.place(&[1; 60]));
    let addr = socket.sending.last().addr;
    assert!(socket.place(&[2; 2048]));
    assert!(!socket.place(&[3; 60]), "there is room for two");
    assert_eq!(socket.unsent().unwrap(), 2);
    socket.sent.pretend(&[addr], 1);
    socket.reap().unwrap();
    assert_eq!(socket.room(), 1);
    socket.sent.pretend(&[addr], 1);
    socket.reap().unwrap_err();
    assert!(!socket.place(&[4; 2049]), "a chunk is shorter");
    assert_eq!(socket.room(), 1);
    assert!(!socket.reserve(2) && socket.reserve(1));
}

#[test]
fn a_layout_that_the_kernel_would_not_take_is_refused() {
    let three = NonZeroU32::new(3).expect("not zero");
    let coming = Layout {
        coming: three,
        ..LAYOUT
    };
    let many = NonZeroU32::MAX;
    for (layout, sockets) in [(coming, three), (LAYOUT, many)] {
        let refused = Memory::new(layout, sockets).err().unwrap();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    }
}
