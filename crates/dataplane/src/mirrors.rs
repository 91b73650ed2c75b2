//! A bridge's mirrors, as workers read them: the selection of frames, and the output of copies
//! (ovs-vswitchd.conf.db(5), the table `Mirror`). Compiled once by the control thread; a bridge
//! without mirrors has none of it.
//!
//! A mirror may copy a frame on ingress, unmodified, and on each egress, as it leaves; but one
//! output receives only one copy of a frame. The caller makes and sends the copies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::PortNo;
use packet::{Frame, Link};
use pipeline::Pipeline;

use super::switching::SwitchingView;
use super::vlans::{ArrivalTags, FrameVlans, admit, carries, leave};
use config::{LogicalPort, MIRRORS_MAX, MirrorConfig, MirrorOutput};

#[cfg(test)]
mod tests;

/// A set of a bridge's mirrors, one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorSet(u32);

impl MirrorSet {
    const fn one(place: usize) -> Self {
        Self(1 << place)
    }

    const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    const fn is_none(self) -> bool {
        self.0 == 0
    }

    const fn has(self, place: usize) -> bool {
        self.0 >> place & 1 != 0
    }

    /// Returns the bits, for the continuation of a paused packet.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set with these bits.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// The counters of a mirror. All workers write to them: the cost is small beside that of a copy.
#[derive(Debug, Default)]
struct MirrorCounts {
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// A compiled mirror.
#[derive(Debug)]
struct CompiledMirror {
    config: MirrorConfig,
    /// The mirrors with the same output, including itself.
    twins: MirrorSet,
    counts: Arc<MirrorCounts>,
}

/// The roles of a port in mirrors.
#[derive(Clone, Copy, Debug, Default)]
struct PortMirrors {
    arriving: MirrorSet,
    leaving: MirrorSet,
    is_output: bool,
}

/// The direction of a frame at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorDirection {
    /// Ingress.
    In,
    /// Egress.
    Out,
}

/// The mirrors of a bridge.
#[derive(Debug)]
pub struct Mirrors {
    plans: Vec<CompiledMirror>,
    /// The mirrors that select all ports.
    everywhere: MirrorSet,
    ports: BTreeMap<PortNo, PortMirrors>,
}

impl Mirrors {
    /// Compiles the mirrors; none if there are none. Mirrors that `before` had too keep their
    /// counters.
    pub fn compile(configs: &[MirrorConfig], before: Option<&Self>) -> Option<Arc<Self>> {
        let configs = &configs[..configs.len().min(MIRRORS_MAX)];
        let mut ports: BTreeMap<PortNo, PortMirrors> = BTreeMap::new();
        let mut everywhere = MirrorSet::default();
        let mut plans = Vec::new();
        for (place, config) in configs.iter().enumerate() {
            let own = MirrorSet::one(place);
            for port in &config.ingress_ports {
                let roles = ports.entry(*port).or_default();
                roles.arriving = roles.arriving.with(own);
            }
            for port in &config.egress_ports {
                let roles = ports.entry(*port).or_default();
                roles.leaving = roles.leaving.with(own);
            }
            if let MirrorOutput::Port(members) = &config.output {
                for port in members {
                    ports.entry(*port).or_default().is_output = true;
                }
            }
            if config.all {
                everywhere = everywhere.with(own);
            }
            let twins = configs.iter().enumerate();
            let twins = twins.filter(|(_, other)| other.output == config.output);
            plans.push(CompiledMirror {
                config: config.clone(),
                twins: twins.fold(own, |twins, (place, _)| twins.with(MirrorSet::one(place))),
                counts: before
                    .and_then(|before| before.plan(&config.key))
                    .map(|plan| Arc::clone(&plan.counts))
                    .unwrap_or_default(),
            });
        }
        (!plans.is_empty()).then(|| {
            Arc::new(Self {
                plans,
                everywhere,
                ports,
            })
        })
    }

    fn plan(&self, key: &str) -> Option<&CompiledMirror> {
        self.plans.iter().find(|plan| plan.config.key == key)
    }

    /// Returns the copied frames and bytes of each mirror, by its key.
    pub fn counts(&self) -> impl Iterator<Item = (&str, (u64, u64))> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.plans
            .iter()
            .map(move |CompiledMirror { config, counts, .. }| {
                let counts = (read(&counts.packets), read(&counts.bytes));
                (config.key.as_str(), counts)
            })
    }

    /// Returns the ports that are reserved for mirror output.
    pub fn outputs(&self) -> impl Iterator<Item = PortNo> {
        let outputs = self.ports.iter().filter(|(_, roles)| roles.is_output);
        outputs.map(|(port, _)| *port)
    }

    /// Returns true if a mirror selects frames by their VLAN.
    pub fn select_vlans(&self) -> bool {
        self.plans.iter().any(|plan| plan.config.vlans.is_some())
    }

    /// Returns whether a port is reserved for mirror output.
    pub fn is_output(&self, port: PortNo) -> bool {
        self.ports.get(&port).is_some_and(|roles| roles.is_output)
    }

