//! Random messages about flow monitors.

use base::{Cookie, GroupId, TableId, Xid};
use flow::*;
use openflow::*;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies::{actions, matching};

/// A match: before 1.3 it is NXM, with the port numbers of 1.0.
fn supported_match(version: Version) -> BoxedStrategy<Match> {
    match version {
        Version::V11 | Version::V12 => matching(Version::V10),
        _ => matching(version),
    }
}

fn monitor(version: Version) -> impl Strategy<Value = Monitor> {
    let numbers = any::<(u32, u8, u8, u16, u32)>();
    (supported_match(version), numbers).prop_map(
        move |(matching, (id, flags, table, port, group))| Monitor {
            id: MonitorId(id),
            flags: match version {
                Version::V14 | Version::V15 => MonitorFlags(u16::from(flags & 0x7f)),
                _ => MonitorFlags(u16::from(flags & 0x3f)).with(MonitorFlags::ADD),
            },
            request: FlowStatsRequest {
                table: TableId(table),
                out_port: base::PortNo((port & 0x7fff).into()),
                out_group: match version {
                    Version::V14 | Version::V15 => GroupId(group),
                    _ => GroupId::ANY,
                },
                matching,
                ..FlowStatsRequest::all()
            },
        },
    )
}

fn request(version: Version) -> BoxedStrategy<MonitorRequest> {
    let add = monitor(version).prop_map(MonitorRequest::Add);
    match version {
        Version::V14 | Version::V15 => {
            prop_oneof![add, monitor(version).prop_map(MonitorRequest::Modify),].boxed()
        }
        _ => add.boxed(),
    }
}

fn update(version: Version) -> BoxedStrategy<FlowUpdate> {
    let events = [
        FlowEvent::Added,
        FlowEvent::Modified,
        FlowEvent::Removed(FlowRemovedReason::HardTimeout),
        FlowEvent::Removed(FlowRemovedReason::Eviction),
    ];
    let change = (
        prop::sample::select(events.to_vec()),
        any::<(u8, u16, u16, u16, u64)>(),
        supported_match(version),
        actions(version),
    );
    let full = change.prop_map(|(event, numbers, matching, actions)| {
        let (table, priority, idle_timeout_s, hard_timeout_s, cookie) = numbers;
        FlowUpdate::Full(Box::new(FlowChange {
            event,
            table: TableId(table),
            priority,
            idle_timeout_s,
            hard_timeout_s,
            cookie: Cookie(cookie),
            matching,
            instructions: Instructions::apply(actions),
        }))
    });
    let abbrev = any::<u32>().prop_map(|xid| FlowUpdate::Abbrev(Xid(xid)));
    match version {
        Version::V14 | Version::V15 => prop_oneof![
            4 => full,
            1 => abbrev,
            1 => Just(FlowUpdate::Paused),
            1 => Just(FlowUpdate::Resumed),
        ]
        .boxed(),
        _ => prop_oneof![4 => full, 1 => abbrev].boxed(),
    }
}

/// Monitor requests and updates.
pub(crate) fn messages(version: Version) -> BoxedStrategy<Message> {
    let requests = vec(request(version), 0..3)
        .prop_map(|requests| Message::MultipartRequest(MultipartRequest::FlowMonitor(requests)));
    let updates =
        vec(update(version), 0..4).prop_map(|updates| MultipartReply::FlowMonitor(updates).into());
    let own = match version {
        Version::V14 | Version::V15 => any::<u32>()
            .prop_map(|id| {
                let delete = vec![MonitorRequest::Delete(MonitorId(id))];
                Message::MultipartRequest(MultipartRequest::FlowMonitor(delete))
            })
            .boxed(),
        _ => prop_oneof![
            any::<u32>().prop_map(|id| Message::MonitorCancel(MonitorId(id))),
            Just(Message::MonitorPaused),
            Just(Message::MonitorResumed),
        ]
        .boxed(),
    };
    prop_oneof![requests, updates, own].boxed()
}
