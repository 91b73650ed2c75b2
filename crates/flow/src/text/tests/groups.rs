//! Groups and meters: Open vSwitch's output is read and printed unchanged, and random ones are read
//! back.

use base::{BucketId, MeterId};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::sample::select;

use super::random::action;
use super::*;
use crate::group::{
    Bucket, GroupDesc, GroupKind, GroupModCommand, Selection, SelectionFields, SelectionMethod,
};
use crate::meter::{Band, BandKind, MeterConfig, MeterFlags, MeterModCommand};

/// Output of `ovs-ofctl ofp-print` 3.1.0 for group-mods of OpenFlow 1.3.
const GROUPS: [&str; 10] = [
    "group_id=7,type=select,bucket=weight:3,actions=output:1,bucket=weight:5,actions=set_field:02:00:00:00:00:01->eth_dst,output:2",
    "group_id=8,type=all,bucket=actions=output:1,bucket=actions=output:2",
    "group_id=9,type=indirect,bucket=actions=push_vlan:0x8100,set_field:4097->vlan_vid,output:1",
    "group_id=10,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:8,actions=output:2",
    "group_id=11,type=select,bucket=actions=group:8,bucket=weight:0,actions=drop",
    "group_id=1,type=select,selection_method=hash,selection_method_param=7,fields(tun_id,in_port,eth_src,vlan_vid,ip_src=255.255.0.0,ip_dst,tcp_dst=255),bucket=actions=output:1",
    "group_id=1,type=select,selection_method=hash,fields=ip_dst=255.255.255.0,bucket=actions=output:1",
    "group_id=1,type=select,selection_method=hash,fields(packet_type,tun_flags,metadata=0xff00,in_port_oxm,actset_output,reg0=0xff,xreg1,eth_dst=01:00:00:00:00:00,vlan_tci=0xff,ipv6_src=ffff::,nw_tos,ip_frag,tcp_flags=fin|syn,icmp_type),bucket=actions=output:1",
    "group_id=1,type=select,selection_method=hash,fields(vlan_vid=4095,mpls_label,ip_dscp,nw_ecn,nw_ttl,tcp_dst,udp_dst=255,sctp_dst),bucket=actions=output:1",
    "group_id=1,type=select,selection_method=dp_hash,selection_method_param=4294967299,bucket=actions=output:1",
];

/// And of meter-mods.
const METERS: [&str; 3] = [
    "meter=5 kbps burst stats bands=\ntype=drop rate=1000 burst_size=100\ntype=dscp_remark rate=2000 burst_size=200 prec_level=1",
    "meter=5 pktps bands=\ntype=drop rate=1000",
    "meter=controller pktps bands=\ntype=drop rate=10",
];

fn desc(group: &GroupMod) -> GroupDesc {
    GroupDesc {
        kind: group.kind,
        group: group.group,
        selection: group.selection.clone(),
        buckets: group.buckets.clone(),
    }
}

fn config(meter: &MeterMod) -> MeterConfig {
    MeterConfig {
        flags: meter.flags,
        meter: meter.meter,
        bands: meter.bands.clone(),
    }
}

#[test]
fn groups_are_read_and_printed_as_by_open_vswitch() {
    for line in GROUPS {
        let group = parse_group_line(line).expect(line);
        assert_eq!(desc(&group).to_string(), line);
    }
}

#[test]
fn meters_are_read_and_printed_as_by_open_vswitch() {
    for line in METERS {
        let meter = parse_meter_line(line).expect(line);
        assert_eq!(config(&meter).to_string(), line);
    }
}

#[test]
fn bucket_needs_no_keyword_before_actions() {
    let short = "group_id=1,type=select,bucket=weight=4,output:1,dec_ttl,bucket=output:2";
    let long = "group_id=1 type=select bucket=weight:4,actions=output:1,dec_ttl bucket=weight:1 actions=output:2";
    let read = |line| parse_group_line(line).expect(line);
    assert_eq!(read(short), read(long));
}

#[test]
fn buckets_without_a_number_get_the_lowest_that_are_left() {
    let ids = |line| {
        let group = parse_group_line(line).expect(line);
        let ids = group.buckets.into_iter().map(|bucket| bucket.id.0);
        ids.collect::<Vec<_>>()
    };
    let line = "group_id=1,type=all,bucket=output:1,bucket=bucket_id:0,output:2,bucket=output:3";
    assert_eq!(ids(line), [1, 0, 2]);
    let line = "group_id=1,type=all,bucket=bucket_id=7,output:1,bucket=output:2";
    assert_eq!(ids(line), [7, 0]);
}

#[test]
fn buckets_come_and_go_by_their_place() {
    let read = |line| parse_group_line(line).expect(line);
    let place = |line| read(line).command_bucket;
    let line = "insert_bucket group_id=1,command_bucket_id=last,bucket=bucket_id:5,output:2";
    assert_eq!((place(line), read(line).buckets.len()), (BucketId::LAST, 1));
    let line = "remove_bucket group_id=1,command_bucket_id=5";
    assert_eq!((place(line), read(line).buckets.len()), (BucketId(5), 0));
    assert_eq!(place("remove_bucket group_id=1"), BucketId::ALL);
}

