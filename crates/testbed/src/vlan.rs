//! A Linux bridge with VLANs: its ports are access ports, and the interfaces `vlanN` of the bridge
//! itself (SVIs) receive the frames of VLAN N.
//!
//! A kernel may lack VLANs (`CONFIG_VLAN_8021Q`, `CONFIG_BRIDGE_VLAN_FILTERING`). There each VLAN
//! is a separate bridge called `vlanN`, which is the definition of a VLAN (IEEE 802.1Q, 8.1):
//! frames have no tag on any link here, and pass the same ports.

use rtnetlink::packet_route::link::BridgeVlanInfoFlags;
use rtnetlink::{LinkBridge, LinkBridgeVlan, LinkVlan};

use crate::{Failure, Namespace};

/// The bridge of all VLANs.
const FRONT: &str = "front";

/// Access ports of VLANs, for a bridge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessPorts<'a> {
    /// Each port with its VLAN.
    pub(crate) members: &'a [(&'a str, u16)],
    /// True to create interfaces `vlanN`.
    pub(crate) interfaces: bool,
    /// The MTU of bridge and interfaces, in bytes above Ethernet.
    pub(crate) mtu: u32,
}

impl Namespace {
    /// Creates access ports, with one VLAN-filtering bridge or with a bridge for each VLAN.
    pub(crate) fn access_ports(&self, ports: AccessPorts<'_>) -> Result<(), Failure> {
        let mut vlans: Vec<u16> = ports.members.iter().map(|(_, vlan)| *vlan).collect();
        vlans.dedup();
        if !has_vlans()? {
            for vlan in vlans {
                let of_it = ports.members.iter().filter(|(_, one)| *one == vlan);
                let names: Vec<&str> = of_it.map(|(name, _)| *name).collect();
                let name = format!("vlan{vlan}");
                self.bridge(&name, &names)?;
                self.set_mtu(&name, ports.mtu)?;
            }
            return Ok(());
        }
        self.vlan_bridge(FRONT, ports.members)?;
        self.set_mtu(FRONT, ports.mtu)?;
        if ports.interfaces {
            for vlan in vlans {
                self.vlan_interface(FRONT, vlan)?;
            }
        }
        Ok(())
    }

    /// Creates a VLAN-filtering bridge, up. `ports` become access ports: untagged frames belong to
    /// the given VLAN, and leave untagged.
    fn vlan_bridge(&self, name: &str, ports: &[(&str, u16)]) -> Result<(), Failure> {
        // No default VLAN: it would join all ports in VLAN 1.
        let message = LinkBridge::new(name)
            .vlan_filtering(true)
            .vlan_default_pvid(0)
            .build();
        self.request(format!("create the bridge {name}"), async move |handle| {
            handle.link().add(message).execute().await
        })?;
        for (port, vlan) in ports {
            self.enslave(port, name)?;
            let access = BridgeVlanInfoFlags::Pvid | BridgeVlanInfoFlags::Untagged;
            let message = LinkBridgeVlan::new(self.index(port)?.0).vlan(*vlan, access);
            let message = message.build();
            self.request(
                format!("put {port} into the VLAN {vlan}"),
                async move |handle| handle.link().set(message).execute().await,
            )?;
        }
        Ok(())
    }

    /// Creates the interface `vlanN` of VLAN N of a bridge, up.
    fn vlan_interface(&self, bridge: &str, vlan: u16) -> Result<(), Failure> {
        let index = self.index(bridge)?.0;
        let member = LinkBridgeVlan::new(index)
            .bridge_self()
            .vlan(vlan, BridgeVlanInfoFlags::empty())
            .build();
        self.request(
            format!("put {bridge} itself into the VLAN {vlan}"),
            async move |handle| handle.link().set(member).execute().await,
        )?;
        let name = format!("vlan{vlan}");
        let message = LinkVlan::new(&name, index, vlan).up().build();
        self.request(
            format!("create the interface {name}"),
            async move |handle| handle.link().add(message).execute().await,
        )
    }
}

/// Returns true if the kernel supports VLANs, found by trying.
fn has_vlans() -> Result<bool, Failure> {
    let scratch = Namespace::new()?;
    let tried = scratch.vlan_bridge(FRONT, &[]);
    Ok(tried
        .and_then(|()| scratch.vlan_interface(FRONT, 10))
        .is_ok())
}

/// Describes the implementation of VLANs on this machine.
pub(crate) fn implementation() -> &'static str {
    match has_vlans() {
        Ok(true) => "VLANs of one bridge that filters",
        _ => "a bridge for each VLAN: this kernel has no VLANs",
    }
}
