//! Table configuration and features, and vacancy events.

use std::collections::BTreeMap;

use base::{Instant, TableId, Xid};
use flow::{Field, Refusal, TableFlags, TableMod};
use openflow::{
    ForwardedRequest, Message, MultipartReply, MultipartRequest, RequestForward, TableFeatures,
    TableFeaturesCommand, Version,
};
use pipeline::{EvictionPolicy, NameAuthor, TableMiss};

use super::{Bridge, ConnectionId, Effect};
use crate::monitors::Author;
use config::TableConfig;

/// The maximum number of incomplete multipart requests of a connection.
const FRAGMENTED_MAX: usize = 4;

/// The maximum number of entries of such a request: every table four times, or more monitors than a
/// connection may have.
const ENTRIES_MAX: usize = 1024;

impl Bridge {
    /// Executes a table-mod. In 1.1 and 1.2 it sets the treatment of frames without a matching
    /// rule (OF 1.1.0, A.3.3); in 1.3, where the table does not decide about them, it has no effect
    /// (OF 1.3.5, 7.3.4.2).
    pub(super) fn table_mod(
        &mut self,
        id: ConnectionId,
        command: &TableMod,
    ) -> Result<(), Refusal> {
        let version = self.peer(id)?.version;
        let supported = match version {
            Version::V10 => TableFlags::default(),
            Version::V11 | Version::V12 => TableFlags::DEPRECATED,
            Version::V13 | Version::V14 | Version::V15 => TableFlags::DEPRECATED
                .with(TableFlags::EVICTION)
                .with(TableFlags::VACANCY_EVENTS),
        };
        if command.table > TableId::LAST && command.table != TableId::ALL {
            return Err(Refusal::TableModBadTable);
        }
        if command.config.0 & !supported.0 != 0 {
            return Err(Refusal::TableModBadConfig);
        }
        match version {
            Version::V11 | Version::V12 => {
                let miss = miss_of(command.config).ok_or(Refusal::TableModBadConfig)?;
                self.tables.pipeline.set_table_miss(command.table, miss)?;
                self.publication.request();
            }
            Version::V10 | Version::V13 => {}
            Version::V14 | Version::V15 => {
                self.tables.pipeline.table_mod(command)?;
                self.record_vacancy_events();
            }
        }
        Ok(())
    }

    /// Records the vacancy events of the tables.
    pub(super) fn record_vacancy_events(&mut self) {
        let events = self.tables.pipeline.take_vacancy_events();
        self.notifications.record_vacancy(events);
    }

    /// Sends vacancy events to subscribed peers.
    pub(super) fn send_table_status(&mut self, effects: &mut Vec<Effect>) {
        for status in self.notifications.take_vacancy_events() {
            let wants = |peer: &crate::connection::Connection| {
                peer.version >= Version::V14 && peer.wants_table_status(status.reason)
            };
            self.notify(Message::TableStatus(status), wants, effects);
        }
    }

    /// Forwards a group-mod or meter-mod to other subscribed controllers.
    pub(super) fn forward(
        &self,
        request: ForwardedRequest,
        (by, xid): Author,
        effects: &mut Vec<Effect>,
    ) {
        let wants = |id: ConnectionId| id != by;
        let is_subscribed = self
            .connections
            .iter()
            .any(|(id, peer)| wants(id) && peer.wants_request(&request));
        if is_subscribed {
            let message = Message::RequestForward(RequestForward {
                xid,
                request: request.clone(),
            });
            self.notify_others(by, message, |peer| peer.wants_request(&request), effects);
        }
    }

    /// Stores a part of a multipart request until the last part arrives.
    pub(super) fn fragment(
        &mut self,
        id: ConnectionId,
        xid: Xid,
        part: MultipartRequest,
    ) -> Result<(), Refusal> {
        let fragments = &mut self.peer(id)?.fragments;
        let earlier = fragments.remove(&xid);
        if earlier.is_none() && fragments.len() >= FRAGMENTED_MAX {
            return Err(Refusal::RequestMultipartOverflow);
        }
        let request = append_part(earlier, part)?;
        fragments.insert(xid, request);
        Ok(())
    }

    /// Returns a multipart request with its earlier parts.
    pub(super) fn complete_request(
        &mut self,
        id: ConnectionId,
        xid: Xid,
        part: MultipartRequest,
    ) -> Result<MultipartRequest, Refusal> {
        let earlier = self.peer(id)?.fragments.remove(&xid);
        append_part(earlier, part)
    }

    /// Sets table features: all, or none if one is invalid. Only the names can change; capabilities
    /// and sizes are fixed. A table that can do more than the request lists continues to.
    pub(super) fn set_table_features(
        &mut self,
        id: ConnectionId,
        requested: &[TableFeatures],
    ) -> Result<(), Refusal> {
        let version = self.peer(id)?.version;
        if requested.len() > usize::from(TableId::LAST.0) + 1 {
            return Err(Refusal::TableFeaturesTooMany);
        }
        requested
            .iter()
            .try_for_each(|table| self.check_features(table, version))?;
        for features in requested {
            let name = requested_name(features);
            let author = NameAuthor::Controller;
            self.tables
                .pipeline
                .name_table(features.table, name, author);
        }
        Ok(())
    }

