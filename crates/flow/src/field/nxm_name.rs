//! Names of NXM and OXM headers, which identify fields in subfields such as
//! `NXM_OF_ETH_SRC[0..15]`: the class and the name in capital letters.

use super::{EXPERIMENTER, Field, WireId};

/// Names that differ from those of the field table.
#[rustfmt::skip]
const ODD: [(Field, &str); 23] = { use Field::*; [
    (NxInPort,     "NXM_OF_IN_PORT"),
    (Ipv4Src,      "NXM_OF_IP_SRC"),
    (Ipv4Dst,      "NXM_OF_IP_DST"),
    (Icmpv4Type,   "NXM_OF_ICMP_TYPE"),
    (Icmpv4Code,   "NXM_OF_ICMP_CODE"),
    (TunnelId,     "NXM_NX_TUN_ID"),
    (IpTtl,        "NXM_NX_IP_TTL"),
    (Ipv6Flabel,   "NXM_NX_IPV6_LABEL"),
    (Ipv6NdTarget, "NXM_NX_ND_TARGET"),
    (Ipv6NdSll,    "NXM_NX_ND_SLL"),
    (Ipv6NdTll,    "NXM_NX_ND_TLL"),
    (TunSrc,       "NXM_NX_TUN_IPV4_SRC"),
    (TunDst,       "NXM_NX_TUN_IPV4_DST"),
    (ActsetOutput, "ONFOXM_ET_ACTSET_OUTPUT"),
    (IpTos,        "NXM_OF_IP_TOS"),
    (TunErspanVer, "NXOXM_ET_ERSPAN_VER"),
    (TunErspanIdx, "NXOXM_ET_ERSPAN_IDX"),
    (TunErspanDir, "NXOXM_ET_ERSPAN_DIR"),
    (TunErspanHwid,"NXOXM_ET_ERSPAN_HWID"),
    (TunGtpuFlags, "NXOXM_ET_GTPU_FLAGS"),
    (TunGtpuMsgtype,"NXOXM_ET_GTPU_MSGTYPE"),
    (NdReserved,   "ERICOXM_OF_ICMPV6_ND_RESERVED"),
    (NdOptionsType,"ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE"),
]};

/// Common part of the names of tunnel options, which are searched separately.
const OPTION: &str = "TUN_METADATA";

/// Additional name, since Open vSwitch 2.4.
const DP_HASH: &str = "NXOXM_ET_DP_HASH";

impl Field {
    /// Returns the name that `ovs-ofctl` prints in subfields: Nicira's, if there is one.
    #[must_use]
    pub fn nxm_name(self) -> String {
        if let Some((_, name)) = ODD.iter().find(|(field, _)| *field == self) {
            return (*name).to_owned();
        }
        match self.info().nxm {
            None => self.oxm_name(),
            Some(id) if id.class == EXPERIMENTER => format!("NXOXM_{}", self.capitals()),
            Some(id) if id.class == 0 => format!("NXM_OF_{}", self.capitals()),
            Some(_) => format!("NXM_NX_{}", self.capitals()),
        }
    }

    /// Returns the name of one of the field's headers; its class selects the naming scheme, also
    /// for a header that is not the field's.
    #[must_use]
    pub fn header_name(self, id: WireId) -> String {
        match id.class {
            _ if self.info().nxm == Some(id) => self.nxm_name(),
            0 | 1 => self.nxm_name(),
            EXPERIMENTER => format!("ONFOXM_ET_{}", self.capitals()),
            _ => self.oxm_name(),
        }
    }

    /// Returns the field with this name, Nicira's or the specification's.
    #[must_use]
    pub fn from_nxm_name(name: &str) -> Option<Self> {
        if name == DP_HASH {
            return Some(Self::DpHash);
        }
        let bears = |field: Self| field.nxm_name() == name || field.oxm_name() == name;
        if name.contains(OPTION) {
            let mut options = Self::tunnel_options().iter().copied();
            return options.find(|field| bears(*field));
        }
        let others = Self::all().map(|row| row.field);
        let mut others = others.filter(|field| field.option().is_none());
        others.find(|field| bears(*field))
    }

    fn oxm_name(self) -> String {
        if self >= Self::Xreg0 && self <= Self::Xreg7 {
            return format!("OXM_OF_PKT_REG{}", self as u8 - Self::Xreg0 as u8);
        }
        format!("OXM_OF_{}", self.capitals())
    }

    fn capitals(self) -> String {
        self.info().name.to_ascii_uppercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nxm_and_oxm_names_identify_fields() {
        for field in Field::all().map(|row| row.field) {
            assert_eq!(Field::from_nxm_name(&field.nxm_name()), Some(field));
            assert_eq!(Field::from_nxm_name(&field.oxm_name()), Some(field));
        }
        assert_eq!(Field::from_nxm_name("NXM_OF_NOTHING"), None);
    }
}
