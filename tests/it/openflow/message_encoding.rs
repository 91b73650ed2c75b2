//! Messages of all types in all versions, decoded by another program: `ovs-ofctl ofp-print` accepts
//! the codec's output.

use std::time::Duration;

use base::{BucketId, Cookie, DatapathId, GroupId, MeterId, PortNo, QueueId, TableId, Xid};
use flow::{
    Action, AggregateStats, Band, BandKind, Bucket, Capabilities, EvictionFlags, Field, FlowChange,
    FlowEvent, FlowFlags, FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason, FlowStats,
    FlowStatsRequest, FlowUpdate, GroupKind, GroupMod, GroupModCommand, Instructions, Match,
    MeterFlags, MeterMod, MeterModCommand, Monitor, MonitorFlags, MonitorId, MonitorRequest,
    PacketIn, PacketInReason, PacketOut, PipelineFields, PortConfig, PortDesc, PortFeatures,
    PortMod, PortReason, PortState, PortStats, PortStatus, QueueStats, Refusal, Resume, Role,
    RoleRequest, SwitchConfig, SwitchDescription, SwitchFeatures, TableDesc, TableFlags, TableMod,
    TableReason, TableStats, TableStatus, Vacancy, VacancyLimits,
};
use openflow::{
    AsyncConfig, ErrorMessage, FeaturesReply, FlowFormat, ForwardedRequest, Hello, Message,
    MultipartReply, MultipartRequest, QueueConfig, QueueConfigReply, QueueDesc, QueueStatsRequest,
    RequestForward, RoleReason, RoleReply, RoleStatus, TableFeatures, TableFeaturesCommand,
    Version, VersionSet,
};
use packet::MacAddr;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] =
    tests![ovs_ofctl_decodes_messages_of_all_types_and_versions,];

const XID: Xid = Xid(0x77);

fn ovs_ofctl_decodes_messages_of_all_types_and_versions(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    for version in Version::ALL {
        for (name, message) in messages(version) {
            let mut bytes = Vec::new();
            message
                .encode(XID, version, &mut bytes)
                .map_err(|error| format!("{name}: {error}"))?;
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let result = network.run(&format!("ovs-ofctl ofp-print {hex}"))?;
            let output = format!("{}{}", result.stdout, result.stderr);
            assert!(output.starts_with(name), "{version} {name}: {output}");
            for failure_text in ["decode error", "WARN", "ovs-ofctl:", "***"] {
                assert!(!output.contains(failure_text), "{version} {name}: {output}");
            }
            assert!(output.contains("(xid=0x77)"), "{version} {name}: {output}");
        }
    }
    Ok(())
}

/// One message of each type that a version has, with its printed name.
fn messages(version: Version) -> Vec<(&'static str, Message)> {
    let mut all = common_messages(version);
    all.extend(statistics_replies(version));
    all.extend(statistics_requests(version));
    if version >= Version::V11 {
        all.push(("OFPT_GROUP_MOD", Message::GroupMod(group_mod())));
        let table = TableId(3);
        let table_mod = TableMod::new(table, TableFlags::default());
        all.push(("OFPT_TABLE_MOD", Message::TableMod(table_mod)));
    }
    if version >= Version::V13 {
        all.push(("OFPT_METER_MOD", Message::MeterMod(meter_mod())));
        let reply = AsyncConfig::initial(version);
        all.push(("OFPT_GET_ASYNC_REQUEST", Message::GetAsyncRequest));
        all.push(("OFPT_GET_ASYNC_REPLY", Message::GetAsyncReply(reply)));
        let change = AsyncConfig::default().into();
        all.push(("OFPT_SET_ASYNC", Message::SetAsync(change)));
    }
    let forwarded = RequestForward {
        xid: Xid(5),
        request: ForwardedRequest::GroupMod(group_mod()),
    };
    let name = match version {
        Version::V10 | Version::V11 | Version::V12 => "NXT_REQUESTFORWARD",
        Version::V13 => "ONFT_REQUESTFORWARD",
        Version::V14 | Version::V15 => "OFPT_REQUESTFORWARD",
    };
    all.push((name, Message::RequestForward(forwarded)));
    if version >= Version::V14 {
        let status = TableStatus {
            reason: TableReason::VacancyDown,
            table: table_desc(),
        };
        all.push(("OFPT_TABLE_STATUS", Message::TableStatus(status)));
        all.push(("OFPT_ROLE_STATUS", Message::RoleStatus(role_status())));
    } else {
        let queue = QueueDesc {
            port: PortNo(1),
            config: queue_config(),
        };
        let reply = QueueConfigReply {
            port: PortNo(1),
            queues: vec![queue],
        };
        let request = Message::QueueConfigRequest(PortNo(1));
        all.push(("OFPT_QUEUE_GET_CONFIG_REQUEST", request));
        all.push((
            "OFPT_QUEUE_GET_CONFIG_REPLY",
            Message::QueueConfigReply(reply),
        ));
    }
    all
}

