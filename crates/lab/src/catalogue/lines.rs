//! The instrument's ends at all hosts of a station, for experiments that offer one load after
//! the other by the same ends, look at single frames, or end the device meanwhile.

use std::ops::Range;
use std::time::Duration;

use testbed::{Bench, Host};
use trafficgen::template::Party;
use trafficgen::{
    Arrivals, MeasureError, Measurement, Refusal, Request, TestPort, Threads, measure,
};

use super::offered::on_tester;
use crate::tools::Tools;
use crate::trial::TrialError;

/// Who offers load: the ends at a station's hosts, or in a test ends in memory.
pub(super) trait Offer {
    /// Offers what is asked for, once.
    fn offer(&mut self, request: &Request) -> Result<Measurement, TrialError>;
}

/// How often a load is offered that the tester did not quite reach: now and then the machine
/// takes its core away for a moment.
const ATTEMPTS: usize = 3;
/// How long stragglers are waited for: nothing here holds frames for so long, and each trial of a
/// search that loses something waits it out.
pub(super) const DRAIN: Duration = Duration::from_millis(100);
/// Rounds in which an end is emptied of what came late of the load before, of 64 frames each.
const ROUNDS: usize = 16_384;

/// Offers `request`, again if the tester fell short.
pub(super) fn offer_well(
    offer: &mut dyn Offer,
    request: &Request,
) -> Result<Measurement, TrialError> {
    let mut measured = offer.offer(request)?;
    for _ in 1..ATTEMPTS {
        if !fell_short(&measured) {
            break;
        }
        measured = offer.offer(request)?;
    }
    Ok(measured)
}

/// Whether less was offered than was to be.
pub(super) fn fell_short(measured: &Measurement) -> bool {
    let short = |refusal: &Refusal| matches!(refusal, Refusal::Shortfall { .. });
    measured.refusals.iter().any(short)
}

/// Whether the tester itself lost frames, or its clocks stepped: what then was measured says
/// nothing.
pub(super) fn is_void(measured: &Measurement) -> Option<String> {
    let short = |refusal: &&Refusal| !matches!(refusal, Refusal::Shortfall { .. });
    measured
        .refusals
        .iter()
        .find(short)
        .map(ToString::to_string)
}

/// The ends at all hosts of a bench, in their order.
pub(super) struct Lines<'a> {
    ends: Vec<TestPort>,
    tools: &'a Tools<'a>,
}

impl<'a> Lines<'a> {
    /// Opens them, for frames of up to `frame_bytes` with their checksums.
    pub(super) fn open(
        bench: &Bench,
        frame_bytes: u16,
        tools: &'a Tools<'a>,
    ) -> Result<Self, TrialError> {
        let open = |host: &Host| {
            TestPort::packet(&host.namespace, host.interface, frame_bytes, *tools.clock)
        };
        let ends: Result<_, _> = bench.hosts().iter().map(open).collect();
        Ok(Self { ends: ends?, tools })
    }
}

impl Offer for Lines<'_> {
    fn offer(&mut self, request: &Request) -> Result<Measurement, TrialError> {
        let tools = self.tools;
        let mut request = request.clone();
        if let [send, receive, ..] = *tools.cores.tester.as_slice() {
            request.threads = Threads::Pair { send, receive };
        }
        let ends = &mut self.ends;
        let measured = on_tester(tools, || {
            empty(ends)?;
            let measured = measure(ends, &request, tools.clock, tools.interrupt);
            measured.map_err(refused)
        });
        measured?
    }
}

/// Forgets what has come so far.
fn empty(ends: &mut [TestPort]) -> Result<(), TrialError> {
    let mut arrivals = Arrivals::new();
    for end in ends {
        for _ in 0..ROUNDS {
            arrivals.clear();
            let received = end.receive.receive(&mut arrivals);
            received.map_err(|error| TrialError::Impossible(error.to_string()))?;
            if arrivals.is_empty() {
                break;
            }
        }
    }
    Ok(())
}

/// Lets a learning device see the instrument's station at each host (RFC 2544, 23): that of the
/// host's number from 1, by a frame for all. Only those of `hosts`, from 0, are shown.
pub(super) fn greet(bench: &Bench, hosts: Range<usize>) -> Result<(), TrialError> {
    let all = bench.hosts().iter().zip(1..);
    for (host, number) in all.take(hosts.end).skip(hosts.start) {
        let socket = host.namespace.raw_sender(host.interface)?;
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&[0xff; 6]);
        frame[6..12].copy_from_slice(&Party::numbered(number).mac);
        // A type for experiments (IEEE 802, 9.2.3), which nobody answers.
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let sent = socket.send(&[frame]);
        sent.map_err(testbed::Failure::to("introduce the tester's stations"))?;
    }
    Ok(())
}

/// Why there is no measurement, as a test has it.
pub(super) fn refused(error: MeasureError) -> TrialError {
    match error {
        MeasureError::Interrupted => TrialError::Interrupted,
        error => TrialError::Impossible(error.to_string()),
    }
}

/// Ends in memory, on simulated time.
#[cfg(test)]
pub(super) mod memory {
    use std::io;
    use std::ops::Range;
    use std::sync::Arc;

    use super::{Measurement, Offer, Request, TrialError, measure, refused};
    use testbed::Interrupt;
    use trafficgen::memory::{Path, SimulatedPort, SimulatedTime, cable};
    use trafficgen::{SendMethod, TestPort, Transmit};

    /// What a step of the simulated clock takes.
    pub(in crate::catalogue) const STEP_NS: u64 = 1_000;

    /// Offers loads to ends in memory.
    pub(in crate::catalogue) struct Simulated {
        pub(in crate::catalogue) ends: Vec<TestPort>,
        pub(in crate::catalogue) time: Arc<SimulatedTime>,
    }

    impl Offer for Simulated {
        fn offer(&mut self, request: &Request) -> Result<Measurement, TrialError> {
            let measured = measure(&mut self.ends, request, &*self.time, &Interrupt::never());
            measured.map_err(refused)
        }
    }

    /// A cable of which the way forth is dead for some time, in nanoseconds by its clock from
    /// now on.
    pub(in crate::catalogue) fn dead_for(dead: Range<u64>, path: Path) -> Simulated {
        let time = SimulatedTime::new(STEP_NS);
        let now = time.look_ns();
        let ([mut one, other], [forth, _]) = cable(&time, path, Path::default());
        one.transmit = Box::new(Dying {
            way: forth,
            time: Arc::clone(&time),
            dead: now + dead.start..now + dead.end,
        });
        Simulated {
            ends: vec![one, other],
            time,
        }
    }

    /// A way that swallows frames for some time.
    struct Dying {
        way: SimulatedPort,
        time: Arc<SimulatedTime>,
        dead: Range<u64>,
    }

    impl Transmit for Dying {
        fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
            match self.dead.contains(&self.time.look_ns()) {
                true => Ok(frames.len()),
                false => self.way.send(frames),
            }
        }

        fn send_method(&self) -> SendMethod {
            SendMethod::Memory
        }
    }
}
