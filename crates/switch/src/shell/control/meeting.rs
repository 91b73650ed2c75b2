//! Where a bridge meets its peers: controllers that it goes to, sockets at which it waits,
//! and those at which questions are answered.

use std::net::TcpListener as StdTcpListener;
use std::path::Path;
use std::sync::Arc;

use tokio::net::{TcpListener, UnixListener};

use super::Control;
use super::site::ListenSite;
use crate::config::{Listen, Target};
use crate::core::connection::Kind;
use crate::error::SwitchError;
use crate::shell::connection::{Purpose, Speaking};
use crate::shell::peers::{Listener, connect, listen};
use crate::shell::rundir::SocketFile;
use crate::shell::unixctl;

impl Control {
    /// Goes to a controller, again and again.
    pub(super) fn add_controller(&mut self, bridge: &str, target: Target) {
        let (now, exchange) = (self.now(), self.tools.exchange.clone());
        let runtime = self.tools.runtime.clone();
        let Some((_, site)) = self.site_named(bridge) else {
            return;
        };
        let purpose = Purpose {
            bridge: Arc::from(bridge),
            kind: Kind::Primary,
            uri: Some(target.to_string().into()),
            speaking: site.speaking.clone(),
        };
        let _in_runtime = runtime.enter();
        let auxiliaries = site.auxiliary.count();
        let task = connect(target.clone(), auxiliaries, purpose, exchange);
        site.bridge.handle_controllers(true, now);
        site.bridge.handle_controller_added(&target.to_string());
        site.controllers.insert(target, task);
    }

    /// Meets the controllers of a bridge anew, who were told what no longer holds.
    pub(super) fn meet_anew(&mut self, bridge: &str) {
        let Some((_, site)) = self.site_named(bridge) else {
            return;
        };
        let targets: Vec<_> = std::mem::take(&mut site.controllers).into_keys().collect();
        for target in targets {
            self.add_controller(bridge, target);
        }
    }

    /// Goes there no more.
    pub(super) fn remove_controller(&mut self, bridge: &str, target: &Target) {
        let now = self.now();
        if let Some((_, site)) = self.site_named(bridge) {
            site.controllers.remove(target);
            site.contacts.remove(target.to_string().as_str());
            site.bridge.handle_controller_removed(&target.to_string());
            site.bridge
                .handle_controllers(!site.controllers.is_empty(), now);
        }
    }

    /// Waits for peers there.
    pub(super) fn add_listener(&mut self, bridge: &str, wanted: Listen) -> Result<(), SwitchError> {
        let Some((_, site)) = self.site_named(bridge) else {
            return Ok(());
        };
        let speaking = site.speaking.clone();
        let listener = match &wanted {
            Listen::Unix(path) => self.listen_unix(bridge, path, &speaking)?,
            Listen::Tcp(address) => {
                let socket = StdTcpListener::bind(address)
                    .and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
                let socket = socket.map_err(|error| SwitchError::Tcp {
                    address: *address,
                    error,
                })?;
                let _in_runtime = self.tools.runtime.enter();
                let socket = TcpListener::from_std(socket)
                    .map_err(SwitchError::system("listening by TCP"))?;
                self.wait_at(bridge, Listener::Tcp(socket), None, &speaking)
            }
        };
        if let Some((_, site)) = self.site_named(bridge) {
            site.listeners.insert(wanted, listener);
        }
        Ok(())
    }

    /// Waits for peers at a Unix socket.
    pub(super) fn listen_unix(
        &self,
        bridge: &str,
        path: &Path,
        speaking: &Speaking,
    ) -> Result<ListenSite, SwitchError> {
        let (socket, file) = SocketFile::bind(path)?;
        let _in_runtime = self.tools.runtime.enter();
        let socket = UnixListener::from_std(socket)
            .map_err(SwitchError::system("listening at a Unix socket"))?;
        Ok(self.wait_at(bridge, Listener::Unix(socket), Some(file), speaking))
    }

    /// Answers questions at this control socket too.
    pub(crate) fn answer_questions(&mut self, path: &Path) -> Result<(), SwitchError> {
        self.unixctl = Some(self.answer_at(path)?);
        Ok(())
    }

    /// Answers questions at a control socket.
    pub(super) fn answer_at(&self, path: &Path) -> Result<ListenSite, SwitchError> {
        let (socket, file) = SocketFile::bind(path)?;
        let _in_runtime = self.tools.runtime.enter();
        let socket = UnixListener::from_std(socket)
            .map_err(SwitchError::system("listening at a Unix socket"))?;
        Ok(ListenSite {
            _task: unixctl::serve(socket, self.tools.inbox.clone()),
            _file: Some(file),
        })
    }

    /// Waits for peers at a socket. To be called within the runtime.
    fn wait_at(
        &self,
        bridge: &str,
        listener: Listener,
        file: Option<SocketFile>,
        speaking: &Speaking,
    ) -> ListenSite {
        let purpose = Purpose {
            bridge: Arc::from(bridge),
            kind: Kind::Service,
            uri: None,
            speaking: speaking.clone(),
        };
        ListenSite {
            _task: listen(listener, purpose, self.tools.exchange.clone()),
            _file: file,
        }
    }
}