    fn check_features(&self, requested: &TableFeatures, version: Version) -> Result<(), Refusal> {
        let capabilities = TableFlags::DEPRECATED
            .with(TableFlags::EVICTION)
            .with(TableFlags::VACANCY_EVENTS);
        if requested.table > TableId::LAST {
            return Err(Refusal::TableFeaturesBadTable);
        }
        let pipeline = &self.tables.pipeline;
        if !pipeline.may_name_table(requested.table, requested_name(requested)) {
            return Err(Refusal::TableFeaturesPermission);
        }
        if requested.command == TableFeaturesCommand::Disable {
            return Err(Refusal::TableFeaturesBadCommand);
        }
        if requested.capabilities.0 & !capabilities.0 != 0 {
            return Err(Refusal::TableFeaturesBadCapabilities);
        }
        // Until 1.4 a request leaves the size alone (OF 1.3.5, 7.3.5.5.1).
        let size = self.table_features(requested.table, version).flows_max;
        if version == Version::V15 && requested.flows_max != size {
            return Err(Refusal::TableFeaturesBadSize);
        }
        Ok(())
    }

    /// Returns the features of all tables.
    pub(super) fn all_table_features(
        &mut self,
        id: ConnectionId,
    ) -> Result<MultipartReply, Refusal> {
        let version = self.peer(id)?.version;
        let tables = (0..=TableId::LAST.0).map(TableId);
        let features = tables.map(|table| self.table_features(table, version));
        Ok(MultipartReply::TableFeatures(features.collect()))
    }

    fn table_features(&self, table: TableId, version: Version) -> TableFeatures {
        let capabilities = match version {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => TableFlags::default(),
            Version::V14 | Version::V15 => TableFlags::EVICTION.with(TableFlags::VACANCY_EVENTS),
        };
        TableFeatures {
            table,
            name: self.tables.pipeline.table_name(table),
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            capabilities,
            flows_max: self.tables.pipeline.reported_flows_max(table),
            command: TableFeaturesCommand::Replace,
            next: (table.0 + 1..=TableId::LAST.0).map(TableId).collect(),
        }
    }

    /// Limits the number of rules of a table.
    pub fn limit_flows(&mut self, table: TableId, rules: usize) {
        self.tables.pipeline.set_flows_max(table, rules);
    }

    /// Applies the operator's whole configuration of a table. The controllers' settings remain.
    pub fn configure_table(&mut self, table: TableId, config: &TableConfig, now: Instant) {
        let pipeline = &mut self.tables.pipeline;
        pipeline.name_table(table, &config.name, NameAuthor::Operator);
        let limit = config.limit.unwrap_or(usize::MAX);
        let policy = EvictionPolicy {
            is_enabled: config.eviction,
            groups: config.groups.clone().into(),
        };
        match &config.prefixes {
            Some(names) => {
                let fields = names.iter().filter_map(|name| field_named(name));
                self.tables.prefixes.insert(table, fields.collect());
            }
            None => drop(self.tables.prefixes.remove(&table)),
        }
        let mut changes = self.tables.pipeline.limit_table(table, limit, policy, now);
        self.note(&mut changes, None);
        self.publication.request();
    }

    /// Returns the configured prefix fields of tables, which megaflows distinguish.
    pub const fn prefixes(&self) -> &BTreeMap<TableId, Vec<Field>> {
        &self.tables.prefixes
    }
}

/// Returns the field with this name, the specification's or that of `ovs-ofctl`.
fn field_named(name: &str) -> Option<Field> {
    let mut rows = Field::all();
    let row = rows.find(|row| row.ofctl == name || row.name == name)?;
    Some(row.field)
}

/// Returns the treatment of misses in a table's configuration of 1.1 and 1.2: `OFPTC_TABLE_MISS_*`.
const fn miss_of(config: TableFlags) -> Option<TableMiss> {
    match config.0 & TableFlags::DEPRECATED.0 {
        0 => Some(TableMiss::Controller),
        1 => Some(TableMiss::Continue),
        2 => Some(TableMiss::Drop),
        _ => None,
    }
}

/// Returns the name that a request gives a table. Its default name is no name.
fn requested_name(features: &TableFeatures) -> &str {
    let is_default = features.name == format!("table{}", features.table);
    if is_default { "" } else { &features.name }
}

/// Appends a part of a multipart request to the earlier ones.
fn append_part(
    earlier: Option<MultipartRequest>,
    part: MultipartRequest,
) -> Result<MultipartRequest, Refusal> {
    let Some(mut request) = earlier else {
        return Ok(part);
    };
    if request.entries() + part.entries() > ENTRIES_MAX {
        return Err(Refusal::RequestMultipartOverflow);
    }
    let joined = request.append(part);
    joined.map_err(|_| Refusal::RequestBadMultipart)?;
    Ok(request)
}
