//! The connections of a bridge: controllers that it connects to, listeners, and control sockets.

use std::net::TcpListener as StdTcpListener;
use std::path::Path;
use std::sync::Arc;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

use super::Control;
use super::bridge_runtime::{ControllerRuntime, OpenListener};
use crate::error::SwitchError;
use crate::peers::{Listener, connect, listen};
use crate::purpose::{ChannelSettings, Purpose};
use crate::rundir::SocketFile;
use crate::{snoop, unixctl};
use config::{ControllerConfig, ControllerOptions, ListenAddress};
use switch::connection::ConnectionKind;

impl Control {
    /// Connects to a controller; while rules are to be restored, only records it.
    pub(super) fn add_controller(&mut self, bridge: &str, controller: ControllerConfig) {
        let (exchange, waits) = (
            self.tools.exchange.clone(),
            self.configuration.awaits_flows(),
        );
        let runtime = self.tools.runtime.clone();
        let Some((_, site)) = self.site_named(bridge) else {
            return;
        };
        let uri = controller.target.to_string();
        let (sender, tuning) = watch::channel(controller.options);
        let purpose = Purpose {
            bridge: Arc::from(bridge),
            kind: ConnectionKind::Primary,
            uri: Some(uri.as_str().into()),
            peer: Arc::default(),
            channel_settings: site.channel_settings.clone(),
            tuning,
        };
        let _in_runtime = runtime.enter();
        let auxiliaries = site.auxiliary.count();
        let target = controller.target.clone();
        let task = (!waits).then(|| connect(target, auxiliaries, purpose, exchange));
        site.bridge.handle_controller_added(&uri);
        let runtime = ControllerRuntime {
            _task: task,
            tuning: sender,
        };
        site.controllers.insert(controller, runtime);
    }

    /// Sets the timing of a controller's connections, which remain.
    pub(super) fn set_controller_timing(&mut self, bridge: &str, controller: ControllerConfig) {
        let Some((_, site)) = self.site_named(bridge) else {
            return;
        };
        let present = controller.counterpart(site.controllers.keys()).cloned();
        if let Some(runtime) = present.and_then(|present| site.controllers.remove(&present)) {
            runtime.tuning.send_replace(controller.options);
            site.controllers.insert(controller, runtime);
        }
    }

    /// Reconnects the controllers of a bridge after a change of negotiated properties.
    pub(super) fn reconnect_controllers(&mut self, bridge: &str) {
        let Some((_, site)) = self.site_named(bridge) else {
            return;
        };
        let controllers: Vec<_> = std::mem::take(&mut site.controllers).into_keys().collect();
        for controller in controllers {
            self.add_controller(bridge, controller);
        }
    }

    /// Disconnects from a controller.
    pub(super) fn remove_controller(&mut self, bridge: &str, controller: &ControllerConfig) {
        let uri = controller.target.to_string();
        if let Some((_, site)) = self.site_named(bridge) {
            site.controllers.remove(controller);
            site.contacts.remove(uri.as_str());
            site.bridge.handle_controller_removed(&uri);
        }
    }

    /// Records the reason why a controller is not connected.
    pub(super) fn handle_missed(&mut self, bridge: &str, uri: &str, problem: String) {
        let Some((_, site)) = self.site_named(bridge) else {
            return;
        };
        let is_known = site
            .controllers
            .keys()
            .any(|known| known.target.to_string() == uri);
        let contact = site.contacts.entry(uri.into()).or_default();
        if is_known && contact.problem.as_ref() != Some(&problem) {
            contact.problem = Some(problem);
            self.tools.facts_changed.notify_one();
        }
    }

    /// Informs the bridges if they have controllers, after all changes: if one controller replaces
    /// another, rules stay.
    pub(super) fn update_controllers(&mut self) {
        let now = self.now();
        for site in self.sites.values_mut() {
            let any = !site.controllers.is_empty();
            site.bridge.handle_controllers(any, now);
        }
    }

    /// Blocks frames and controllers until a configuration allows them.
    pub(crate) const fn await_flows(&mut self) {
        self.configuration.await_flows();
    }

    /// Starts forwarding and connects to controllers, because rules are restored. This is final:
    /// rules are awaited at the start only.
    pub(super) fn end_flow_restore(&mut self) {
        if self.configuration.config().flow_restore_wait {
            tracing::info!("rules restored; forwarding starts");
        }
        self.configuration.end_flow_restore();
        let names = self.sites.values();
        let names: Vec<_> = names.map(|site| site.bridge.name().to_owned()).collect();
        for name in names {
            self.reconnect_controllers(&name);
        }
        for site in self.sites.values_mut() {
            site.bridge.handle_wait_over();
        }
    }

