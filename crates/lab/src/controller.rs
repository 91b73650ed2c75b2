//! placeholder
use base::Cookie;
use flow::FlowMod;
use std::path::Path;
use std::time::Duration;
use testbed::{Clock, Failure};
pub(crate) type Counts = Vec<(Cookie, u64)>;
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    #[error("not yet")]
    Todo,
    #[error(transparent)]
    Failure(#[from] Failure),
}
pub(crate) struct Listener;
pub(crate) struct Controller;
impl Listener {
    pub(crate) fn bind(_: &Path) -> Result<Self, ControllerError> {
        Err(ControllerError::Todo)
    }
    pub(crate) fn accept(
        self,
        _: &Clock,
        _: Duration,
        _: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Controller, ControllerError> {
        Err(ControllerError::Todo)
    }
}
impl Controller {
    pub(crate) fn install(&self, _: &[FlowMod]) -> Result<(), ControllerError> {
        Err(ControllerError::Todo)
    }
    pub(crate) fn counts(&self) -> Result<Counts, ControllerError> {
        Err(ControllerError::Todo)
    }
    pub(crate) fn packet_ins(&self) -> u64 {
        0
    }
}
