//! Flow export of a bridge and its collectors (ovs-vswitchd.conf.db(5), the tables `NetFlow`,
//! `sFlow`, `IPFIX` and `Flow_Sample_Collector_Set`).

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

/// The exporters of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exporters {
    /// The sFlow agent: samples and port counters.
    pub sflow: Option<SflowConfig>,
    /// The IPFIX exporter of sampled flows.
    pub ipfix: Option<IpfixConfig>,
    /// The NetFlow exporter, which counts each frame.
    pub netflow: Option<NetflowConfig>,
    /// The IPFIX collector sets of `sample` actions, by their numbers.
    pub sets: BTreeMap<u32, CollectorSet>,
}

/// A set of collectors for the `sample` actions of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorSet {
    /// The collectors.
    pub targets: Vec<SocketAddr>,
    /// The flow cache.
    pub cache: IpfixCache,
}

/// A NetFlow exporter of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetflowConfig {
    /// The collectors.
    pub targets: Vec<SocketAddr>,
    /// The settings of the flow cache and of the records.
    pub settings: NetflowSettings,
}

/// The settings of a NetFlow exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetflowSettings {
    /// Age at which an active flow is exported; `None` disables export by age.
    pub active: Option<Duration>,
    /// The engine type and the engine id.
    pub engine: [u8; 2],
    /// The lower seven bits of the engine id are the upper bits of interface numbers.
    pub add_id_to_interface: bool,
}

/// An sFlow agent of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SflowConfig {
    /// The collectors.
    pub targets: Vec<SocketAddr>,
    /// The interface with the agent's address; if absent, the interface of the route to the first
    /// collector.
    pub agent: Option<String>,
    /// The sub-agent id, which distinguishes agents at the same address.
    pub sub_agent: u32,
    /// Maximum length of a sampled header, in bytes.
    pub header: usize,
    /// The sampling rate: one of this many frames.
    pub sampling: NonZeroU32,
    /// The interval between counter samples; `None` disables them.
    pub polling: Option<Duration>,
}

/// An IPFIX exporter of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpfixConfig {
    /// The collectors.
    pub targets: Vec<SocketAddr>,
    /// The sampling rate: one of this many frames.
    pub sampling: NonZeroU32,
    /// The observation domain id and the observation point id.
    pub observation: (u32, u32),
    /// The flow cache.
    pub cache: IpfixCache,
    /// Sampling at ingress and at egress.
    pub directions: [bool; 2],
}

/// The cache of an IPFIX exporter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpfixCache {
    /// Age at which an active flow is exported.
    pub active: Duration,
    /// Maximum number of cached flows; zero disables the cache.
    pub flows_max: usize,
    /// The virtual observation id of each record, if any.
    pub name: Option<String>,
}

impl fmt::Display for Exporters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sflow = self.sflow.as_ref();
        let sflow = sflow.map(|sflow| ("sFlow", sflow.sampling, &sflow.targets));
        let ipfix = self.ipfix.as_ref();
        let ipfix = ipfix.map(|ipfix| ("IPFIX", ipfix.sampling, &ipfix.targets));
        let mut others = "";
        for (protocol, sampling, targets) in [sflow, ipfix].into_iter().flatten() {
            write!(f, "{others}{protocol} of one in {sampling} to")?;
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

/// Parses a collector: `ADDRESS[:PORT]`, an IPv6 address in brackets. Names are not resolved, since
/// a lookup would block.
///
/// # Errors
/// The text has another form.
pub fn parse_collector(text: &str, default_port: Option<u16>) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>().ok();
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let alone = || {
        let address: IpAddr = bare.unwrap_or(text).parse().ok()?;
        Some(SocketAddr::new(address, default_port?))
    };
    let invalid = || {
        let form = match default_port {
            Some(_) => "ADDRESS[:PORT]",
            None => "ADDRESS:PORT",
        };
        format!("'{text}' is not a collector: use {form}, as in 10.0.0.1:6343")
    };
    let read = with_port.or_else(alone).filter(|to| to.port() != 0);
    read.ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collector_is_an_address_with_an_optional_port() {
        let read = |text, default| parse_collector(text, default).ok().map(|to| to.to_string());
        let expected = |text: &str| Some(text.to_owned());
        assert_eq!(read("10.0.0.1:1", Some(6343)), expected("10.0.0.1:1"));
        assert_eq!(read("10.0.0.1", Some(6343)), expected("10.0.0.1:6343"));
        assert_eq!(read("[::1]:7", None), expected("[::1]:7"));
        assert_eq!(read("[::1]", Some(6343)), expected("[::1]:6343"));
        for (text, default) in [
            ("10.0.0.1", None),
            ("10.0.0.1:0", None),
            ("collector.example:6343", Some(6343)),
            ("", Some(6343)),
        ] {
            let error = parse_collector(text, default).expect_err(text);
            assert!(error.contains("ADDRESS"), "{error}");
        }
    }
}
