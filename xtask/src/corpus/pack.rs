//! Packs a body, as a server that compresses does.

use std::io::Write;

/// The bytes in the gzip format.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).and_then(|()| gzip.finish()).map_err(|error| error.to_string())
}
