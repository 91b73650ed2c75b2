//! Parses the options of a tunnel.

use std::collections::BTreeMap;
use std::net::IpAddr;

use packet::tunnel::{TunnelProtocol, VxlanExtension};

use super::{
    ErspanConfig, ErspanOption, OuterField, PacketTypeMode, TTL_DEFAULT, TunnelConfig,
    TunnelEndpoint, TunnelKey, TunnelLayers, TunnelType,
};

/// The options of an interface; those that are understood are removed.
type Options<'k, 'v> = BTreeMap<&'k str, &'v str>;

impl TunnelConfig {
    /// Parses a tunnel of this type from options, and removes the options that it understands.
    ///
    /// # Errors
    /// A required option is missing, or a value is invalid.
    pub fn parse(
        kind: TunnelType,
        name: &str,
        options: &mut Options<'_, '_>,
    ) -> Result<Self, String> {
        let protocol = protocol(kind, name, options)?;
        let key = key(options, "key", protocol, TunnelKey::None)?;
        let endpoints = (options.remove("remote_ip"), options.remove("local_ip"));
        let remote = endpoints.0.ok_or_else(|| {
            let kind = kind.name();
            format!("{name}: {kind} type requires valid 'remote_ip' argument")
        })?;
        let mut flag = |option, default, is_known| match is_known {
            true => boolean(options, option, default),
            false => Ok(default),
        };
        let dont_fragment = flag("df_default", true, true)?;
        let checksum = flag("csum", false, kind.may_be_summed())?;
        let sequenced = flag("seq", false, kind.may_be_sequenced())?;
        let tunnel = Self {
            kind,
            protocol,
            port: match kind.default_port() {
                0 => 0,
                default => udp_port(options.remove("dst_port"), default)?,
            },
            remote: endpoint("remote_ip", remote)?,
            local: endpoints
                .1
                .map_or(Ok(TunnelEndpoint::Any), |local| endpoint("local_ip", local))?,
            in_key: self::key(options, "in_key", protocol, key)?,
            out_key: self::key(options, "out_key", protocol, key)?,
            tos: inherited(options, "tos", 0)?,
            ttl: inherited(options, "ttl", TTL_DEFAULT)?,
            dont_fragment,
            checksum,
            sequenced,
            packet_type: packet_type(options.remove("packet_type"), name, kind, protocol)?,
            egress_mark: egress_mark(options.remove("egress_pkt_mark"))?,
            erspan: match kind.is_erspan() {
                true => erspan(name, options)?,
                false => ErspanConfig::default(),
            },
        };
        tunnel.check(name)?;
        Ok(tunnel)
    }

    fn check(&self, name: &str) -> Result<(), String> {
        // In Open vSwitch's words.
        if self.local == TunnelEndpoint::Flow && self.remote != TunnelEndpoint::Flow {
            let kind = self.type_name();
            return Err(format!(
                "{name}: {kind} type requires 'remote_ip=flow' with 'local_ip=flow'"
            ));
        }
        if let (TunnelEndpoint::Given(local), TunnelEndpoint::Given(remote)) =
            (self.local, self.remote)
            && local.is_ipv4() != remote.is_ipv4()
        {
            return Err(format!(
                "{name}: 'remote_ip' and 'local_ip' has to be of the same address family"
            ));
        }
        match self.remote {
            TunnelEndpoint::Given(remote) if remote.is_multicast() => {
                Err(format!("{name}: multicast remote_ip={remote} not allowed"))
            }
            _ => Ok(()),
        }
    }
}

/// Parses the words after `vxlan:NAME,`: short option names with values.
pub(crate) fn from_words(
    kind: TunnelType,
    name: &str,
    words: &str,
) -> Result<TunnelConfig, String> {
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
        Some(unknown) => Err(format!("{} has no option '{unknown}'", kind.name())),
    }
}

fn protocol(
    kind: TunnelType,
    name: &str,
    options: &mut Options<'_, '_>,
) -> Result<TunnelProtocol, String> {
    Ok(match kind {
        TunnelType::Vxlan => TunnelProtocol::Vxlan(extension(name, options.remove("exts"))?),
        TunnelType::Geneve => TunnelProtocol::Geneve,
        TunnelType::Gre | TunnelType::Ip6Gre => TunnelProtocol::Gre,
        TunnelType::Erspan | TunnelType::Ip6Erspan => TunnelProtocol::Erspan,
        TunnelType::Gtpu => TunnelProtocol::Gtpu,
        TunnelType::Lisp => TunnelProtocol::Lisp,
    })
}

