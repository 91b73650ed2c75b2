//! What cannot be opened says what to do about it.

use std::num::NonZeroUsize;

use ports::af_packet::AfPacket;
use ports::tap::{Options, Tap};
use ports::{OpenError, Port};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::net::{ONE, ip, name, scene};

const TAP: Options = Options {
    address: None,
    queues: ONE,
};

fn refusal(opened: Result<impl Port, OpenError>) -> String {
    match opened {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_unknown_interface() {
    scene(|| {
        assert_eq!(
            refusal(AfPacket::open(&name("eth7"), ONE)),
            "there is no interface eth7 here: `ip link` lists those there are"
        );
    });
}

#[test]
fn an_interface_without_ethernet() {
    scene(|| {
        ip("tuntap add dev l3 mode tun");
        assert_eq!(
            refusal(AfPacket::open(&name("l3"), ONE)),
            "l3 is not an Ethernet interface: its frames have no addresses to switch by"
        );
    });
}

#[test]
fn more_queues_than_cores() {
    scene(|| {
        let queues = NonZeroUsize::new(65).unwrap();
        let wanted = "lo cannot have 65 queues: 64 are the most";
        assert_eq!(refusal(AfPacket::open(&name("lo"), queues)), wanted);
        let options = Options { queues, ..TAP };
        assert_eq!(refusal(Tap::create(&name("lo"), options)), wanted);
    });
}

#[test]
fn a_name_in_use() {
    scene(|| {
        ip("link add br0 type veth peer name p");
        let taken = "an interface br0 exists already: choose another name, or remove it with \
                     `ip link delete br0` if nothing uses it";
        assert_eq!(refusal(Tap::create(&name("br0"), TAP)), taken);
        let first = Tap::create(&name("tap0"), TAP).unwrap();
        assert_eq!(
            refusal(Tap::create(&name("tap0"), TAP)),
            taken.replace("br0", "tap0")
        );
        drop(first);
        assert!(Tap::create(&name("tap0"), TAP).is_ok());
    });
}

/// Takes all capabilities but `kept` from the calling thread.
pub(crate) fn renounce(kept: CapabilitySet) {
    let mut sets = capabilities(None).unwrap();
    sets.effective &= kept;
    set_capabilities(None, sets).unwrap();
}

#[test]
fn a_missing_privilege() {
    scene(|| {
        ip("link add left type veth peer name right");
        // This thread is the scene's own, and ends with it.
        renounce(CapabilitySet::NET_RAW | CapabilitySet::SYS_ADMIN);
        assert!(AfPacket::open(&name("left"), ONE).is_ok());
        renounce(CapabilitySet::empty());
        let missing = |whom, what| {
            format!(
                "{whom} cannot be opened without {what}: run as root, or give the program the \
                 capability with `setcap cap_net_admin,cap_net_raw+ep`"
            )
        };
        assert_eq!(
            refusal(AfPacket::open(&name("left"), ONE)),
            missing("left", "CAP_NET_RAW")
        );
        let tap = refusal(Tap::create(&name("tap0"), TAP));
        assert_eq!(tap, missing("tap0", "CAP_NET_ADMIN"));
    });
}
