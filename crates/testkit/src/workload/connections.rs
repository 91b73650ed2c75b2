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
