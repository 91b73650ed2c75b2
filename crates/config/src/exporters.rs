//! To whom a bridge tells what frames it has seen (ovs-vswitchd.conf.db(5), the tables `NetFlow`, `sFlow`, `IPFIX`
//! and `Flow_Sample_Collector_Set`).

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

/// What a bridge tells of its frames, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exporters {
    /// Samples, and counters of ports, by sFlow.
    pub sflow: Option<SflowConfig>,
    /// Flows of samples, by IPFIX.
    pub ipfix: Option<IpfixConfig>,
    /// Flows of which each frame is counted, by NetFlow.
    pub netflow: Option<NetflowConfig>,
    /// Sets of collectors by their numbers, to which rules tell frames, by IPFIX.
    pub sets: BTreeMap<u32, CollectorSet>,
}

/// A set of collectors, to which rules of a bridge tell frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorSet {
    /// Who is told.
    pub targets: Vec<SocketAddr>,
    /// How flows are kept.
    pub cache: IpfixCache,
}

/// A NetFlow exporter of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetflowConfig {
    /// Who is told.
    pub targets: Vec<SocketAddr>,
    /// How.
    pub settings: NetflowSettings,
}

/// How a NetFlow exporter tells of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetflowSettings {
    /// A flow is told when it is so old, whether frames of it still come or not; not for its
    /// age, if absent.
    pub active: Option<Duration>,
    /// The engine's type, and its id.
    pub engine: [u8; 2],
    /// Whether numbers of interfaces begin with the lower seven bits of the engine's id.
    pub add_id_to_interface: bool,
}

/// An sFlow agent of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SflowConfig {
    /// Who is told.
    pub targets: Vec<SocketAddr>,
    /// Whose address is the agent's: an interface's; that by which the first target is reached,
    /// if absent.
    pub agent: Option<String>,
    /// Which of the agents at that address it is.
    pub sub_agent: u32,
    /// So much of a sampled frame is told, in bytes.
    pub header: usize,
    /// One of so many frames is told of.
    pub sampling: NonZeroU32,
    /// How often counters are told; never, if absent.
    pub polling: Option<Duration>,
}

/// An IPFIX exporter of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpfixConfig {
    /// Who is told.
    pub targets: Vec<SocketAddr>,
    /// One of so many frames is sampled.
    pub sampling: NonZeroU32,
    /// The observation domain, and the point.
    pub observation: (u32, u32),
    /// How flows are kept.
    pub cache: IpfixCache,
    /// Whether frames are sampled as they come in, and as they leave.
    pub directions: [bool; 2],
}

/// How flows are kept until they are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpfixCache {
    /// A flow is told when it is so old.
    pub active: Duration,
    /// So many are kept, at most; none, if zero.
    pub flows_max: usize,
    /// What is told of the exporter in each record, if anything.
    pub name: Option<String>,
}

impl fmt::Display for Exporters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sflow = self.sflow.as_ref();
        let sflow = sflow.map(|sflow| ("sFlow", sflow.sampling, &sflow.targets));
        let ipfix = self.ipfix.as_ref();
        let ipfix = ipfix.map(|ipfix| ("IPFIX", ipfix.sampling, &ipfix.targets));
        let mut others = "";
        for (what, sampling, targets) in [sflow, ipfix].into_iter().flatten() {
            write!(f, "{others}{what} of one in {sampling} to")?;
            targets.iter().try_for_each(|to| write!(f, " {to}"))?;
            others = ", ";
        }
        if let Some(netflow) = &self.netflow {
            write!(f, "{others}NetFlow to")?;
            let mut targets = netflow.targets.iter();
            targets.try_for_each(|to| write!(f, " {to}"))?;
            others = ", ";
        }
        for (set, CollectorSet { targets, .. }) in &self.sets {
            write!(f, "{others}IPFIX of set {set} to")?;
            targets.iter().try_for_each(|to| write!(f, " {to}"))?;
            others = ", ";
        }
        match others {
            "" => f.write_str("no collectors"),
            _ => Ok(()),
        }
    }
}

/// Reads a collector: `ADDRESS[:PORT]`, an IPv6 address in brackets. Names are not looked up:
/// nobody waits for that.
///
/// # Errors
/// The text is something else.
pub fn parse_collector(text: &str, usual_port: Option<u16>) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>().ok();
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let alone = || {
        let address: IpAddr = bare.unwrap_or(text).parse().ok()?;
        Some(SocketAddr::new(address, usual_port?))
    };
    let wrong = || {
        let form = match usual_port {
            Some(_) => "ADDRESS[:PORT]",
            None => "ADDRESS:PORT",
        };
        format!("'{text}' is no collector: use {form}, as in 10.0.0.1:6343")
    };
    let read = with_port.or_else(alone).filter(|to| to.port() != 0);
    read.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_address_and_perhaps_a_port() {
        let read = |text, usual| parse_collector(text, usual).ok().map(|to| to.to_string());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("10.0.0.1:1", Some(6343)), some("10.0.0.1:1"));
        assert_eq!(read("10.0.0.1", Some(6343)), some("10.0.0.1:6343"));
        assert_eq!(read("[::1]:7", None), some("[::1]:7"));
        assert_eq!(read("[::1]", Some(6343)), some("[::1]:6343"));
        for (text, usual) in [
            ("10.0.0.1", None),
            ("10.0.0.1:0", None),
            ("collector.example:6343", Some(6343)),
            ("", Some(6343)),
        ] {
            let why = parse_collector(text, usual).expect_err(text);
            assert!(why.contains("ADDRESS"), "{why}");
        }
    }
}
