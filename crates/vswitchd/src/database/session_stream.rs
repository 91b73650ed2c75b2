//! The stream of a database session. It is served also while a configuration is applied, which may
//! take seconds: ovsdb-server ends a session whose probes are not answered.

use std::io;

use base::Instant;
use ovsdb::Session;
use runtime::push;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadHalf, WriteHalf};

/// The size of the read buffer, in bytes.
const READ_LEN: usize = 64 * 1024;

/// The reason for the end of a stream; none if the server closed it.
pub(super) type Loss = Option<io::Error>;

/// A stream, and its read buffer.
pub(super) struct SessionStream<S> {
    reader: ReadHalf<S>,
    writer: WriteHalf<S>,
    buffer: Vec<u8>,
    /// True if written bytes may still be in the TLS buffer, not in the socket.
    is_flushing: bool,
}

impl<S: AsyncRead + AsyncWrite> SessionStream<S> {
    pub(super) fn new(stream: S) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            reader,
            writer,
            buffer: vec![0; READ_LEN],
            is_flushing: false,
        }
    }

    /// Reads or writes once.
    pub(super) async fn exchange(
        &mut self,
        session: &mut Session,
        now: impl Fn() -> Instant,
    ) -> Result<(), Loss> {
        let is_writing = !session.pending().is_empty() || self.is_flushing;
        tokio::select! {
            read = self.reader.read(&mut self.buffer) => match read {
                Ok(count @ 1..) => session.handle_input(&self.buffer[..count], now()),
                ended => return Err(ended.err()),
            },
            written = push(&mut self.writer, session.pending()), if is_writing => match written {
                Ok(count) => {
                    session.transmitted(count);
                    self.is_flushing = count > 0;
                }
                Err(error) => return Err(Some(error)),
            },
        }
        Ok(())
    }

    /// Serves the session until `work` is done, and returns its result.
    pub(super) async fn serve_during<T>(
        &mut self,
        work: impl Future<Output = T>,
        session: &mut Session,
        now: impl Fn() -> Instant,
    ) -> Result<T, Loss> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                exchanged = self.exchange(session, &now) => exchanged?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ovsdb::SessionOptions;
    use tokio::io::AsyncWriteExt;
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn server_is_answered_while_a_configuration_is_applied() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            let (ours, mut server) = tokio::io::duplex(READ_LEN);
            let mut stream = SessionStream::new(ours);
            let options = SessionOptions {
                database: "Open_vSwitch".to_owned(),
                lock: "lock".to_owned(),
                tables: &[],
            };
            let mut session = Session::new(options, Instant::START);
            let (done, applied) = oneshot::channel();
            let probe = async {
                let echo = br#"{"id":"probe-7","method":"echo","params":[]}"#;
                server.write_all(echo).await.expect("the stream is open");
                let (mut received, mut buffer) = (Vec::new(), [0; 1024]);
                while !String::from_utf8_lossy(&received).contains("probe-7") {
                    let count = server.read(&mut buffer).await.expect("an answer");
                    assert!(count > 0, "the session has ended");
                    received.extend_from_slice(&buffer[..count]);
                }
                done.send(()).expect("the configuration is awaited");
            };
            let serving = stream.serve_during(applied, &mut session, || Instant::START);
            let (served, ()) = tokio::join!(serving, probe);
            assert!(matches!(served, Ok(Ok(()))));
        });
    }
}
