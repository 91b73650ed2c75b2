//! A device with known faults, to test the instrument on: what was done to frames
//! must be what the lab reports.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testbed::{Bench, Clock, DeviceKind, DeviceOptions, RawSocket, Spawner};

/// What is done to frames towards the server; those towards the client only pass, delayed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Every how manieth frame is lost.
    pub(crate) lose_every: Option<u64>,
    /// Every how manieth frame is sent twice.
    pub(crate) repeat_every: Option<u64>,
    /// Every how manieth frame has its last byte changed.
    pub(crate) change_every: Option<u64>,
    /// How long each frame is held, either way.
    pub(crate) hold: Duration,
}

/// A bench with a faulty device, or none where the machine cannot have one.
pub(crate) struct Impaired {
    pub(crate) bench: Bench,
    stop: Arc<AtomicBool>,
    forwarder: Option<JoinHandle<()>>,
}

impl Impaired {
    pub(crate) fn build(faults: Faults) -> Option<Self> {
        if let Err(missing) =
            testbed::check(&DeviceKind::LinuxBridge.requirements("comporta".as_ref()))
        {
            println!("skipped: {missing}");
            return None;
        }
        let options = DeviceOptions {
            kind: DeviceKind::LinuxBridge,
            directory: PathBuf::from("."),
            cores: Vec::new(),
            comporta: PathBuf::new(),
        };
        let clock = Clock::start();
        let bench = Bench::build(&Spawner::new().unwrap(), &clock, &options).unwrap();
        let inside = bench.device_namespace();
        // The kernel's bridge makes room for a worse one.
        inside.remove("br0").unwrap();
        for host in [bench.client(), bench.server()] {
            let off = testbed::Offload::TxChecksum;
            host.namespace
                .set_offload(host.interface, off, false)
                .unwrap();
        }
        let ports = ["p1", "p2"].map(|port| inside.raw_receiver(port).unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let forwarder = thread::spawn({
            let stop = Arc::clone(&stop);
            move || forward(&ports, faults, &clock, &stop)
        });
        Some(Self {
            bench,
            stop,
            forwarder: Some(forwarder),
        })
    }
}

impl Drop for Impaired {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(forwarder) = self.forwarder.take() {
            let _ = forwarder.join();
        }
    }
}

fn forward(ports: &[RawSocket; 2], faults: Faults, clock: &Clock, stop: &AtomicBool) {
    let mut room = [0; 2048];
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        for (from, to) in [(0, 1), (1, 0)] {
            let Ok(Some(length)) = ports[from].receive(&mut room) else {
                continue;
            };
            let frame = &mut room[..length];
            let received = clock.now();
            while clock.now().since(received) < faults.hold {}
            if from == 1 {
                send(&ports[to], frame, 1);
                continue;
            }
            count += 1;
            let is = |every: Option<u64>| every.is_some_and(|every| count % every == 0);
            if is(faults.change_every) {
                frame[length - 1] ^= 0xff;
            }
            let copies = match (is(faults.lose_every), is(faults.repeat_every)) {
                (true, _) => 0,
                (false, true) => 2,
                (false, false) => 1,
            };
            send(&ports[to], frame, copies);
        }
    }
}

fn send(port: &RawSocket, frame: &[u8], copies: usize) {
    for _ in 0..copies {
        port.send(&[frame]).unwrap();
    }
}
