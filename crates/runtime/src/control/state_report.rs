//! The state of the bridges, for the process that writes it into a database.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Instant, PortNo};

use super::Control;
use super::bridge_runtime::{BridgeRuntime, PortRuntime};
use super::commands::features::capabilities;
use crate::facts::{BridgeFacts, ControllerFacts, Facts, PortFacts, TreeFacts};
use crate::handle::ControlHandle;
use config::ControllerConfig;
use control_api::RunDir;
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;
use ports::dummy::DummyHandle;
use switch::bridge::{BridgeSpanningTree, PortMonitor};

impl Control {
    /// Returns the run directory.
    pub(crate) fn rundir(&self) -> RunDir {
        self.tools.rundir.clone()
    }

    /// Returns a handle of this thread.
    pub(crate) fn handle_of_this(&self) -> ControlHandle {
        let facts_changed = Arc::clone(&self.tools.facts_changed);
        let flushes = Arc::clone(&self.tools.flushes);
        ControlHandle::new(
            self.tools.inbox.clone(),
            (facts_changed, flushes),
            self.tools.clock,
        )
    }

    /// Returns the state of all bridges.
    pub(super) fn facts(&self) -> Facts {
        let now = self.now();
        let sites = self.sites.iter();
        let facts = |(id, site): (&BridgeId, &BridgeRuntime)| {
            let custom = |port| {
                let key = PortKey { bridge: *id, port };
                self.dummies.handles().get(&key).map(DummyHandle::counters)
            };
            (site.bridge.name().to_owned(), facts_of(site, custom, now))
        };
        Facts {
            bridges: sites.map(facts).collect(),
            failed: self.configuration.failed().clone(),
            capabilities: capabilities(),
        }
    }
}

/// Returns the state of a bridge; `custom` returns the further counters of a dummy.
fn facts_of(
    site: &BridgeRuntime,
    custom: impl Fn(PortNo) -> Option<Vec<(String, u64)>>,
    now: Instant,
) -> BridgeFacts {
    let counted = site.bridge.port_stats(PortNo::ANY, now);
    let mut counted: BTreeMap<_, _> = counted
        .unwrap_or_default()
        .into_iter()
        .map(|statistics| (statistics.port, statistics))
        .collect();
    let port = |(number, port): (&PortNo, &PortRuntime)| {
        let device = match &port.device {
            Some(device) => Ok(device.status()),
            None => Err(port
                .problem
                .clone()
                .unwrap_or_else(|| "it is not open".to_owned())),
        };
        let facts = PortFacts {
            device,
            complaint: port.complaint.clone(),
            link_resets: port.link_resets,
            statistics: counted.remove(number),
            custom: custom(*number),
            lacp_current: site.bridge.is_lacp_current(*number),
            bfd: site
                .bridge
                .port_monitor(*number)
                .and_then(PortMonitor::bfd_status),
            cfm: site
                .bridge
                .port_monitor(*number)
                .and_then(PortMonitor::cfm_status),
        };
        (*number, facts)
    };
    let controller = |controller: &ControllerConfig| {
        let uri = controller.target.to_string();
        let contact = site.contacts.get(uri.as_str()).cloned().unwrap_or_default();
        let since = |then: Option<Instant>| then.map(|then| (now - then).as_secs());
        let facts = ControllerFacts {
            role: site.bridge.role_of(&uri),
            since_connect: since(contact.connected),
            since_disconnect: since(contact.disconnected),
            last_error: contact.problem,
        };
        (uri, facts)
    };
    BridgeFacts {
        datapath_id: site.bridge.datapath_id(),
        ports: site.ports.iter().map(port).collect(),
        mirrors: site.bridge.mirrored(),
        controllers: site.controllers.keys().map(controller).collect(),
        tree: site
            .bridge
            .spanning()
            .map(|tree| tree_facts(site, tree, now)),
        not_listening: site.not_listening.clone(),
        active_members: site.bridge.active_members(),
    }
}

fn tree_facts(site: &BridgeRuntime, spanning: &BridgeSpanningTree, now: Instant) -> TreeFacts {
    let (config, tree) = (spanning.config(), spanning.tree());
    let entries: BTreeMap<_, _> = site.bridge.ports().collect();
    let ports = config.ports.iter().filter_map(|(number, port)| {
        let since = entries.get(number)?.since.max(spanning.since());
        let info = tree.port(*number)?;
        Some((port.name.clone(), (info, (now - since).as_secs())))
    });
    let root_port = tree.root_port().and_then(|number| tree.port(number));
    TreeFacts {
        protocol: config.protocol,
        id: tree.settings().id,
        root: *tree.root(),
        root_port: root_port.map(|info| info.settings.id),
        ports: ports.collect(),
    }
}
