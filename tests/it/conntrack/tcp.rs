//! TCP: handshakes, closes, resets, windows, and lost and reordered segments.

use super::scripts::{IPV4, IPV6, Script, ScriptStep, back, compare, out};
use super::trackers::FIREWALL;
use super::trackers::TrackerKind::Kernel;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};

pub(crate) const TESTS: &[SystemTest] = tests![
    handshake_and_close_pass_the_same_states,
    tcp_over_ipv6_passes_the_same_states,
    simultaneous_open_establishes_a_connection,
    reset_ends_a_connection,
    half_open_connection_stays,
    reordered_and_repeated_segments_pass,
    segments_out_of_window_are_invalid,
    unknown_segments_are_treated_alike,
];

/// A handshake, data and its acknowledgement, and a close from both sides.
const WHOLE_CONNECTION: &[ScriptStep] = &[
    out("tcp(src=1000,dst=80,seq=100,flags=S,window=5000)"),
    back("tcp(src=80,dst=1000,seq=900,ack=101,flags=SA,window=5000)"),
    out("tcp(src=1000,dst=80,seq=101,ack=901,flags=A,window=5000)"),
    out("tcp(src=1000,dst=80,seq=101,ack=901,flags=PA,window=5000) / data(100)"),
    back("tcp(src=80,dst=1000,seq=901,ack=201,flags=A,window=5000)"),
    back("tcp(src=80,dst=1000,seq=901,ack=201,flags=PA,window=5000) / data(1000)"),
    out("tcp(src=1000,dst=80,seq=201,ack=1901,flags=A,window=5000)"),
    out("tcp(src=1000,dst=80,seq=201,ack=1901,flags=FA,window=5000)"),
    back("tcp(src=80,dst=1000,seq=1901,ack=202,flags=A,window=5000)"),
    back("tcp(src=80,dst=1000,seq=1901,ack=202,flags=FA,window=5000)"),
    out("tcp(src=1000,dst=80,seq=202,ack=1902,flags=A,window=5000)"),
];

