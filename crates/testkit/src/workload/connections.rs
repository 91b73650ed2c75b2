//! Workloads of tracked connections, and of the same frames without tracking.

use super::Workload;

impl Workload {
    /// A firewall that tracks `connections` UDP connections, with a frame of each direction.
    #[must_use]
    pub fn stateful(name: &'static str, connections: u32) -> Self {
        let flows = [
            "table=0,udp,actions=ct(table=1)",
            "table=1,udp,ct_state=+trk+new,actions=ct(commit),output:2",
            "table=1,udp,ct_state=+trk+est,actions=output:2",
        ];
        Self {
            frames: Self::both_directions(connections, "192.168.0.1"),
            ..Self::new(name, &flows)
        }
    }

    /// A firewall that tracks TCP connections. The frames are one connection: handshake, a request
    /// with its answer, and the close.
    #[must_use]
    pub fn sessions(name: &'static str) -> Self {
        let flows = [
            "table=0,tcp,actions=ct(table=1)",
            "table=1,tcp,ct_state=+trk+new,actions=ct(commit),output:2",
            "table=1,tcp,ct_state=+trk+est,actions=output:2",
        ];
        let sent = |segment: &str| {
            format!("eth / ipv4(src=10.0.0.1,dst=192.168.0.1) / tcp(src=1000,dst=80,{segment})")
        };
        let answered = |segment: &str| {
            format!("eth / ipv4(src=192.168.0.1,dst=10.0.0.1) / tcp(src=80,dst=1000,{segment})")
        };
        let frames = vec![
            sent("seq=100,flags=S"),
            answered("seq=500,ack=101,flags=SA"),
            sent("seq=101,ack=501,flags=A"),
            sent("seq=101,ack=501,flags=PA") + " / data(18)",
            answered("seq=501,ack=119,flags=PA") + " / data(18)",
            sent("seq=119,ack=519,flags=FA"),
            answered("seq=519,ack=120,flags=FA"),
            sent("seq=120,ack=520,flags=A"),
        ];
        Self {
            frames,
            ..Self::new(name, &flows)
        }
    }

    /// A load balancer that translates the destination of `connections` UDP connections, with a
    /// frame of each direction.
    #[must_use]
    pub fn translated(name: &'static str, connections: u32) -> Self {
        let flows = [
            "table=0,udp,actions=ct(table=1,nat)",
            "table=1,udp,ct_state=+trk+new,actions=ct(commit,nat(dst=172.16.0.1)),output:2",
            "table=1,udp,ct_state=+trk+est,actions=output:2",
        ];
        Self {
            frames: Self::both_directions(connections, "172.16.0.1"),
            ..Self::new(name, &flows)
        }
    }

    /// The frames of [`stateful`](Self::stateful), and two tables that track nothing.
    #[must_use]
    pub fn stateless(name: &'static str, connections: u32) -> Self {
        let flows = [
            "table=0,udp,actions=resubmit(,1)",
            "table=1,udp,ct_state=-trk,actions=output:2",
        ];
        Self {
            frames: Self::both_directions(connections, "192.168.0.1"),
            ..Self::new(name, &flows)
        }
    }

    /// Returns the frames of clients to a server, and of the `responder` to the clients.
    fn both_directions(connections: u32, responder: &str) -> Vec<String> {
        let frames = |n: u32| {
            let [_, a, b, c] = n.to_be_bytes();
            let client = format!("10.{a}.{b}.{c}");
            [
                format!(
                    "eth / ipv4(src={client},dst=192.168.0.1) / udp(src=1000,dst=53) / data(18)"
                ),
                format!(
                    "eth / ipv4(src={responder},dst={client}) / udp(src=53,dst=1000) / data(18)"
                ),
            ]
        };
        (1..=connections).flat_map(frames).collect()
    }
}
