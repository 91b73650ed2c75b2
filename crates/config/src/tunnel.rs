//! The configuration of a tunnel: protocol, endpoints, keys, and the outer header
//! (ovs-vswitchd.conf.db(5), "Tunnel Options").

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use packet::tunnel::{GENEVE_PORT, TunnelProtocol, VXLAN_PORT, VxlanExtension};

/// Default TTL of the outer header (`options:ttl`).
const TTL_DEFAULT: u8 = 64;

/// An endpoint of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TunnelEndpoint {
    /// A configured address.
    Given(IpAddr),
    /// Any local address: that of the route to the remote endpoint.
    Any,
    /// Set by rules for sent packets, and matched by rules for received packets.
    Flow,
}

/// The key of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TunnelKey {
    /// No key; zero in protocols that always have one.
    None,
    /// A configured key.
    Given(u32),
    /// Set by rules for sent packets, and matched by rules for received packets.
    Flow,
}

/// A field of the outer IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OuterField {
    /// A configured value.
    Given(u8),
    /// The value of the inner packet if it is IP, and this value otherwise.
    Inherit(u8),
}

/// The configuration of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TunnelConfig {
    /// The protocol.
    pub protocol: TunnelProtocol,
    /// The UDP destination port; zero for GRE.
    pub port: u16,
    /// The remote endpoint.
    pub remote: TunnelEndpoint,
    /// The local endpoint.
    pub local: TunnelEndpoint,
    /// The key of received packets.
    pub in_key: TunnelKey,
    /// The key of sent packets.
    pub out_key: TunnelKey,
    /// DSCP and ECN.
    pub tos: OuterField,
    /// The TTL.
    pub ttl: OuterField,
    /// The don't-fragment bit of outer IPv4 headers.
    pub dont_fragment: bool,
    /// Sent packets have a UDP or GRE checksum; UDP over IPv6 always has one.
    pub checksum: bool,
    /// GRE packets have sequence numbers.
    pub sequenced: bool,
    /// The payload is a packet without an Ethernet header; the bridge sees it after an Ethernet
    /// header with zero addresses.
    pub is_layer3: bool,
}

/// The tunnel types in the database.
pub const TYPES: [&str; 3] = ["vxlan", "geneve", "gre"];

impl TunnelConfig {
    /// Parses a tunnel of this type from options, and removes the options that it understands.
    ///
    /// # Errors
    /// A required option is missing, or a value is invalid.
    pub fn parse(
        kind: &str,
        name: &str,
        options: &mut BTreeMap<&str, &str>,
    ) -> Result<Self, String> {
        let protocol = match kind {
            "vxlan" => TunnelProtocol::Vxlan(extension(options.remove("exts"))?),
            "geneve" => TunnelProtocol::Geneve,
            _ => TunnelProtocol::Gre,
        };
        let is_gre = protocol == TunnelProtocol::Gre;
        let key = key(options, "key", protocol, TunnelKey::None)?;
        let endpoints = (options.remove("remote_ip"), options.remove("local_ip"));
        let remote = endpoints
            .0
            .ok_or_else(|| format!("{name}: {kind} type requires valid 'remote_ip' argument"))?;
        let tunnel = Self {
            protocol,
            port: match is_gre {
                true => 0,
                false => udp_port(options.remove("dst_port"), protocol)?,
            },
            remote: endpoint("remote_ip", remote)?,
            local: endpoints
                .1
                .map_or(Ok(TunnelEndpoint::Any), |local| endpoint("local_ip", local))?,
            in_key: self::key(options, "in_key", protocol, key)?,
            out_key: self::key(options, "out_key", protocol, key)?,
            tos: inherited(options, "tos", 0)?,
            ttl: inherited(options, "ttl", TTL_DEFAULT)?,
            dont_fragment: boolean(options, "df_default", true)?,
            checksum: boolean(options, "csum", false)?,
            sequenced: is_gre && boolean(options, "seq", false)?,
            is_layer3: packet_type(options.remove("packet_type"), protocol)?,
        };
        tunnel.check(name)?;
        Ok(tunnel)
    }