fn common_messages(version: Version) -> Vec<(&'static str, Message)> {
    let error = ErrorMessage::new(Refusal::FlowModBadCommand, version, Vec::new());
    let role = RoleRequest {
        role: Some(Role::Master),
        generation: (version >= Version::V12).then_some(5),
        short_id: None,
    };
    let role_reply = RoleReply {
        role: Role::Slave,
        generation: (version >= Version::V12).then_some(5),
        short_id: None,
    };
    let roles = if version >= Version::V12 {
        ["OFPT_ROLE_REQUEST", "OFPT_ROLE_REPLY"]
    } else {
        ["NXT_ROLE_REQUEST", "NXT_ROLE_REPLY"]
    };
    let status = PortStatus {
        reason: PortReason::Modify,
        port: port_desc(),
    };
    vec![
        (
            "OFPT_HELLO",
            Message::Hello(Hello::new(VersionSet::only(version))),
        ),
        ("OFPT_ERROR", Message::Error(error)),
        ("OFPT_ECHO_REQUEST", Message::EchoRequest(vec![1, 2])),
        ("OFPT_ECHO_REPLY", Message::EchoReply(vec![1, 2])),
        ("OFPT_FEATURES_REQUEST", Message::FeaturesRequest),
        (
            "OFPT_FEATURES_REPLY",
            Message::FeaturesReply(features_reply(version)),
        ),
        ("OFPT_GET_CONFIG_REQUEST", Message::GetConfigRequest),
        (
            "OFPT_GET_CONFIG_REPLY",
            Message::GetConfigReply(SwitchConfig::default()),
        ),
        (
            "OFPT_SET_CONFIG",
            Message::SetConfig(SwitchConfig::default()),
        ),
        ("OFPT_PACKET_IN", Message::PacketIn(packet_in(version))),
        ("OFPT_FLOW_REMOVED", Message::FlowRemoved(flow_removed())),
        ("OFPT_PORT_STATUS", Message::PortStatus(status)),
        ("OFPT_PACKET_OUT", Message::PacketOut(packet_out())),
        ("OFPT_FLOW_MOD", Message::FlowMod(flow_mod())),
        ("OFPT_PORT_MOD", Message::PortMod(port_mod())),
        ("OFPT_BARRIER_REQUEST", Message::BarrierRequest),
        ("OFPT_BARRIER_REPLY", Message::BarrierReply),
        ("NXT_RESUME", Message::Resume(resume())),
        ("NXT_SET_CONTROLLER_ID", Message::ControllerId(7)),
        (roles[0], Message::RoleRequest(role)),
        (roles[1], Message::RoleReply(role_reply)),
    ]
}

