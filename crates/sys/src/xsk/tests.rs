//! Ownership of chunks, and reactions to inconsistent rings. No interface is needed: a socket has
//! its rings before it is bound, and the tests simulate the kernel.

use std::num::NonZeroU32;
use std::sync::Weak;

use super::*;

const LAYOUT: UmemLayout = UmemLayout {
    chunk_len: NonZeroU32::new(2048).expect("not zero"),
    rx_chunks: NonZeroU32::new(4).expect("not zero"),
    tx_chunks: NonZeroU32::new(2).expect("not zero"),
};

/// Number of chunks of a UMEM for one socket, and for each further one.
const CHUNKS: usize = 4 + 2 + 64 + 128;
const CHUNKS_PER_FURTHER_SOCKET: usize = 4 + 2 + 64;

fn umem(sockets: u32) -> Arc<Umem> {
    let sockets = NonZeroU32::new(sockets).expect("not zero");
    Umem::new(LAYOUT, sockets).expect("the UMEM is small")
}

/// A socket with a filled fill ring, not bound.
fn socket(umem: &Arc<Umem>, queue: u32) -> Option<XskSocket> {
    let device = DeviceQueue {
        interface: Ifindex(1),
        queue,
    };
    let mut socket = match XskSocket::open(umem, device) {
        Err(error) if error.raw_os_error() != Some(libc::ENOSPC) => {
            println!("skipped: cannot open an AF_XDP socket ({error})");
            return None;
        }
        socket => socket.expect("a share is free"),
    };
    socket.populate_fill_ring();
    Some(socket)
}

fn frame(addr: u64, len: u32) -> libc::xdp_desc {
    libc::xdp_desc {
        addr,
        len,
        options: 0,
    }
}

/// Receives a frame in this chunk and detaches it.
fn detached(socket: &mut XskSocket, chunk: u64) -> UmemFrame {
    let entry = frame(chunk * 2048 + 256, 60);
    socket.rx.inject(&[entry], 1);
    assert_eq!(socket.rx_available(64).expect("the ring is consistent"), 1);
    let received = socket.next_frame().expect("the ring is consistent");
    let detached = received.expect("a frame was injected").detach();
    detached.ok().expect("a free chunk replaces it")
}

/// The chunk that the socket appended last to the fill ring.
fn last_filled(socket: &XskSocket) -> u64 {
    socket.fill_ring.last() / 2048
}

fn chunk_counts(free: usize, detached: usize, kernel: usize) -> ChunkCounts {
    ChunkCounts {
        free,
        detached,
        kernel,
    }
}

/// Error text for an RX ring with these entries, whose producer index advanced by `count`.
fn ring_error_text(entries: &[libc::xdp_desc], count: u32) -> Option<String> {
    let umem = umem(2);
    let mut socket = socket(&umem, 0)?;
    socket.rx.inject(entries, count);
    let outcome = (0..=count).map(|_| socket.next_frame().map(drop));
    let error = outcome.filter_map(Result::err).next();
    Some(error.expect("the ring is inconsistent").to_string())
}

#[test]
fn rx_ring_inconsistencies_are_errors() {
    let far = (CHUNKS + CHUNKS_PER_FURTHER_SOCKET) as u64;
    let rows: [(&[libc::xdp_desc], u32, &str); 7] = [
        (&[], 5, "more entries were produced than fit"),
        (&[], u32::MAX, "more entries were produced than fit"),
        (
            &[frame(4 * 2048, 60)],
            1,
            "the kernel returned a chunk that it does not own",
        ),
        (
            &[frame(far * 2048, 60)],
            1,
            "a received frame is outside the UMEM",
        ),
        (
            &[frame(u64::MAX, 60)],
            1,
            "a received frame is outside the UMEM",
        ),
        (
            &[frame(2048 + 256, 1793)],
            1,
            "a received frame is longer than its chunk",
        ),
        (
            &[frame(0, u32::MAX)],
            1,
            "a received frame is longer than its chunk",
        ),
    ];
    for (entries, count, expected) in rows {
        let Some(message) = ring_error_text(entries, count) else {
            return;
        };
        assert_eq!(message, format!("inconsistent AF_XDP ring: {expected}"));
    }
}

