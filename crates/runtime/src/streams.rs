//! Writes to streams.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Writes as much of `bytes` as the stream accepts. If `bytes` is empty, flushes the stream: TLS
/// buffers data that the socket did not accept.
pub async fn push<W: AsyncWrite + Unpin>(writer: &mut W, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return writer.flush().await.map(|()| 0);
    }
    match writer.write(bytes).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        count => Ok(count),
    }
}
