//! Errors of opening a port, with their remedies.

use std::num::NonZeroUsize;

use ports::af_packet::AfPacket;
use ports::tap::{Tap, TapOptions};
use ports::{OpenError, Port};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::net::{ONE, in_namespace, ip, name};

const TAP: TapOptions = TapOptions {
    address: None,
    queues: ONE,
};

fn error_text(opened: Result<impl Port, OpenError>) -> String {
    match opened {
        Ok(_) => panic!("the port was opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn unknown_interface_is_refused() {
    in_namespace(|| {
        assert_eq!(
            error_text(AfPacket::open(&name("eth7"), ONE)),
            "interface eth7 does not exist: `ip link` lists the existing ones"
        );
    });
}

#[test]
fn interface_without_ethernet_is_refused() {
    in_namespace(|| {
        ip("tuntap add dev l3 mode tun");
        assert_eq!(
            error_text(AfPacket::open(&name("l3"), ONE)),
            "l3 is not an Ethernet interface: its frames have no MAC addresses"
        );
    });
}

#[test]
fn queue_count_above_limit_is_refused() {
    in_namespace(|| {
        let queues = NonZeroUsize::new(65).unwrap();
        let wanted = "lo cannot have 65 queues: the maximum is 64";
        assert_eq!(error_text(AfPacket::open(&name("lo"), queues)), wanted);
        let options = TapOptions { queues, ..TAP };
        assert_eq!(error_text(Tap::create(&name("lo"), options)), wanted);
    });
}

#[test]
fn tap_name_in_use_is_refused() {
    in_namespace(|| {
        ip("link add br0 type veth peer name p");
        let expected = "cannot create br0: an interface with this name exists: choose another name, \
                        or remove it with `ip link delete br0` if nothing uses it";
        assert_eq!(error_text(Tap::create(&name("br0"), TAP)), expected);
        let first = Tap::create(&name("tap0"), TAP).unwrap();
        assert_eq!(
            error_text(Tap::create(&name("tap0"), TAP)),
            expected.replace("br0", "tap0")
        );
        drop(first);
        assert!(Tap::create(&name("tap0"), TAP).is_ok());
    });
}

/// Drops all capabilities of the calling thread except `kept`.
pub(crate) fn retain_capabilities(kept: CapabilitySet) {
    let mut sets = capabilities(None).unwrap();
    sets.effective &= kept;
    set_capabilities(None, sets).unwrap();
}

#[test]
fn missing_privilege_is_named_with_remedy() {
    in_namespace(|| {
        ip("link add left type veth peer name right");
        // This thread belongs to the namespace of the test, and ends with it.
        retain_capabilities(CapabilitySet::NET_RAW | CapabilitySet::SYS_ADMIN);
        assert!(AfPacket::open(&name("left"), ONE).is_ok());
        retain_capabilities(CapabilitySet::empty());
        let missing = |whom, what| {
            format!(
                "cannot open {whom} without {what}: run as root, or give the program the \
                 capability with `setcap cap_net_admin,cap_net_raw+ep`"
            )
        };
        assert_eq!(
            error_text(AfPacket::open(&name("left"), ONE)),
            missing("left", "CAP_NET_RAW")
        );
        let tap = error_text(Tap::create(&name("tap0"), TAP));
        assert_eq!(tap, missing("tap0", "CAP_NET_ADMIN"));
    });
}
