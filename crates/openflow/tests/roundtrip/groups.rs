//! Random messages about groups and meters.

use std::time::Duration;

use base::{BucketId, GroupId, MeterId, PortNo};
use flow::*;
use openflow::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::{option, sample};

use crate::strategies::actions;

fn duration() -> impl Strategy<Value = Duration> {
    let duration = (any::<u32>(), 0..1_000_000_000_u32);
    duration.prop_map(|(seconds, nanos)| Duration::new(seconds.into(), nanos))
}

fn bucket(version: Version) -> impl Strategy<Value = Bucket> {
    let bucket = (any::<(u16, u32, u32)>(), actions(version));
    bucket.prop_map(|((weight, port, group), actions)| Bucket {
        id: BucketId(0),
        weight,
        watch_port: PortNo(port),
        watch_group: GroupId(group),
        actions,
    })
}

/// A list of buckets. Only 1.5 and Nicira's extension of 1.0 can encode an id other than the
/// position.
fn buckets(version: Version) -> impl Strategy<Value = Vec<Bucket>> {
    (vec(bucket(version), 0..4), any::<u8>()).prop_map(move |(mut buckets, first)| {
        let first = match version {
            Version::V10 | Version::V15 => first.into(),
            Version::V11 | Version::V12 | Version::V13 | Version::V14 => 0,
        };
        for (bucket, id) in buckets.iter_mut().zip(first..) {
            bucket.id = BucketId(id);
        }
        buckets
    })
}

fn band() -> impl Strategy<Value = Band> {
    any::<(u32, u32, Option<u8>)>().prop_map(|(rate, burst, level)| Band {
        kind: level.map_or(BandKind::Drop, BandKind::DscpRemark),
        rate,
        burst,
    })
}

/// Replies about groups. OpenFlow 1.0, like 1.5, encodes weights of select groups only.
pub(crate) fn replies(version: Version) -> BoxedStrategy<Message> {
    let stats = (
        any::<(u32, u32)>(),
        any::<(u64, u64)>(),
        duration(),
        vec(any::<(u64, u64)>(), 0..4),
    );
    let stats = stats.prop_map(
        move |((group, references), (packets, bytes), duration, buckets)| {
            let buckets = buckets
                .into_iter()
                .map(|(packets, bytes)| BucketStats { packets, bytes });
            GroupStats {
                group: GroupId(group),
                references,
                packets,
                bytes,
                // A group has a duration from 1.3 on, and in Nicira's extension of 1.0.
                duration: match version {
                    Version::V11 | Version::V12 => Duration::ZERO,
                    _ => duration,
                },
                buckets: buckets.collect(),
            }
        },
    );
    let desc = (any::<u32>(), selection(version), buckets(version));
    let desc = desc.prop_map(|(group, selection, buckets)| GroupDesc {
        kind: GroupKind::Select,
        group: GroupId(group),
        selection,
        buckets,
    });
    let features = any::<(u32, [u32; 4])>().prop_map(|(bits, groups_max)| GroupFeatures {
        capabilities: GroupCapabilities(bits),
        groups_max,
    });
    let replies = prop_oneof![
        vec(stats, 0..4).prop_map(MultipartReply::Group),
        vec(desc, 0..4).prop_map(MultipartReply::GroupDesc),
    ];
    match version {
        Version::V11 => replies.prop_map(Message::from).boxed(),
        _ => prop_oneof![replies, features.prop_map(MultipartReply::GroupFeatures)]
            .prop_map(Message::from)
            .boxed(),
    }
}

/// Replies about meters.
pub(crate) fn meter_replies() -> BoxedStrategy<Message> {
    let stats = (
        any::<(u32, u32)>(),
        any::<(u64, u64)>(),
        duration(),
        vec(any::<(u64, u64)>(), 0..4),
    );
    let stats = stats.prop_map(|((meter, flows), (packets, bytes), duration, bands)| {
        let bands = bands
            .into_iter()
            .map(|(packets, bytes)| BandStats { packets, bytes });
        MeterStats {
            meter: MeterId(meter),
            flows,
            packets,
            bytes,
            duration,
            bands: bands.collect(),
        }
    });
    let config = (any::<(u16, u32)>(), vec(band(), 0..4));
    let config = config.prop_map(|((flags, meter), bands)| MeterConfig {
        flags: MeterFlags(flags),
        meter: MeterId(meter),
        bands,
    });
    let features = any::<(u32, u32, u16, u8, u8)>().prop_map(
        |(meters_max, kinds, flags, bands_max, colours_max)| MeterFeatures {
            meters_max,
            kinds: BandKinds(kinds),
            flags: MeterFlags(flags),
            bands_max,
            colours_max,
        },
    );
    prop_oneof![
        vec(stats, 0..4).prop_map(MultipartReply::Meter),
        vec(config, 0..4).prop_map(MultipartReply::MeterConfig),
        features.prop_map(MultipartReply::MeterFeatures),
    ]
    .prop_map(Message::from)
    .boxed()
}

/// The selection method of a select group, in versions that have it.
fn selection(version: Version) -> BoxedStrategy<Option<Selection>> {
    if !matches!(version, Version::V10 | Version::V15) {
        return Just(None).boxed();
    }
    let every: Vec<Field> = Field::all().map(|row| row.field).collect();
    let every: Vec<Field> = every
        .into_iter()
        .filter(|field| field.info().oxm.is_some() || field.info().nxm.is_some())
        .filter(|field| field.option().is_none())
        .collect();
    let fields = btree_map(sample::select(every), any::<u128>(), 0..5).prop_map(|masks| {
        let mut fields = SelectionFields::default();
        for (field, mask) in masks {
            // The whole field, if it cannot be masked.
            let some = fields.add(field, mask | 1);
            some.or_else(|_| fields.add(field, u128::MAX))
                .expect("each field is named once");
        }
        SelectionMethod::Hash(fields)
    });
    let method = prop_oneof![fields, Just(SelectionMethod::Datapath)];
    let selection = (method, any::<u64>()).prop_map(|(method, param)| Selection { method, param });
    option::of(selection).boxed()
}

/// Changes to groups and meters that the version has.
pub(crate) fn commands(version: Version) -> BoxedStrategy<Message> {
    let group = (
        buckets(version),
        selection(version),
        0..=0xffff_ff00_u32,
        any::<bool>(),
    );
    let group = group.prop_map(move |(buckets, selection, group, insert)| {
        let (command, position) = match version {
            Version::V10 | Version::V15 if insert => {
                (GroupModCommand::InsertBuckets, BucketId::LAST)
            }
            _ if insert => (GroupModCommand::AddOrModify, BucketId::ALL),
            _ => (GroupModCommand::Modify, BucketId::ALL),
        };
        Message::GroupMod(GroupMod {
            command,
            kind: GroupKind::Select,
            group: GroupId(group),
            command_bucket: position,
            selection: selection.filter(|_| command != GroupModCommand::InsertBuckets),
            buckets,
        })
    });
    let meter = (vec(band(), 0..4), 1..=0xffff_0000_u32).prop_map(|(bands, meter)| {
        Message::MeterMod(MeterMod {
            command: MeterModCommand::Add,
            flags: MeterFlags::PKTPS,
            meter: MeterId(meter),
            bands,
        })
    });
    match version {
        Version::V10 | Version::V11 | Version::V12 => group.boxed(),
        Version::V13 | Version::V14 | Version::V15 => prop_oneof![group, meter].boxed(),
    }
}