    /// Returns the mirrors that select frames of a port in this direction.
    fn at(&self, port: PortNo, passing: MirrorDirection) -> MirrorSet {
        let roles = self.ports.get(&port).copied().unwrap_or_default();
        self.everywhere.with(match passing {
            MirrorDirection::In => roles.arriving,
            MirrorDirection::Out => roles.leaving,
        })
    }
}

impl CompiledMirror {
    fn selects(&self, vid: u16) -> bool {
        let vlans = self.config.vlans.as_ref();
        vlans.is_none_or(|vlans| vlans.has(vid))
    }

    fn count(&self, frame: &Frame) {
        let MirrorCounts { packets, bytes } = &*self.counts;
        packets.fetch_add(frame.wire_frames(), Ordering::Relaxed);
        bytes.fetch_add(frame.wire_bytes(), Ordering::Relaxed);
    }
}

/// The maker and sender of copies.
pub trait MirrorSink {
    /// Copies a frame; none if there is no buffer.
    fn copy(&mut self, frame: &Frame) -> Option<Frame>;

    /// Sends a copy to a port, truncated to `snaplen` bytes.
    fn send(&mut self, port: PortNo, copy: Frame, snaplen: Option<u16>);

    /// Releases a copy that cannot take its tag.
    fn release(&mut self, copy: Frame);
}

/// The inputs of mirroring for one frame.
#[derive(Clone, Copy)]
pub struct MirrorContext<'a> {
    /// The mirrors.
    pub mirrors: &'a Mirrors,
    /// The bridge's ports.
    pub pipeline: &'a Pipeline,
    /// Settings of `NORMAL` for the ports; none if all have defaults.
    pub switching: Option<&'a SwitchingView>,
    /// The ingress port of the frame.
    pub from: PortNo,
}

impl MirrorContext<'_> {
    /// Returns whether any mirror that is not in `had` selects frames of a port in this direction.
    #[inline]
    pub fn is_watched(&self, port: PortNo, passing: MirrorDirection, copied: MirrorSet) -> bool {
        !self.mirrors.at(port, passing).without(copied).is_none()
    }

    /// Copies a frame at a port to the mirrors that select it and are not in `had`. A copy is a
    /// frame on egress too, which other mirrors may copy.
    pub fn mirror(
        &self,
        frame: &Frame,
        (at, passing): (PortNo, MirrorDirection),
        copied: &mut MirrorSet,
        sink: &mut impl MirrorSink,
    ) {
        let due = self.mirrors.at(at, passing).without(*copied);
        if due.is_none() {
            return;
        }
        let Ok(link) = Link::parse(frame.bytes()) else {
            return;
        };
        let seen = self
            .switching
            .map(|switching| switching.config().vlan_limit);
        let ingress_tags = ArrivalTags::of(&link, frame.bytes(), seen.unwrap_or_default());
        let Some(within) = admit(self.logical(at), ingress_tags) else {
            return;
        };
        for (place, plan) in self.mirrors.plans.iter().enumerate() {
            if !due.has(place) || copied.has(place) || !plan.selects(within.vid) {
                continue;
            }
            *copied = copied.with(plan.twins);
            let (exits, within) = self.exits(&plan.config.output, &link, within);
            if !exits.is_empty() {
                plan.count(frame);
            }
            for port in exits {
                let Some(mut copy) = sink.copy(frame) else {
                    continue;
                };
                let retag = leave(self.logical(port), &within);
                if !retag.change(&mut copy) {
                    sink.release(copy);
                    continue;
                }
                self.mirror(&copy, (port, MirrorDirection::Out), copied, sink);
                sink.send(port, copy, plan.config.snaplen);
            }
        }
    }

    /// Returns the ports of copies of a frame in these VLANs, and the VLANs of the copies.
    fn exits(
        &self,
        output: &MirrorOutput,
        link: &Link,
        within: FrameVlans,
    ) -> (Vec<PortNo>, FrameVlans) {
        match output {
            MirrorOutput::Port(members) => {
                let port = members.iter().copied();
                let port = port.filter(|port| self.sends(*port)).take(1);
                (port.collect(), within)
            }
            MirrorOutput::Vlan(into) if *into != within.vid && !link.dst.is_bridge_reserved() => {
                let ports = self.pipeline.ports().map(|(port, _)| port);
                let within = within.moved(*into);
                let exits = ports.filter(|port| self.takes(*port, &within));
                (exits.collect(), within)
            }
            MirrorOutput::Vlan(_) => (Vec::new(), within),
        }
    }

    /// Returns whether `port` sends copies in these VLANs; of a bond only the first usable member
    /// does.
    fn takes(&self, port: PortNo, within: &FrameVlans) -> bool {
        let sends = |port: &PortNo| self.sends(*port);
        let logical = self.logical(port);
        let is_first = match logical {
            None => sends(&port),
            Some(logical) => logical.members.iter().find(|port| sends(port)) == Some(&port),
        };
        is_first && carries(logical, within) && !self.mirrors.is_output(port)
    }

    /// Returns whether a port exists, may send, and is not protected from the ingress port.
    fn sends(&self, port: PortNo) -> bool {
        self.pipeline.check_egress(self.from, port).is_ok()
    }

    fn logical(&self, port: PortNo) -> Option<&LogicalPort> {
        self.switching?.port(port)
    }
}
