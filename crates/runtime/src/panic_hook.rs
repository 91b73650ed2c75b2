//! The end of the process by a panic. A panic of any thread is a bug, after which the state of the
//! others cannot be trusted: a switch without one of its workers answers no barrier and cannot
//! close a port. So the process reports the panic and aborts at once, and its monitor or the service
//! manager restarts it.
//!
//! The hook works in every build profile; `panic = "abort"` of the release profile only makes the
//! code smaller.

use std::backtrace::Backtrace;
use std::io;
use std::panic::PanicHookInfo;
use std::process::abort;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The time limit of the report: a log that blocks must not keep a crashed process alive.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// Replaces the panic hook: a panic of any thread calls `write` with the message and the location,
/// then with the backtrace, and aborts the process.
///
/// `write` gets text of several lines, runs on the thread that panicked, and must take no lock that
/// this thread may hold.
pub fn abort_on_panic(write: impl Fn(&str) + Send + Sync + 'static) {
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    std::panic::set_hook(Box::new(move |info| {
        if IS_REPORTED.swap(true, Ordering::SeqCst) {
            wait_for_end();
        }
        // The sender lives until the process ends.
        let deadline = abort_later();
        write(&message_of(info, thread::current().name()));
        // The message is out before the symbols are read, which may fail.
        write(&Backtrace::force_capture().to_string());
        drop(deadline);
        abort();
    }));
}

/// Writes `text` to standard error without the lock of the standard library, which the thread may
/// hold. Output that cannot be written is lost.
pub fn write_to_stderr(text: &str) {
    let stderr = io::stderr();
    let line = format!("{}\n", text.trim_end());
    let mut rest = line.as_bytes();
    while let Ok(written @ 1..) = rustix::io::write(&stderr, rest) {
        rest = rest.get(written..).unwrap_or_default();
    }
}

/// Returns the first line of the report, and further lines if the message has several.
fn message_of(info: &PanicHookInfo<'_>, thread: Option<&str>) -> String {
    let thread = thread.unwrap_or("unnamed");
    let message = info.payload_as_str().unwrap_or("no message");
    let place = info.location();
    let place = place.map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    format!("thread {thread} panicked at {place}: {message}; the process aborts")
}

/// Keeps a second thread that panics from ending the process before the first report is written.
fn wait_for_end() -> ! {
    loop {
        thread::park();
    }
}

/// Aborts the process after [`REPORT_TIME`]. If no thread can be started, a report that blocks is
/// not limited.
fn abort_later() -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    let started = thread::Builder::new().name("panic".into()).spawn(move || {
        if receiver.recv_timeout(REPORT_TIME) == Err(mpsc::RecvTimeoutError::Timeout) {
            abort();
        }
    });
    drop(started);
    sender
}