#[test]
fn band_may_have_keyword_before_type() {
    let read = |line| parse_meter_line(line).expect(line);
    let each = "meter=1,kbps,band=type=drop,rate=5,band=type=dscp_remark,rate=3,prec_level=2";
    let once = "meter=1 kbps bands=type=drop rate=5 type=dscp_remark rate=3 prec_level=2";
    assert_eq!(read(each), read(once));
}

#[test]
fn deletion_selects_one_or_all() {
    let group = |line| parse_group_line(line).expect(line).group;
    assert_eq!(group("delete group_id=4"), GroupId(4));
    assert_eq!(group("delete group_id=all"), GroupId::ALL);
    assert_eq!(group("delete"), GroupId::ALL);
    let meter = |line| parse_meter_line(line).expect(line).meter;
    assert_eq!(meter("delete meter=4"), MeterId(4));
    assert_eq!(meter("delete meter=slowpath"), MeterId::SLOWPATH);
    assert_eq!(meter("delete"), MeterId::ALL);
}

/// Lines that mean nothing, and the complaint.
#[rustfmt::skip]
const BAD_GROUPS: [(&str, &str); 24] = [
    ("type=all,bucket=drop", "column 21: missing group: `group_id=`"),
    ("group_id=1,bucket=drop", "column 23: missing kind of group: `type=`"),
    ("group_id=all,type=all", "column 1, `group_id=all,type=all`: expected a single group, not all"),
    ("group_id=1,type=any", "column 17, `any`: expected all, select, indirect or ff"),
    ("group_id=1,group_id=2,type=all", "column 12, `group_id`: duplicate key"),
    ("group_id=1,type=all,foo=1", "column 21, `foo`: unknown key of a group"),
    ("group_id=1,type=all,selection_method=hash", "column 38, `hash`: only permitted when a select group is added or modified"),
    ("group_id=1,type=select,selection_method=best", "column 41, `best`: expected hash or dp_hash"),
    ("group_id=1,type=select,selection_method_param=1", "column 24, `selection_method_param`: missing `selection_method=`"),
    ("group_id=1,type=select,selection_method=dp_hash,fields=ip_dst", "column 49, `fields`: `fields` requires `selection_method=hash`"),
    ("group_id=1,type=select,selection_method=hash,fields(ip_dst,nw_dst)", "column 60, `nw_dst`: duplicate key"),
    ("group_id=1,type=select,selection_method=hash,fields=ip_dst=0.0.0.0", "column 53, `ip_dst`: invalid mask for this field"),
    ("group_id=1,type=select,selection_method=hash,fields=nw_proto=3", "column 53, `nw_proto`: invalid mask for this field"),
    ("group_id=1,type=select,selection_method=hash,fields=tcp_dst=1/1", "column 61, `1/1`: expected a mask only"),
    ("delete group_id=1,selection_method=hash", "column 36, `hash`: only permitted when a select group is added or modified"),
    ("group_id=1,type=all,bucket", "column 21, `bucket`: expected `bucket=`"),
    ("group_id=1,type=all,bucket=weight:1", "column 28, `weight:1`: missing actions of the bucket"),
    ("group_id=1,type=all,command_bucket_id=1", "column 1, `group_id=1,type=all,command_bucket_id=1`: `command_bucket_id=` is only permitted when buckets are inserted or removed"),
    ("group_id=1,type=all,bucket=bucket_id:4294967041,drop", "column 38, `4294967041`: invalid bucket id"),
    ("insert_bucket group_id=1,bucket=drop", "column 37: expected `command_bucket_id=` with a number, first or last"),
    ("insert_bucket group_id=1,command_bucket_id=all", "column 47: expected `command_bucket_id=` with a number, first or last"),
    ("insert_bucket group_id=1,type=all", "column 14, ` group_id=1,type=all`: unexpected `type=`: the group has a kind"),
    ("remove_bucket group_id=1,bucket=drop", "column 14, ` group_id=1,bucket=drop`: buckets are removed by id, without a description"),
    ("delete group_id=1,type=all", "column 7, ` group_id=1,type=all`: a deletion contains only the group"),
];

#[rustfmt::skip]
const BAD_METERS: [(&str, &str); 8] = [
    ("kbps,bands=type=drop,rate=1", "column 28: missing meter: `meter=`"),
    ("meter=1,kbps", "column 13: missing bands: `bands=`"),
    ("meter=1,kbps,bands=rate=1", "column 20, `rate`: a band begins with `type=`"),
    ("meter=1,kbps,bands=type=drop", "column 20, `type`: missing `rate=` of the band"),
    ("meter=1,kbps,bands=type=mark,rate=1", "column 25, `mark`: expected drop or dscp_remark"),
    ("meter=1,kbps,bands=type=drop,rate=1,prec_level=1", "column 37, `prec_level`: unknown key of such a band"),
    ("meter=1,kbps,bands=type=dscp_remark,rate=1", "column 20, `type`: missing `prec_level=` of the band"),
    ("meter=1,foo", "column 9, `foo`: unknown key of a meter"),
];

