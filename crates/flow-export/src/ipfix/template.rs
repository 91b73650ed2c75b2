//! Templates: the information elements of a record in their order (RFC 7011, 3.4.1; the elements
//! are those of IANA's registry "IP Flow Information Export Entities").

/// The first template ID (RFC 7011, 3.4.1).
const FIRST: u16 = 256;

/// An information element: its ID and its length in bytes.
pub(super) type Element = (u16, u16);

/// The elements at the start of all records: observationPointId, flowDirection, ingressInterface,
/// egressInterface, sourceMacAddress, destinationMacAddress, ethernetType, ethernetHeaderLength.
const COMMON: [Element; 8] = [
    (138, 4),
    (61, 1),
    (10, 4),
    (14, 4),
    (56, 6),
    (80, 6),
    (256, 2),
    (240, 1),
];

/// vlanId, dot1qVlanId, dot1qPriority.
const VLAN: [Element; 3] = [(58, 2), (243, 2), (244, 1)];

/// ipVersion, ipTTL, protocolIdentifier, ipDiffServCodePoint, ipPrecedence, ipClassOfService.
const IP: [Element; 6] = [(60, 1), (192, 1), (4, 1), (195, 1), (196, 1), (5, 1)];

/// sourceIPv4Address, destinationIPv4Address.
const IPV4: [Element; 2] = [(8, 4), (12, 4)];

/// sourceIPv6Address, destinationIPv6Address, flowLabelIPv6.
const IPV6: [Element; 3] = [(27, 16), (28, 16), (31, 4)];

/// sourceTransportPort, destinationTransportPort.
const PORTS: [Element; 2] = [(7, 2), (11, 2)];

/// icmpTypeIPv4, icmpCodeIPv4; icmpTypeIPv6, icmpCodeIPv6.
const ICMPV4: [Element; 2] = [(176, 1), (177, 1)];
const ICMPV6: [Element; 2] = [(178, 1), (179, 1)];

/// flowStartDeltaMicroseconds, flowEndDeltaMicroseconds, packetDeltaCount,
/// layer2OctetDeltaCount, flowEndReason.
const COUNTS: [Element; 5] = [(158, 4), (159, 4), (2, 8), (352, 8), (136, 1)];

/// octetDeltaCount, octetDeltaSumOfSquares, minimumIpTotalLength, maximumIpTotalLength.
const IP_COUNTS: [Element; 4] = [(1, 8), (198, 8), (25, 8), (26, 8)];

/// VMware's virtualObsID: its ID with the enterprise bit, a variable length, and the enterprise
/// number (RFC 7011, 3.2).
const NAME: [u8; 8] = [0x83, 0x82, 0xff, 0xff, 0, 0, 0x1a, 0xdc];

/// The network layer of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NetworkLayer {
    Other,
    Ipv4,
    Ipv6,
}

/// The transport layer of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TransportLayer {
    Other,
    Ports,
    Icmp,
}

/// The kind of frames that the records of a template describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TemplateKind {
    pub(super) is_tagged: bool,
    pub(super) network: NetworkLayer,
    pub(super) transport: TransportLayer,
}

impl TemplateKind {
    /// Returns all kinds.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let networks = [NetworkLayer::Other, NetworkLayer::Ipv4, NetworkLayer::Ipv6];
        let transports = [
            TransportLayer::Other,
            TransportLayer::Ports,
            TransportLayer::Icmp,
        ];
        let of_tagging = move |is_tagged| {
            networks.into_iter().flat_map(move |network| {
                let all = transports.into_iter();
                let valid = all.filter(move |transport| {
                    network != NetworkLayer::Other || *transport == TransportLayer::Other
                });
                valid.map(move |transport| Self {
                    is_tagged,
                    network,
                    transport,
                })
            })
        };
        [false, true].into_iter().flat_map(of_tagging)
    }

    /// Returns the template ID.
    pub(super) fn id(self) -> u16 {
        FIRST + u16::from(self.is_tagged) * 9 + self.network as u16 * 3 + self.transport as u16
    }

    /// Returns its elements in order: those of the flow, and those of the counters. The optional
    /// name of the exporter is between them.
    pub(super) fn elements(self) -> [Vec<Element>; 2] {
        let is_ip = self.network != NetworkLayer::Other;
        let mut flow_elements = COMMON.to_vec();
        let mut add = |elements: &[Element], condition: bool| {
            if condition {
                flow_elements.extend(elements);
            }
        };
        add(&VLAN, self.is_tagged);
        add(&IP, is_ip);
        add(&IPV4, self.network == NetworkLayer::Ipv4);
        add(&IPV6, self.network == NetworkLayer::Ipv6);
        match (self.network, self.transport) {
            (NetworkLayer::Other, _) | (_, TransportLayer::Other) => {}
            (_, TransportLayer::Ports) => add(&PORTS, true),
            (NetworkLayer::Ipv4, TransportLayer::Icmp) => add(&ICMPV4, true),
            (NetworkLayer::Ipv6, TransportLayer::Icmp) => add(&ICMPV6, true),
        }
        let mut counts = COUNTS.to_vec();
        if is_ip {
            counts.extend(IP_COUNTS);
        }
        [flow_elements, counts]
    }

    /// Writes its template record (RFC 7011, 3.4.1).
    pub(super) fn describe(self, is_named: bool, to: &mut Vec<u8>) {
        let [flow_elements, counts] = self.elements();
        let count = flow_elements.len() + counts.len() + usize::from(is_named);
        to.extend(self.id().to_be_bytes());
        to.extend(u16::try_from(count).expect("a few").to_be_bytes());
        let put = |to: &mut Vec<u8>, elements: &[Element]| {
            for (number, length) in elements {
                to.extend(number.to_be_bytes());
                to.extend(length.to_be_bytes());
            }
        };
        put(to, &flow_elements);
        if is_named {
            to.extend(NAME);
        }
        put(to, &counts);
    }
}