fn handshake_and_close_pass_the_same_states(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: WHOLE_CONNECTION,
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

fn tcp_over_ipv6_passes_the_same_states(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV6,
        steps: WHOLE_CONNECTION,
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

fn simultaneous_open_establishes_a_connection(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: &[
            out("tcp(src=1000,dst=2000,seq=100,flags=S,window=5000)"),
            // A SYN of the other side has the state "new", which the rules do not permit there.
            back("tcp(src=2000,dst=1000,seq=900,flags=S,window=5000)")
                .dropped()
                .except(Kernel, "any packet of the reply direction is established"),
            out("tcp(src=1000,dst=2000,seq=100,ack=901,flags=SA,window=5000)"),
            back("tcp(src=2000,dst=1000,seq=900,ack=101,flags=SA,window=5000)"),
            out("tcp(src=1000,dst=2000,seq=101,ack=901,flags=PA,window=5000) / data(10)"),
            back("tcp(src=2000,dst=1000,seq=901,ack=111,flags=A,window=5000)"),
        ],
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

fn reset_ends_a_connection(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: &[
            // A reset within the window of an established connection.
            out("tcp(src=1001,dst=80,seq=100,flags=S,window=5000)"),
            back("tcp(src=80,dst=1001,seq=900,ack=101,flags=SA,window=5000)"),
            out("tcp(src=1001,dst=80,seq=101,ack=901,flags=A,window=5000)"),
            back("tcp(src=80,dst=1001,seq=901,ack=101,flags=RA,window=0)"),
            // A SYN opens the connection again.
            out("tcp(src=1001,dst=80,seq=70000,flags=S,window=5000)")
                .except(Kernel, "its state follows with the reply to the SYN"),
            back("tcp(src=80,dst=1001,seq=90000,ack=70001,flags=SA,window=5000)"),
            // The reply to a SYN to a closed port.
            out("tcp(src=1000,dst=81,seq=100,flags=S,window=5000)"),
            back("tcp(src=81,dst=1000,seq=0,ack=101,flags=RA,window=0)")
                .except(Kernel, "it removes a connection whose SYN is refused"),
        ],
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

fn half_open_connection_stays(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: &[
            // The SYN is sent again; the reply is missing.
            out("tcp(src=1000,dst=80,seq=100,flags=S,window=5000)"),
            out("tcp(src=1000,dst=80,seq=100,flags=S,window=5000)"),
            back("tcp(src=80,dst=1000,seq=900,ack=101,flags=SA,window=5000)"),
            // The second station has restarted: its reply to data is a reset.
            out("tcp(src=1000,dst=80,seq=101,ack=901,flags=A,window=5000)"),
            out("tcp(src=1000,dst=80,seq=101,ack=901,flags=PA,window=5000) / data(10)"),
            back("tcp(src=80,dst=1000,seq=901,flags=R,window=0)"),
            // Connections from outside are not tracked.
            back("tcp(src=3000,dst=22,seq=5,flags=S,window=5000)").dropped(),
        ],
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

fn reordered_and_repeated_segments_pass(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: &[
            out("tcp(src=1000,dst=80,seq=100,flags=S,window=5000)"),
            back("tcp(src=80,dst=1000,seq=900,ack=101,flags=SA,window=5000)"),
            out("tcp(src=1000,dst=80,seq=101,ack=901,flags=A,window=5000)"),
            // The second segment overtakes the first; then the second is repeated.
            out("tcp(src=1000,dst=80,seq=1101,ack=901,flags=A,window=5000) / data(1000)"),
            back("tcp(src=80,dst=1000,seq=901,ack=101,flags=A,window=5000)"),
            out("tcp(src=1000,dst=80,seq=101,ack=901,flags=A,window=5000) / data(1000)"),
            back("tcp(src=80,dst=1000,seq=901,ack=2101,flags=A,window=5000)"),
            out("tcp(src=1000,dst=80,seq=1101,ack=901,flags=A,window=5000) / data(1000)"),
            // A FIN overtakes the last data.
            out("tcp(src=1000,dst=80,seq=2601,ack=901,flags=FA,window=5000)"),
            out("tcp(src=1000,dst=80,seq=2101,ack=901,flags=A,window=5000) / data(500)"),
            back("tcp(src=80,dst=1000,seq=901,ack=2602,flags=A,window=5000)"),
        ],
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

fn segments_out_of_window_are_invalid(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: &[
            out("tcp(src=1000,dst=80,seq=100,flags=S,window=5000)"),
            back("tcp(src=80,dst=1000,seq=900,ack=101,flags=SA,window=5000)"),
            out("tcp(src=1000,dst=80,seq=101,ack=901,flags=A,window=5000)"),
            // Data beyond the window, and an acknowledgement of data that were not sent.
            out("tcp(src=1000,dst=80,seq=900101,ack=901,flags=A,window=5000) / data(10)").dropped(),
            back("tcp(src=80,dst=1000,seq=901,ack=800101,flags=A,window=5000)").dropped(),
            // A blind reset.
            back("tcp(src=80,dst=1000,seq=500901,flags=R,window=0)").dropped(),
            // Valid segments still pass.
            out("tcp(src=1000,dst=80,seq=101,ack=901,flags=PA,window=5000) / data(10)"),
            // A wrong checksum.
            out("tcp(src=1000,dst=80,seq=111,ack=901,flags=A,window=5000,checksum=0x1234)")
                .dropped(),
        ],
        unlisted: None,
    };
    compare(context, &FIREWALL, &script)
}

/// Reason for which the kernel treats a reset or a FIN of an unknown connection differently.
const UNKNOWN: &str = "a reset or a FIN begins no connection, and is invalid";

fn unknown_segments_are_treated_alike(context: &TestContext) -> TestResult {
    let script = Script {
        headers: IPV4,
        steps: &[
            // A SYN-ACK, a FIN and a reset without a connection.
            out("tcp(src=1000,dst=80,seq=100,ack=1,flags=SA,window=5000)").dropped(),
            out("tcp(src=1001,dst=80,seq=100,flags=R,window=5000)").except(Kernel, UNKNOWN),
            out("tcp(src=1002,dst=80,seq=100,ack=5,flags=FA,window=5000)").except(Kernel, UNKNOWN),
            // No flags, and all of them.
            out("tcp(src=1003,dst=80,seq=100,flags=0,window=5000)").dropped(),
            out("tcp(src=1004,dst=80,seq=100,flags=FSRPAU,window=5000)").dropped(),
            // A connection that began before its tracker.
            out("tcp(src=1005,dst=80,seq=100,ack=5,flags=A,window=5000) / data(10)"),
            back("tcp(src=80,dst=1005,seq=5,ack=110,flags=A,window=5000)"),
        ],
        // The connections of the reset and of the FIN remain in the lists.
        unlisted: Some((Kernel, UNKNOWN)),
    };
    compare(context, &FIREWALL, &script)
}