#[test]
fn rx_frame_is_read_and_its_chunk_refilled() {
    let umem = umem(1);
    let Some(mut socket) = socket(&umem, 0) else {
        return;
    };
    for chunk in [3_u64, 1, 3] {
        let entry = frame(chunk * 2048 + 256, 1792);
        socket.rx.inject(&[entry], 1);
        let received = socket.next_frame().unwrap().unwrap();
        assert_eq!(received.bytes(), [0; 1792]);
        drop(received);
        assert!(socket.next_frame().unwrap().is_none());
        assert_eq!(last_filled(&socket), chunk);
        assert_eq!(umem.chunk_counts(), chunk_counts(CHUNKS - 4, 0, 4));
    }
    drop(socket);
    assert_eq!(umem.chunk_counts(), chunk_counts(CHUNKS, 0, 0));
}

#[test]
fn detached_frame_is_sent_in_place_by_another_socket() {
    let umem = umem(2);
    let sockets = [0, 1].map(|queue| socket(&umem, queue));
    let [Some(mut a), Some(mut b)] = sockets else {
        return;
    };
    let all = CHUNKS + CHUNKS_PER_FURTHER_SOCKET;
    let mut detached = detached(&mut a, 2);
    // The fill rings still have as many chunks as before.
    assert_eq!(umem.chunk_counts(), chunk_counts(all - 9, 1, 8));
    assert_ne!(last_filled(&a), 2);
    detached.storage[256] = 7;
    // A tag is pushed: the frame begins earlier.
    detached.start -= 4;
    detached.len += 4;
    b.enqueue_in_place(detached).unwrap();
    let completion = b.tx.last();
    assert_eq!((completion.addr, completion.len), (2 * 2048 + 252, 64));
    assert_eq!(umem.chunk_counts(), chunk_counts(all - 9, 0, 9));
    assert_eq!((a.tx_room(), b.tx_room()), (2, 1));
    // Socket b sent it, not a.
    a.completion.inject(&[2 * 2048 + 252], 1);
    a.reap_completions().unwrap_err();
    b.completion.inject(&[2 * 2048 + 252], 1);
    b.reap_completions().unwrap();
    assert_eq!(umem.chunk_counts(), chunk_counts(all - 8, 0, 8));
    assert_eq!(b.tx_room(), 2);
    drop((a, b));
    assert_eq!(umem.chunk_counts(), chunk_counts(all, 0, 0));
}

#[test]
fn frame_of_another_umem_or_outside_its_chunk_is_returned() {
    let (one, other) = (umem(1), umem(1));
    let sockets = [&one, &other].map(|umem| socket(umem, 0));
    let [Some(mut a), Some(mut b)] = sockets else {
        return;
    };
    let detached = detached(&mut a, 0);
    let (start, len) = (detached.start, detached.len);
    let mut storage = b.enqueue_in_place(detached).unwrap_err();
    for (start, len) in [(2000, 49), (2049, 1), (0, 2049), (usize::MAX, 60), (256, 0)] {
        let detached = UmemFrame {
            storage,
            start,
            len,
        };
        storage = a.enqueue_in_place(detached).unwrap_err();
    }
    let detached = UmemFrame {
        storage,
        start,
        len,
    };
    a.enqueue_in_place(detached).unwrap();
    assert_eq!(one.chunk_counts(), chunk_counts(CHUNKS - 5, 0, 5));
    assert_eq!(other.chunk_counts(), chunk_counts(CHUNKS - 4, 0, 4));
}