fn statistics_replies(version: Version) -> Vec<(&'static str, Message)> {
    let mut all = vec![
        (
            "OFPST_DESC reply",
            MultipartReply::Description(description()),
        ),
        (
            "OFPST_FLOW reply",
            MultipartReply::Flow(FlowFormat::Standard, vec![flow_stats(), flow_stats()]),
        ),
        (
            "OFPST_AGGREGATE reply",
            MultipartReply::Aggregate(FlowFormat::Standard, aggregate_stats()),
        ),
        (
            "OFPST_TABLE reply",
            MultipartReply::Table(vec![table_stats()]),
        ),
        (
            "OFPST_PORT reply",
            MultipartReply::Port(vec![port_stats(), port_stats()]),
        ),
        (
            "OFPST_QUEUE reply",
            MultipartReply::Queue(vec![queue_stats(), queue_stats()]),
        ),
        (
            "OFPST_PORT_DESC reply",
            MultipartReply::PortDesc(vec![port_desc(), port_desc()]),
        ),
    ];
    let (_, name) = flow_monitor_names(version);
    all.push((name, MultipartReply::FlowMonitor(vec![flow_update()])));
    if version >= Version::V13 {
        all.push((
            "OFPST_TABLE_FEATURES reply",
            MultipartReply::TableFeatures(vec![table_features()]),
        ));
    }
    if version >= Version::V14 {
        let desc = table_desc();
        let queue = QueueDesc {
            port: PortNo(1),
            config: queue_config(),
        };
        all.push((
            "OFPST_TABLE_DESC reply",
            MultipartReply::TableDesc(vec![desc]),
        ));
        all.push((
            "OFPST_QUEUE_DESC reply",
            MultipartReply::QueueDesc(vec![queue]),
        ));
    }
    all.into_iter()
        .map(|(name, reply)| (name, Message::reply(reply)))
        .collect()
}

fn statistics_requests(version: Version) -> Vec<(&'static str, Message)> {
    let queues = QueueStatsRequest {
        port: PortNo::ANY,
        queue: QueueId::ALL,
    };
    let rules = FlowStatsRequest::all();
    let mut all = vec![
        ("OFPST_DESC request", MultipartRequest::Description),
        (
            "OFPST_FLOW request",
            MultipartRequest::Flow(FlowFormat::Standard, rules.clone()),
        ),
        (
            "OFPST_AGGREGATE request",
            MultipartRequest::Aggregate(FlowFormat::Standard, rules),
        ),
        ("OFPST_TABLE request", MultipartRequest::Table),
        ("OFPST_PORT request", MultipartRequest::Port(PortNo::ANY)),
        ("OFPST_QUEUE request", MultipartRequest::Queue(queues)),
        (
            "OFPST_PORT_DESC request",
            MultipartRequest::PortDesc(PortNo::ANY),
        ),
    ];
    let (name, _) = flow_monitor_names(version);
    all.push((
        name,
        MultipartRequest::FlowMonitor(vec![flow_monitor_request()]),
    ));
    if version >= Version::V11 {
        all.push(("OFPST_GROUP request", MultipartRequest::Group(GroupId::ALL)));
        all.push((
            "OFPST_GROUP_DESC request",
            MultipartRequest::GroupDesc(GroupId::ALL),
        ));
    }
    if version >= Version::V13 {
        all.push(("OFPST_METER request", MultipartRequest::Meter(MeterId::ALL)));
        all.push((
            "OFPST_METER_CONFIG request",
            MultipartRequest::MeterConfig(MeterId::ALL),
        ));
        all.push((
            "OFPST_METER_FEATURES request",
            MultipartRequest::MeterFeatures,
        ));
        all.push((
            "OFPST_TABLE_FEATURES request",
            MultipartRequest::TableFeatures(Vec::new()),
        ));
    }
    if version >= Version::V14 {
        all.push(("OFPST_TABLE_DESC request", MultipartRequest::TableDesc));
        all.push((
            "OFPST_QUEUE_DESC request",
            MultipartRequest::QueueDesc(queues),
        ));
    }
    all.into_iter()
        .map(|(name, request)| (name, Message::MultipartRequest(request)))
        .collect()
}

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn port_desc() -> PortDesc {
    PortDesc {
        number: PortNo(1),
        hw_addr: MAC,
        name: "eth1".to_owned(),
        config: PortConfig::NO_FWD,
        state: PortState::LINK_DOWN,
        current: PortFeatures::FD_10G,
        advertised: PortFeatures::COPPER,
        supported: PortFeatures::FD_1G,
        peer: PortFeatures::AUTONEG,
        speed_kbps: 10_000_000,
        speed_kbps_max: 10_000_000,
    }
}

