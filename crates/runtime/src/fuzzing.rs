//! Bodies of fuzz targets: requests at the control socket, and files of keys and certificates.

use crate::{tls, unixctl};

/// Parses `data` as requests. The first byte is the size of the pieces in which they arrive.
///
/// # Panics
/// If the requests depend on the pieces.
pub fn unixctl(data: &[u8]) {
    let Some((piece, data)) = data.split_first() else {
        return;
    };
    let whole = unixctl::methods(data, std::iter::empty());
    let pieces = std::iter::repeat(usize::from(*piece) + 1);
    let (methods, is_refused) = unixctl::methods(data, pieces);
    assert_eq!(methods, whole.0);
    // A number at the top level is refused as soon as it may be whole, and waits otherwise.
    assert!(is_refused || !whole.1);
}

/// Parses `data` as certificates and as a private key.
pub fn pem(data: &[u8]) {
    tls::parse_all(data);
}

#[cfg(test)]
mod tests {
    use std::fs;

    fn run(target: &str, body: fn(&[u8])) {
        let corpora = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
        for file in fs::read_dir(format!("{corpora}/{target}")).expect("the corpus exists") {
            let path = file.expect("it can be listed").path();
            body(&fs::read(path).expect("it can be read"));
        }
    }

    #[test]
    fn corpora_of_requests_and_certificates_pass() {
        run("unixctl", super::unixctl);
        run("pem", super::pem);
    }
}