#[test]
fn frame_is_not_detached_without_a_free_chunk() {
    let umem = umem(2);
    let sockets = [0, 1].map(|queue| socket(&umem, queue));
    let [Some(mut a), Some(mut b)] = sockets else {
        return;
    };
    let mut detached_frames = Vec::new();
    let mut next = 0;
    loop {
        let entry = frame(next * 2048 + 256, 60);
        a.rx.inject(&[entry], 1);
        assert_eq!(a.rx_available(64).unwrap(), 1);
        if !a.can_detach() {
            break;
        }
        let received = a.next_frame().unwrap().unwrap();
        detached_frames.push(received.detach().ok().unwrap());
        next = last_filled(&a);
    }
    // b has no cached chunk; all others are detached, and both sockets can still receive.
    assert_eq!(
        umem.chunk_counts(),
        chunk_counts(0, CHUNKS + CHUNKS_PER_FURTHER_SOCKET - 8, 8)
    );
    assert!(!b.enqueue_copy(&[1; 60]), "no chunk is free");
    let received = a.next_frame().unwrap().unwrap();
    assert_eq!(received.len(), 60);
    drop(received);
    assert_eq!(last_filled(&a), next);
    b.enqueue_in_place(detached_frames.pop().unwrap()).unwrap();
    detached_frames.truncate(1);
    assert!(b.enqueue_copy(&[1; 60]));
    assert!(
        !b.enqueue_copy(&[1; 60]),
        "at most two chunks are in transmission"
    );
    assert_eq!(
        umem.chunk_counts(),
        chunk_counts(CHUNKS + CHUNKS_PER_FURTHER_SOCKET - 11, 1, 10)
    );
    drop((a, b));
    assert_eq!(
        umem.chunk_counts(),
        chunk_counts(CHUNKS + CHUNKS_PER_FURTHER_SOCKET - 1, 1, 0)
    );
}

#[test]
fn detached_frames_outlive_socket_and_umem() {
    let (kept, detached_frames): (Weak<Umem>, Vec<UmemFrame>) = {
        let umem = umem(1);
        let Some(mut socket) = socket(&umem, 0) else {
            return;
        };
        let detached_frames = (0..3).map(|chunk| detached(&mut socket, chunk)).collect();
        (Arc::downgrade(&umem), detached_frames)
    };
    let umem = kept.upgrade().expect("detached frames keep the UMEM alive");
    assert_eq!(umem.chunk_counts(), chunk_counts(CHUNKS - 3, 3, 0));
    drop(umem);
    let mut threads = Vec::new();
    for mut detached in detached_frames {
        threads.push(std::thread::spawn(move || detached.storage[0] = 1));
    }
    assert!(threads.into_iter().all(|thread| thread.join().is_ok()));
    assert!(kept.upgrade().is_none(), "no frame refers to the UMEM");
}

#[test]
fn umem_shares_are_limited_and_reusable() {
    let umem = umem(1);
    let Some(first) = socket(&umem, 0) else {
        return;
    };
    let device = DeviceQueue {
        interface: Ifindex(1),
        queue: 1,
    };
    let refused = XskSocket::open(&umem, device).err().unwrap();
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC));
    drop(first);
    drop(socket(&umem, 1));
    assert_eq!(umem.chunk_counts(), chunk_counts(CHUNKS, 0, 0));
}

#[test]
fn completion_of_unsent_or_completed_chunk_is_refused() {
    let umem = umem(1);
    let Some(mut socket) = socket(&umem, 0) else {
        return;
    };
    for addr in [0, 4 * 2048, CHUNKS as u64 * 2048, u64::MAX] {
        socket.completion.inject(&[addr], 1);
        socket.reap_completions().unwrap_err();
    }
    assert_eq!(socket.tx_room(), 2);
    assert!(socket.enqueue_copy(&[1; 60]));
    let addr = socket.tx.last().addr;
    assert!(socket.enqueue_copy(&[2; 2048]));
    assert!(
        !socket.enqueue_copy(&[3; 60]),
        "the TX ring has two entries"
    );
    assert_eq!(socket.tx_pending().unwrap(), 2);
    socket.completion.inject(&[addr], 1);
    socket.reap_completions().unwrap();
    assert_eq!(socket.tx_room(), 1);
    socket.completion.inject(&[addr], 1);
    socket.reap_completions().unwrap_err();
    assert!(
        !socket.enqueue_copy(&[4; 2049]),
        "the frame exceeds a chunk"
    );
    assert_eq!(socket.tx_room(), 1);
    assert!(!socket.reserve(2) && socket.reserve(1));
}

#[test]
fn umem_layout_that_kernel_rejects_is_refused() {
    let three = NonZeroU32::new(3).expect("not zero");
    let rx_chunks = UmemLayout {
        rx_chunks: three,
        ..LAYOUT
    };
    let many = NonZeroU32::MAX;
    for (layout, sockets) in [(rx_chunks, three), (LAYOUT, many)] {
        let refused = Umem::new(layout, sockets).err().unwrap();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    }
}