    fn check(&self, name: &str) -> Result<(), String> {
        if self.local == TunnelEndpoint::Flow && self.remote != TunnelEndpoint::Flow {
            return Err(format!("{name}: local_ip=flow requires remote_ip=flow"));
        }
        if let (TunnelEndpoint::Given(local), TunnelEndpoint::Given(remote)) =
            (self.local, self.remote)
            && local.is_ipv4() != remote.is_ipv4()
        {
            return Err(format!(
                "{name}: local_ip and remote_ip must have the same IP version"
            ));
        }
        match self.remote {
            TunnelEndpoint::Given(remote) if remote.is_multicast() => {
                Err(format!("{name}: multicast remote_ip={remote} not allowed"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the type in the database and on the command line.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self.protocol {
            TunnelProtocol::Vxlan(_) => "vxlan",
            TunnelProtocol::Geneve => "geneve",
            TunnelProtocol::Gre => "gre",
        }
    }
}

/// Parses the words after `vxlan:NAME,`: short option names with values.
pub(super) fn from_words(kind: &str, name: &str, words: &str) -> Result<TunnelConfig, String> {
    let mut options = BTreeMap::new();
    for word in words.split(',').filter(|word| !word.is_empty()) {
        let (option, value) = word.split_once('=').ok_or_else(|| {
            format!("'{word}' is not an option: use remote=ADDRESS, key=NUMBER..")
        })?;
        let option = match option {
            "remote" => "remote_ip",
            "local" => "local_ip",
            "port" => "dst_port",
            other => other,
        };
        options.insert(option, value);
    }
    let tunnel = TunnelConfig::parse(kind, name, &mut options)?;
    match options.into_keys().next() {
        None => Ok(tunnel),
        Some(unknown) => Err(format!("{kind} has no option '{unknown}'")),
    }
}

impl fmt::Display for TunnelConfig {
    /// Formats the words that `from_words` parses, which follow the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = |endpoint: TunnelEndpoint| match endpoint {
            TunnelEndpoint::Given(address) => Some(address.to_string()),
            TunnelEndpoint::Flow => Some("flow".to_owned()),
            TunnelEndpoint::Any => None,
        };
        let key = |key: TunnelKey| match key {
            TunnelKey::Given(key) => Some(key.to_string()),
            TunnelKey::Flow => Some("flow".to_owned()),
            TunnelKey::None => None,
        };
        let inherited = |value: OuterField, default: u8| match value {
            OuterField::Given(value) if value == default => None,
            OuterField::Given(value) => Some(value.to_string()),
            OuterField::Inherit(_) => Some("inherit".to_owned()),
        };
        let yes = |is_so: bool| is_so.then(|| "true".to_owned());
        let extension = match self.protocol {
            TunnelProtocol::Vxlan(VxlanExtension::Gbp) => Some("gbp".to_owned()),
            TunnelProtocol::Vxlan(VxlanExtension::Gpe) => Some("gpe".to_owned()),
            _ => None,
        };
        let port = (self.port != default_port(self.protocol)).then(|| self.port.to_string());
        let words = [
            ("remote", endpoint(self.remote)),
            ("local", endpoint(self.local)),
            ("in_key", key(self.in_key)),
            ("out_key", key(self.out_key)),
            ("exts", extension),
            ("port", port),
            ("tos", inherited(self.tos, 0)),
            ("ttl", inherited(self.ttl, TTL_DEFAULT)),
            (
                "df_default",
                (!self.dont_fragment).then(|| "false".to_owned()),
            ),
            ("csum", yes(self.checksum)),
            ("seq", yes(self.sequenced)),
            (
                "packet_type",
                self.is_layer3.then(|| "legacy_l3".to_owned()),
            ),
        ];
        let words = words
            .into_iter()
            .filter_map(|(word, value)| Some((word, value?)));
        words
            .into_iter()
            .try_for_each(|(word, value)| write!(f, ",{word}={value}"))
    }
}

fn extension(text: Option<&str>) -> Result<VxlanExtension, String> {
    match text {
        None => Ok(VxlanExtension::None),
        Some("gbp") => Ok(VxlanExtension::Gbp),
        Some("gpe") => Ok(VxlanExtension::Gpe),
        Some(other) => Err(format!("options:exts: '{other}': use gbp or gpe")),
    }
}

fn endpoint(option: &str, text: &str) -> Result<TunnelEndpoint, String> {
    match text {
        "flow" => Ok(TunnelEndpoint::Flow),
        _ => {
            let address: Option<IpAddr> = text.parse().ok();
            let usable = address.filter(|address| !address.is_unspecified());
            let invalid =
                || format!("options:{option}: bad address '{text}': use an IP address or flow");
            usable.map(TunnelEndpoint::Given).ok_or_else(invalid)
        }
    }
}

fn key(
    options: &mut BTreeMap<&str, &str>,
    option: &str,
    protocol: TunnelProtocol,
    default_key: TunnelKey,
) -> Result<TunnelKey, String> {
    let Some(text) = options.remove(option) else {
        return Ok(default_key);
    };
    if text == "flow" {
        return Ok(TunnelKey::Flow);
    }
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let maximum = match protocol {
        TunnelProtocol::Gre => u32::MAX,
        TunnelProtocol::Vxlan(_) | TunnelProtocol::Geneve => 0x00ff_ffff,
    };
    let number = number.filter(|number| *number <= maximum);
    let invalid = || {
        format!("options:{option}: '{text}' is not a key: use flow, or a number up to {maximum}")
    };
    number.map(TunnelKey::Given).ok_or_else(invalid)
}

/// Returns the default UDP port. With `exts=gpe` it is that of VXLAN, too, as in Open vSwitch, not
/// the 4790 of draft-ietf-nvo3-vxlan-gpe.
const fn default_port(protocol: TunnelProtocol) -> u16 {
    match protocol {
        TunnelProtocol::Vxlan(_) => VXLAN_PORT,
        TunnelProtocol::Geneve => GENEVE_PORT,
        TunnelProtocol::Gre => 0,
    }
}

fn udp_port(text: Option<&str>, protocol: TunnelProtocol) -> Result<u16, String> {
    let Some(text) = text else {
        return Ok(default_port(protocol));
    };
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| format!("options:dst_port: '{text}' is not a UDP port"))
}

fn inherited(
    options: &mut BTreeMap<&str, &str>,
    option: &str,
    default: u8,
) -> Result<OuterField, String> {
    match options.remove(option) {
        None => Ok(OuterField::Given(default)),
        Some("inherit") => Ok(OuterField::Inherit(default)),
        Some(text) => {
            let number = match text.strip_prefix("0x") {
                Some(digits) => u8::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            };
            let invalid =
                || format!("options:{option}: '{text}': use inherit, or a number up to 255");
            number.map(OuterField::Given).ok_or_else(invalid)
        }
    }
}

fn boolean(
    options: &mut BTreeMap<&str, &str>,
    option: &str,
    default: bool,
) -> Result<bool, String> {
    match options.remove(option) {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(format!("options:{option}: '{other}': use true or false")),
    }
}

fn packet_type(text: Option<&str>, protocol: TunnelProtocol) -> Result<bool, String> {
    let may_be_bare = matches!(
        protocol,
        TunnelProtocol::Gre | TunnelProtocol::Vxlan(VxlanExtension::Gpe)
    );
    match text {
        None | Some("legacy_l2") => Ok(false),
        Some("legacy_l3") if may_be_bare => Ok(true),
        Some("legacy_l3") => Err("options:packet_type: the tunnel carries Ethernet frames only".to_owned()),
        Some("ptap") => Err(
            "options:packet_type: ptap is not supported: bridges process Ethernet frames only; use legacy_l2 or legacy_l3"
                .to_owned(),
        ),
        Some(other) => Err(format!(
            "options:packet_type: '{other}': use legacy_l2 or legacy_l3"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, words: &str) -> Result<TunnelConfig, String> {
        from_words(kind, "t", words)
    }

    #[test]
    fn tunnel_text_round_trips() {
        for (kind, words) in [
            ("vxlan", ",remote=10.0.0.1,in_key=7,out_key=7"),
            (
                "vxlan",
                ",remote=flow,in_key=flow,out_key=flow,exts=gbp,port=8472",
            ),
            (
                "vxlan",
                ",remote=fd00::1,local=fd00::2,exts=gpe,tos=inherit,ttl=9",
            ),
            (
                "geneve",
                ",remote=flow,local=flow,in_key=flow,out_key=flow,csum=true",
            ),
            (
                "gre",
                ",remote=1.2.3.4,df_default=false,seq=true,packet_type=legacy_l3",
            ),
        ] {
            let tunnel = read(kind, words).expect(words);
            assert_eq!(tunnel.to_string(), words);
            assert_eq!(tunnel.type_name(), kind);
        }
        let short = read("vxlan", "remote=10.0.0.1,key=0x12").expect("legal");
        assert_eq!(short.in_key, TunnelKey::Given(18));
        assert_eq!(short.port, 4789);
        let generic = read("vxlan", "remote=10.0.0.1,exts=gpe").expect("legal");
        assert_eq!(generic.port, 4789);
    }

    #[test]
    fn invalid_tunnels_get_a_reason() {
        for (kind, words, reason) in [
            (
                "vxlan",
                "",
                "t: vxlan type requires valid 'remote_ip' argument",
            ),
            ("vxlan", "remote=here", "bad address 'here'"),
            ("vxlan", "remote=224.0.0.1", "multicast"),
            ("vxlan", "remote=10.0.0.1,local=fd00::1", "same IP version"),
            (
                "vxlan",
                "remote=10.0.0.1,local=flow",
                "requires remote_ip=flow",
            ),
            ("vxlan", "remote=10.0.0.1,key=16777216", "is not a key"),
            (
                "vxlan",
                "remote=10.0.0.1,packet_type=legacy_l3",
                "carries Ethernet frames only",
            ),
            (
                "gre",
                "remote=10.0.0.1,packet_type=ptap",
                "ptap is not supported",
            ),
            ("gre", "remote=10.0.0.1,ttl=256", "use inherit"),
            ("geneve", "remote=10.0.0.1,port=0", "is not a UDP port"),
            ("geneve", "remote=10.0.0.1,colour=red", "no option 'colour'"),
            ("geneve", "remote=10.0.0.1,csum=x", "use true or false"),
        ] {
            let error = read(kind, words).expect_err(words);
            assert!(error.contains(reason), "{error}");
        }
    }
}