#[test]
fn invalid_groups_and_meters_are_refused_with_position() {
    for (line, complaint) in BAD_GROUPS {
        let error = parse_group_line(line).expect_err(line);
        assert_eq!(error.to_string(), complaint, "{line}");
    }
    for (line, complaint) in BAD_METERS {
        let error = parse_meter_line(line).expect_err(line);
        assert_eq!(error.to_string(), complaint, "{line}");
    }
}

fn selection() -> impl Strategy<Value = Selection> {
    let every = Field::all().map(|row| row.field);
    let every: Vec<_> = every.filter(|field| field.option().is_none()).collect();
    let fields = btree_map(select(every), any::<u128>(), 0..5).prop_map(|masks| {
        let mut fields = SelectionFields::default();
        for (field, mask) in masks {
            // Whole, if it cannot be had in part.
            let some = fields.add(field, mask | 1);
            some.or_else(|_| fields.add(field, u128::MAX))
                .expect("each field is named once");
        }
        SelectionMethod::Hash(fields)
    });
    let method = prop_oneof![fields, Just(SelectionMethod::Datapath)];
    (method, any::<u64>()).prop_map(|(method, param)| Selection { method, param })
}

fn group() -> impl Strategy<Value = GroupMod> {
    let watch = (1..9_u32).prop_map(PortNo);
    let bucket = (any::<u16>(), watch, any::<u32>(), vec(action(), 0..6));
    let bucket = bucket.prop_map(|(weight, watch_port, watch_group, actions)| Bucket {
        id: BucketId(0),
        weight,
        watch_port,
        watch_group: GroupId(watch_group),
        actions,
    });
    let commands = vec![
        GroupModCommand::Add,
        GroupModCommand::Modify,
        GroupModCommand::InsertBuckets,
        GroupModCommand::RemoveBuckets,
    ];
    let places = vec![BucketId::FIRST, BucketId::LAST, BucketId(3), BucketId::MAX];
    (
        select(commands),
        select(GroupKind::ALL.to_vec()),
        select(places),
        0..1000_u32,
        option::of(selection()),
        (0..3_u32, vec(bucket, 0..4)),
    )
        .prop_map(
            |(command, kind, place, group, selection, (first, mut buckets))| {
                for (bucket, id) in buckets.iter_mut().zip(first..) {
                    bucket.id = BucketId(id);
                }
                let (kind, place) = match command {
                    GroupModCommand::InsertBuckets => (GroupKind::All, place),
                    GroupModCommand::RemoveBuckets => {
                        buckets.clear();
                        (GroupKind::All, place)
                    }
                    _ => (kind, BucketId::ALL),
                };
                GroupMod {
                    command,
                    kind,
                    group: GroupId(group),
                    command_bucket: place,
                    selection: selection.filter(|_| kind == GroupKind::Select),
                    buckets,
                }
            },
        )
}

fn meter() -> impl Strategy<Value = MeterMod> {
    let kind = prop_oneof![
        Just(BandKind::Drop),
        any::<u8>().prop_map(BandKind::DscpRemark)
    ];
    let band = (kind, any::<u32>(), any::<u32>());
    let band = band.prop_map(|(kind, rate, burst)| Band { kind, rate, burst });
    let commands = vec![MeterModCommand::Add, MeterModCommand::Modify];
    (select(commands), 0..16_u16, any::<u32>(), vec(band, 1..4)).prop_map(
        |(command, flags, meter, mut bands)| {
            let flags = MeterFlags(flags);
            // Only with its flag has a burst a text.
            if !flags.contains(MeterFlags::BURST) {
                bands.iter_mut().for_each(|band| band.burst = 0);
            }
            MeterMod {
                command,
                flags,
                meter: MeterId(meter),
                bands,
            }
        },
    )
}

proptest! {
    #[test]
    fn random_group_mod_round_trips(group in group()) {
        prop_assert_eq!(parse_group_line(&group.to_string()), Ok(group));
    }

    #[test]
    fn random_meter_mod_round_trips(meter in meter()) {
        prop_assert_eq!(parse_meter_line(&meter.to_string()), Ok(meter.clone()));
        prop_assert_eq!(
            parse_meter_line(&config(&meter).to_string()).map(|read| config(&read)),
            Ok(config(&meter))
        );
    }

    #[test]
    fn random_lines_do_not_panic(
        line in "(add |delete )?(group_id=1|meter=1|type=all|bucket|bands|band)?[,=:( ][a-z=:,() 0-9]{0,40}"
    ) {
        for error in [parse_group_line(&line).err(), parse_meter_line(&line).err()].into_iter().flatten() {
            prop_assert!(error.at <= line.len());
        }
    }
}