    /// Opens a listener; a failure is recorded.
    pub(super) fn add_listener(
        &mut self,
        bridge: &str,
        listen: ListenAddress,
    ) -> Result<(), SwitchError> {
        let added = self.listen_at(bridge, listen.clone());
        if let (Err(error), Some((_, site))) = (&added, self.site_named(bridge)) {
            site.not_listening.insert(listen, error.to_string());
        }
        added
    }

    /// Closes a listener.
    pub(super) fn remove_listener(&mut self, bridge: &str, listen: &ListenAddress) {
        if let Some((_, site)) = self.site_named(bridge) {
            site.listeners.remove(listen);
            site.not_listening.remove(listen);
        }
    }

    fn listen_at(&mut self, bridge: &str, listen: ListenAddress) -> Result<(), SwitchError> {
        let Some((_, site)) = self.site_named(bridge) else {
            return Ok(());
        };
        let channel_settings = site.channel_settings.clone();
        let listener = match &listen {
            ListenAddress::Unix(path) => self.listen_unix(
                bridge,
                path,
                &channel_settings,
                ControllerOptions::default(),
            )?,
            ListenAddress::Tcp(address) | ListenAddress::Ssl(address) => {
                let socket = StdTcpListener::bind(address)
                    .and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
                let socket = socket.map_err(|error| SwitchError::Tcp {
                    address: *address,
                    error,
                })?;
                if matches!(listen, ListenAddress::Tcp(_)) && address.ip().is_unspecified() {
                    tracing::warn!(
                        bridge,
                        %listen,
                        "every host that reaches this port controls the bridge; name an address, \
                         or use pssl"
                    );
                }
                let _in_runtime = self.tools.peers_runtime.enter();
                let socket = TcpListener::from_std(socket)
                    .map_err(SwitchError::system("listening by TCP"))?;
                let socket = match &listen {
                    ListenAddress::Ssl(_) => Listener::Ssl(socket),
                    _ => Listener::Tcp(socket),
                };
                self.accept_peers(
                    bridge,
                    socket,
                    None,
                    &channel_settings,
                    ControllerOptions::default(),
                )
            }
        };
        if let Some((_, site)) = self.site_named(bridge) {
            site.listeners.insert(listen, listener);
        }
        Ok(())
    }

    /// Listens at a Unix socket.
    pub(super) fn listen_unix(
        &self,
        bridge: &str,
        path: &Path,
        channel_settings: &ChannelSettings,
        tuning: ControllerOptions,
    ) -> Result<OpenListener, SwitchError> {
        let (socket, file) = SocketFile::bind(path)?;
        let _in_runtime = self.tools.peers_runtime.enter();
        let socket = UnixListener::from_std(socket)
            .map_err(SwitchError::system("listening on a Unix socket"))?;
        Ok(self.accept_peers(
            bridge,
            Listener::Unix(socket),
            Some(file),
            channel_settings,
            tuning,
        ))
    }

    /// Serves snoop clients at a Unix socket.
    pub(super) fn serve_snoop(
        &self,
        bridge: &str,
        path: &Path,
        channel_settings: &ChannelSettings,
    ) -> Result<OpenListener, SwitchError> {
        let (socket, file) = SocketFile::bind(path)?;
        let _in_runtime = self.tools.peers_runtime.enter();
        let socket = UnixListener::from_std(socket)
            .map_err(SwitchError::system("listening on a Unix socket"))?;
        Ok(OpenListener {
            _task: snoop::serve(socket, Arc::from(bridge), channel_settings.feed()),
            _file: Some(file),
        })
    }

    /// Serves commands at the process's control socket.
    pub(crate) fn serve_unixctl_at(&mut self, path: &Path) -> Result<(), SwitchError> {
        self.commands.unixctl = Some(self.serve_commands(path)?);
        Ok(())
    }

    /// Serves commands at a control socket.
    pub(super) fn serve_commands(&self, path: &Path) -> Result<OpenListener, SwitchError> {
        let (socket, file) = SocketFile::bind(path)?;
        let _in_runtime = self.tools.runtime.enter();
        let socket = UnixListener::from_std(socket)
            .map_err(SwitchError::system("listening on a Unix socket"))?;
        Ok(OpenListener {
            _task: unixctl::serve(socket, self.tools.inbox.clone()),
            _file: Some(file),
        })
    }

    /// Accepts peers at a socket. Must be called within the runtime of peers.
    fn accept_peers(
        &self,
        bridge: &str,
        listener: Listener,
        file: Option<SocketFile>,
        channel_settings: &ChannelSettings,
        tuning: ControllerOptions,
    ) -> OpenListener {
        let purpose = Purpose {
            bridge: Arc::from(bridge),
            kind: ConnectionKind::Service,
            uri: None,
            peer: Arc::default(),
            channel_settings: channel_settings.clone(),
            tuning: watch::channel(tuning).1,
        };
        OpenListener {
            _task: listen(listener, purpose, self.tools.exchange.clone()),
            _file: file,
        }
    }
}