fn port_mod() -> PortMod {
    PortMod {
        port: PortNo(1),
        hw_addr: MAC,
        config: PortConfig::DOWN,
        mask: PortConfig::DOWN,
        advertise: PortFeatures::FD_1G.0,
    }
}

fn features_reply(version: Version) -> FeaturesReply {
    let with_ports = version <= Version::V12;
    FeaturesReply {
        features: SwitchFeatures {
            datapath_id: DatapathId(7),
            buffers: 0,
            tables: 254,
            auxiliary_id: 0,
            capabilities: Capabilities::FLOW_STATS,
        },
        ports: if with_ports {
            vec![port_desc(), port_desc()]
        } else {
            Vec::new()
        },
    }
}

/// A flow in the syntax of `ovs-ofctl`.
fn flow_mod() -> FlowMod {
    let text = "cookie=0x5,priority=9,idle_timeout=3,hard_timeout=4,importance=6,send_flow_rem,\
                tcp,nw_dst=10.0.0.0/8,tp_dst=80,actions=mod_nw_dst:10.0.0.1,output:2";
    flow::text::parse_flow(FlowModCommand::Add, text).expect("the text is a flow")
}

fn flow_stats() -> FlowStats {
    let FlowMod {
        matching,
        instructions,
        ..
    } = flow_mod();
    FlowStats {
        table: TableId(3),
        priority: 9,
        cookie: Cookie(5),
        matching,
        instructions,
        idle_timeout_s: 3,
        hard_timeout_s: 4,
        importance: 6,
        flags: FlowFlags::SEND_FLOW_REMOVED,
        duration: Duration::from_millis(1500),
        idle_age: Duration::from_secs(1),
        hard_age: Duration::from_secs(1),
        packets: 10,
        bytes: 640,
    }
}

fn flow_removed() -> FlowRemoved {
    FlowRemoved {
        matching: flow_mod().matching,
        cookie: Cookie(5),
        priority: 9,
        reason: FlowRemovedReason::IdleTimeout,
        table: TableId(3),
        duration: Duration::from_millis(1500),
        idle_timeout_s: 3,
        hard_timeout_s: 4,
        packets: 10,
        bytes: 640,
    }
}

fn packet_in(version: Version) -> PacketIn {
    PacketIn {
        reason: if version >= Version::V14 {
            PacketInReason::Group
        } else {
            PacketInReason::Action
        },
        table: TableId(3),
        cookie: Cookie(5),
        registers: PipelineFields {
            metadata: 8,
            ..PipelineFields::new(PortNo(1))
        },
        total_len: 60,
        data: vec![0; 60],
        userdata: Vec::new(),
        continuation: Vec::new(),
    }
}

fn resume() -> Resume {
    Resume {
        registers: PipelineFields::new(PortNo(1)),
        data: vec![0; 60],
        continuation: Vec::new(),
    }
}

fn packet_out() -> PacketOut {
    PacketOut {
        buffer: None,
        registers: PipelineFields::new(PortNo(1)),
        actions: vec![Action::output(PortNo(2))],
        data: vec![0; 60],
    }
}

fn group_mod() -> GroupMod {
    let bucket = |id, port_desc| Bucket {
        id: BucketId(id),
        weight: 3,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: vec![Action::output(PortNo(port_desc))],
    };
    GroupMod {
        command: GroupModCommand::Add,
        kind: GroupKind::Select,
        group: GroupId(5),
        command_bucket: BucketId::ALL,
        selection: None,
        buckets: vec![bucket(0, 1), bucket(1, 2)],
    }
}

