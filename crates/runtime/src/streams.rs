//! Bytes on their way out.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Writes of `bytes` what there is room for or, if there is none to be written, sees to it
/// that all written before is on its way: TLS keeps what the socket has no room for.
pub async fn push<W: AsyncWrite + Unpin>(writer: &mut W, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return writer.flush().await.map(|()| 0);
    }
    match writer.write(bytes).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        count => Ok(count),
    }
}
