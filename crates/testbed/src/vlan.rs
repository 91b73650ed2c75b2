//! A Linux bridge with VLANs: each of its ports an access port, and interfaces `vlanN` of the
//! bridge itself (SVIs) that hear what comes by the ports of VLAN N.
//!
//! A kernel may have no VLANs (`CONFIG_VLAN_8021Q`, `CONFIG_BRIDGE_VLAN_FILTERING`). There each
//! VLAN is a bridge of its own, called `vlanN`, which is what a VLAN is (IEEE 802.1Q, 8.1):
//! frames bear no tag on any cable here, and take the same way.

use rtnetlink::packet_route::link::BridgeVlanInfoFlags;
use rtnetlink::{LinkBridge, LinkBridgeVlan, LinkVlan};

use crate::{Failure, Namespace};

/// The bridge of all VLANs.
const FRONT: &str = "front";

/// Access ports of VLANs, to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessPorts<'a> {
    /// Each port with its VLAN.
    pub(crate) members: &'a [(&'a str, u16)],
    /// Whether there are to be interfaces `vlanN`.
    pub(crate) interfaces: bool,
    /// The MTU of bridge and interfaces, in bytes above Ethernet.
    pub(crate) mtu: u32,
}

impl Namespace {
    /// Makes access ports, by one bridge that filters, or by a bridge for each VLAN.
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

    /// Makes a bridge that filters by VLAN, up. `ports` become access ports: frames without
    /// a tag belong to the VLAN beside each, and leave without one.
    fn vlan_bridge(&self, name: &str, ports: &[(&str, u16)]) -> Result<(), Failure> {
        // No VLAN unless it is said: the default would join all ports by VLAN 1.
        let message = LinkBridge::new(name)
            .vlan_filtering(true)
            .vlan_default_pvid(0)
            .build();
        self.request(format!("make the bridge {name}"), async move |handle| {
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

    /// Makes the interface `vlanN` of the VLAN N of a bridge, up.
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
        self.request(format!("make the interface {name}"), async move |handle| {
            handle.link().add(message).execute().await
        })
    }
}

/// Whether the kernel has VLANs, found by trying.
fn has_vlans() -> Result<bool, Failure> {
    let scratch = Namespace::new()?;
    let tried = scratch.vlan_bridge(FRONT, &[]);
    Ok(tried
        .and_then(|()| scratch.vlan_interface(FRONT, 10))
        .is_ok())
}

/// How VLANs are made here, in words.
pub(crate) fn how() -> &'static str {
    match has_vlans() {
        Ok(true) => "VLANs of one bridge that filters",
        _ => "a bridge for each VLAN: this kernel has no VLANs",
    }
}