fn meter_mod() -> MeterMod {
    MeterMod {
        command: MeterModCommand::Add,
        flags: MeterFlags::PKTPS,
        meter: MeterId(5),
        bands: vec![Band {
            kind: BandKind::Drop,
            rate: 100,
            burst: 0,
        }],
    }
}

fn role_status() -> RoleStatus {
    RoleStatus {
        role: Role::Slave,
        reason: RoleReason::MasterRequest,
        generation: Some(5),
    }
}

fn description() -> SwitchDescription {
    SwitchDescription {
        manufacturer: "a".to_owned(),
        hardware: "b".to_owned(),
        software: "c".to_owned(),
        serial_number: "d".to_owned(),
        datapath: "e".to_owned(),
    }
}

fn aggregate_stats() -> AggregateStats {
    AggregateStats {
        packets: 1,
        bytes: 2,
        flows: 3,
    }
}

fn table_stats() -> TableStats {
    TableStats {
        table: TableId(3),
        name: String::new(),
        flows_max: 100,
        active: 1,
        lookups: 2,
        matched: 1,
    }
}

fn table_desc() -> TableDesc {
    let limits = VacancyLimits { down: 20, up: 80 };
    TableDesc {
        table: TableId(1),
        config: TableFlags::EVICTION.with(TableFlags::VACANCY_EVENTS),
        eviction: Some(EvictionFlags::IMPORTANCE),
        vacancy: Some(Vacancy { limits, now: 50 }),
    }
}

fn flow_monitor_request() -> MonitorRequest {
    MonitorRequest::Add(Monitor {
        id: MonitorId(1),
        flags: MonitorFlags::ADD,
        request: FlowStatsRequest::all(),
    })
}

fn flow_update() -> FlowUpdate {
    FlowUpdate::Full(Box::new(FlowChange {
        event: FlowEvent::Modified,
        table: TableId(1),
        priority: 5,
        idle_timeout_s: 6,
        hard_timeout_s: 7,
        cookie: Cookie(8),
        matching: Match::any()
            .with(Field::InPort, 1)
            .expect("the value fits the field"),
        instructions: Instructions::apply(vec![Action::output(PortNo(2))]),
    }))
}

/// Names in Open vSwitch of flow monitor requests and replies.
fn flow_monitor_names(version: Version) -> (&'static str, &'static str) {
    match version {
        Version::V10 | Version::V11 | Version::V12 => {
            ("NXST_FLOW_MONITOR request", "NXST_FLOW_MONITOR reply")
        }
        Version::V13 => ("ONFST_FLOW_MONITOR request", "ONFST_FLOW_MONITOR reply"),
        Version::V14 | Version::V15 => ("OFPST_FLOW_MONITOR request", "OFPST_FLOW_MONITOR reply"),
    }
}

fn table_features() -> TableFeatures {
    TableFeatures {
        table: TableId(3),
        name: "three".to_owned(),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        capabilities: TableFlags::default(),
        flows_max: 100,
        command: TableFeaturesCommand::Replace,
        next: vec![TableId(4), TableId(5)],
    }
}

fn port_stats() -> PortStats {
    PortStats {
        port: PortNo(1),
        rx_packets: 1,
        tx_packets: 2,
        rx_bytes: 3,
        tx_bytes: 4,
        rx_dropped: 5,
        tx_dropped: 6,
        rx_errors: 7,
        tx_errors: 8,
        rx_frame_errors: Some(9),
        rx_over_errors: None,
        rx_crc_errors: Some(10),
        collisions: Some(11),
        custom: Vec::new(),
        duration: Duration::from_millis(1500),
    }
}

fn queue_stats() -> QueueStats {
    QueueStats {
        port: PortNo(1),
        queue: QueueId(2),
        tx_bytes: 3,
        tx_packets: 4,
        tx_errors: 5,
        duration: Duration::from_millis(1500),
    }
}

fn queue_config() -> QueueConfig {
    QueueConfig {
        queue: QueueId(2),
        min_rate: Some(100),
        max_rate: Some(500),
    }
}
