//! Ends at all hosts of a setup, for experiments that offer several loads, examine single frames,
//! or stop the device during a load.

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

/// Source of load: the ends at the hosts of a setup, or simulated ends in tests.
pub(super) trait Offer {
    /// Offers the load of a request once.
    fn offer(&mut self, request: &Request) -> Result<Measurement, TrialError>;
}

/// Number of attempts to reach the intended load: sometimes the machine takes the tester's core
/// away for a moment.
const ATTEMPTS: usize = 3;
/// Time limit for late frames. No device here holds frames for so long, and every trial with losses
/// waits until the limit.
pub(super) const DRAIN: Duration = Duration::from_millis(100);
/// Greatest number of batches of 64 late frames that are discarded at an end before a load.
const ROUNDS: usize = 16_384;

/// Offers `request`; repeats it if the offered load fell short.
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

/// Returns true if the offered load is less than the intended load.
pub(super) fn fell_short(measured: &Measurement) -> bool {
    let short = |refusal: &Refusal| matches!(refusal, Refusal::Shortfall { .. });
    measured.refusals.iter().any(short)
}

/// Returns the reason if the measurement is void: the tester itself lost frames, or its clock was
/// stepped.
pub(super) fn is_void(measured: &Measurement) -> Option<String> {
    let short = |refusal: &&Refusal| !matches!(refusal, Refusal::Shortfall { .. });
    measured
        .refusals
        .iter()
        .find(short)
        .map(ToString::to_string)
}

/// Ends at all hosts of a bench, in their order.
pub(super) struct Lines<'a> {
    ends: Vec<TestPort>,
    tools: &'a Tools<'a>,
}

impl<'a> Lines<'a> {
    /// Opens the ends for frames of up to `frame_bytes` with their checksums.
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

/// Discards received frames.
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

/// Sends a broadcast frame from the tester's station at each of `hosts`, numbered from 0, so that a
/// learning device learns it (RFC 2544, 23).
pub(super) fn greet(bench: &Bench, hosts: Range<usize>) -> Result<(), TrialError> {
    let all = bench.hosts().iter().zip(1..);
    for (host, number) in all.take(hosts.end).skip(hosts.start) {
        let socket = host.namespace.raw_sender(host.interface)?;
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&[0xff; 6]);
        frame[6..12].copy_from_slice(&Party::numbered(number).mac);
        // Local experimental Ethernet type (IEEE 802, 9.2.3), to which no host replies.
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let sent = socket.send(&[frame]);
        sent.map_err(testbed::Failure::to("introduce the tester's stations"))?;
    }
    Ok(())
}

/// Converts the reason for a failed measurement.
pub(super) fn refused(error: MeasureError) -> TrialError {
    match error {
        MeasureError::Interrupted => TrialError::Interrupted,
        error => TrialError::Impossible(error.to_string()),
    }
}
