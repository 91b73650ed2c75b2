//! The threads of the daemon: the control thread, the workers, sockets, the clock and the control
//! socket's commands. The decisions are made in [`switch`].
//!
//! [`run`] serves one configuration. [`operate`] starts the same threads for a program that
//! configures the switch itself, by a [`ControlHandle`].

mod accept_pause;
mod busy_poll;
mod checkpoint_file;
mod clock;
mod connection;
mod control;
#[cfg(test)]
mod counter_catalog;
mod cpu;
mod error;
mod facts;
mod flushes;
#[cfg(any(all(test, not(feature = "model")), feature = "fuzzing"))]
pub mod fuzzing;
mod handle;
mod inbox;
mod links;
mod log_control;
mod message_log;
mod metrics;
#[cfg(all(test, feature = "model"))]
mod model;
mod outbox;
mod panic_hook;
mod parallel;
mod peers;
mod process;
mod purpose;
mod reaper;
mod rundir;
mod service_manager;
mod signals;
mod snoop;
mod start;
mod stream_decoder;
mod streams;
mod task;
mod telemetry_snapshot;
mod test_fault;
mod tls;
mod underlay;
mod unixctl;
mod watchdog;
mod worker_thread;

pub use clock::{Clock, wall};
pub use dpdk::IS_ENABLED as HAS_DPDK;
pub use error::SwitchError;
pub use facts::{BridgeFacts, ControllerFacts, Facts, PortFacts, TreeFacts};
pub use flushes::FlushRequest;
pub use handle::ControlHandle;
pub use log_control::LogControl;
pub use panic_hook::{abort_on_panic, write_to_stderr};
pub use rundir::rundir_file;
pub use service_manager::notify_ready;
pub use start::{Setup, Startup, operate, run};
pub use streams::push;
pub use switch::VERSION;
pub use tls::Secrets;

/// The name of the daemon that Comporta replaces; messages, sockets and pidfile use it.
pub const PROGRAM: &str = "ovs-vswitchd";