fn extension(name: &str, text: Option<&str>) -> Result<VxlanExtension, String> {
    match text {
        None => Ok(VxlanExtension::None),
        Some("gbp") => Ok(VxlanExtension::Gbp),
        Some("gpe") => Ok(VxlanExtension::Gpe),
        Some(other) => Err(format!(
            "{name}: unknown extension '{other}': use gbp or gpe"
        )),
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

/// Parses a number, in hexadecimal after `0x`.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn key(
    options: &mut Options<'_, '_>,
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
    let maximum = protocol.key_max();
    let number = number(text).filter(|number| *number <= maximum);
    let invalid = || {
        format!("options:{option}: '{text}' is not a key: use flow, or a number up to {maximum}")
    };
    number.map(TunnelKey::Given).ok_or_else(invalid)
}

fn udp_port(text: Option<&str>, default: u16) -> Result<u16, String> {
    let Some(text) = text else {
        return Ok(default);
    };
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| format!("options:dst_port: '{text}' is not a UDP port"))
}

fn inherited(
    options: &mut Options<'_, '_>,
    option: &str,
    default: u8,
) -> Result<OuterField, String> {
    match options.remove(option) {
        None => Ok(OuterField::Given(default)),
        Some("inherit") => Ok(OuterField::Inherit(default)),
        Some(text) => {
            let number = number(text).and_then(|number| u8::try_from(number).ok());
            let invalid =
                || format!("options:{option}: '{text}': use inherit, or a number up to 255");
            number.map(OuterField::Given).ok_or_else(invalid)
        }
    }
}

fn boolean(options: &mut Options<'_, '_>, option: &str, default: bool) -> Result<bool, String> {
    match options.remove(option) {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(format!("options:{option}: '{other}': use true or false")),
    }
}

fn egress_mark(text: Option<&str>) -> Result<Option<u32>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    let mark = text.parse().ok();
    mark.map(Some)
        .ok_or_else(|| format!("options:egress_pkt_mark: '{text}' is not a number"))
}

fn packet_type(
    text: Option<&str>,
    name: &str,
    kind: TunnelType,
    protocol: TunnelProtocol,
) -> Result<PacketTypeMode, String> {
    let layers = TunnelConfig::layers(kind, protocol);
    let full_type = match protocol {
        TunnelProtocol::Vxlan(VxlanExtension::Gpe) => "VXLAN-GPE",
        TunnelProtocol::Vxlan(_) => "VXLAN (without GPE)",
        _ => kind.name(),
    };
    // In Open vSwitch's words.
    let refused = |layer: &str| {
        format!(
            "{name}: legacy_{} configured on {full_type} tunnel that cannot carry {layer} traffic",
            layer.to_lowercase()
        )
    };
    match text {
        None => Ok(TunnelConfig::default_packet_type(kind, protocol)),
        Some("legacy_l2") if layers == TunnelLayers::Packets => Err(refused("L2")),
        Some("legacy_l3") if layers == TunnelLayers::Frames => Err(refused("L3")),
        Some("legacy_l2") => Ok(PacketTypeMode::LegacyL2),
        Some("legacy_l3") => Ok(PacketTypeMode::LegacyL3),
        Some("ptap") => Ok(PacketTypeMode::Aware),
        Some(other) => Err(format!("{name}: unknown packet_type '{other}'")),
    }
}

fn erspan(name: &str, options: &mut Options<'_, '_>) -> Result<ErspanConfig, String> {
    let mut value = |option: &str, radix: u32, least: u32, most: u32, what: &str| {
        let Some(text) = options.remove(option) else {
            return Ok(None);
        };
        if text == "flow" {
            return Ok(Some(ErspanOption::Flow));
        }
        let digits = match radix {
            16 => text.strip_prefix("0x").unwrap_or(text),
            _ => text,
        };
        let number = u32::from_str_radix(digits, radix).ok();
        let number = number.filter(|number| (least..=most).contains(number));
        let invalid = || format!("{name}: invalid erspan {what}: {text}");
        number
            .map(|number| Some(ErspanOption::Given(number)))
            .ok_or_else(invalid)
    };
    let version = value("erspan_ver", 10, 1, 2, "version")?;
    let index = value("erspan_idx", 16, 0, 0x000f_ffff, "index")?;
    let direction = value("erspan_dir", 10, 0, 1, "direction")?;
    let hardware = value("erspan_hwid", 16, 0, 0x3f, "hardware ID")?;
    let default = ErspanConfig::default();
    // Rules that choose the version set the fields of both.
    let beside = match version {
        Some(ErspanOption::Flow) => ErspanOption::Flow,
        _ => ErspanOption::Given(0),
    };
    Ok(ErspanConfig {
        version: version.unwrap_or(default.version),
        index: index.unwrap_or(beside),
        direction: direction.unwrap_or(beside),
        hardware: hardware.unwrap_or(beside),
    })
}
