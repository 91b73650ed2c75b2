//! The choice of a dummy's transmit queue (ovs-vswitchd.conf.db(5), `other_config:tx-steering`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU16;

use packet::{Depth, Frame, Headers, Network, Transport};

/// The choice of the transmit queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TxSteering {
    /// Each worker uses one queue.
    #[default]
    Thread,
    /// The flow of a frame decides.
    Hash,
}

impl TxSteering {
    /// Returns the queue of `frame`, which the worker with this index sends.
    pub(super) fn queue(self, frame: &Frame, worker: usize, queues: NonZeroU16) -> usize {
        let queues = usize::from(queues.get());
        match self {
            _ if queues == 1 => 0,
            Self::Thread => worker % queues,
            Self::Hash => flow_hash(frame) as usize % queues,
        }
    }
}

/// Returns a hash of addresses and ports, equal for all frames of a flow.
fn flow_hash(frame: &Frame) -> u32 {
    let mut hasher = DefaultHasher::new();
    if let Ok(headers) = Headers::parse(frame, Depth::Transport) {
        match &headers.network {
            Network::Ipv4(ip) => (ip.src, ip.dst).hash(&mut hasher),
            Network::Ipv6(ip) => (ip.src, ip.dst).hash(&mut hasher),
            _ => frame.bytes().get(..12).hash(&mut hasher),
        }
        match &headers.transport {
            Transport::Tcp(tcp) => (tcp.src, tcp.dst).hash(&mut hasher),
            Transport::Udp(udp) => (udp.src, udp.dst).hash(&mut hasher),
            Transport::Sctp(sctp) => (sctp.src, sctp.dst).hash(&mut hasher),
            _ => {}
        }
    } else {
        frame.bytes().get(..12).hash(&mut hasher);
    }
    u32::try_from(hasher.finish() >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a UDP frame to this port.
    fn udp_to(port: u8) -> Frame {
        let mut bytes = [0; 60];
        bytes[12] = 8;
        // IPv4, 28 bytes, UDP.
        (bytes[14], bytes[17], bytes[22], bytes[23]) = (0x45, 28, 64, 17);
        (bytes[37], bytes[39]) = (port, 8);
        Frame::from_bytes(&bytes)
    }

    #[test]
    fn hash_steering_spreads_flows_and_thread_steering_workers() {
        let two = NonZeroU16::new(2).expect("two");
        let queue = |steering: TxSteering, port, worker| steering.queue(&udp_to(port), worker, two);
        let queues: Vec<_> = (1..=100)
            .map(|port| queue(TxSteering::Hash, port, 0))
            .collect();
        assert!((20..=80).contains(&queues.iter().sum::<usize>()));
        assert_eq!(queue(TxSteering::Hash, 7, 0), queue(TxSteering::Hash, 7, 1));
        assert_eq!(queue(TxSteering::Thread, 7, 3), 1);
        assert_eq!(queue(TxSteering::Thread, 9, 3), 1);
        assert_eq!(TxSteering::Hash.queue(&udp_to(1), 1, NonZeroU16::MIN), 0);
    }
}
