//! The log, as the `vlog/` commands of the control socket use it.

/// The log of a process whose levels, patterns and file can be changed while it runs
/// (ovs-appctl(8), "Logging commands").
pub trait LogControl: Send + Sync {
    /// Returns the answer of `vlog/list`: the levels by module and destination.
    fn levels(&self) -> String;

    /// Returns the answer of `vlog/list-pattern`.
    fn patterns(&self) -> String;

    /// Returns true if a module has this name.
    fn has_module(&self, name: &str) -> bool;

    /// Applies one argument of `vlog/set`.
    ///
    /// # Errors
    /// The argument is malformed.
    fn set(&self, spec: &str) -> Result<(), String>;

    /// Closes the log file until it is opened again.
    fn close(&self);

    /// Opens the log file again.
    ///
    /// # Errors
    /// There is no log file, or it cannot be opened.
    fn reopen(&self) -> Result<(), String>;
}
