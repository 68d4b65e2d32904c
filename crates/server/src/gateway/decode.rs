//! Takes the compression off an answer that hooks must look at. Bytes go in as they arrive, and what is plain by then
//! comes out; what comes out of one piece is bounded, so that a small answer cannot fill the memory.

use std::io::{self, Write};

/// Most plain bytes that one piece of compressed ones may become at once.
const MOST: usize = 64 << 20;

/// Takes one answer's compression off.
pub(super) enum Decoder {
    Plain,
    Gzip(flate2::write::MultiGzDecoder<Out>),
    Deflate(flate2::write::ZlibDecoder<Out>),
    Brotli(Box<brotli::DecompressorWriter<Out>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Out>>),
}

/// Where plain bytes gather.
#[derive(Default)]
pub(super) struct Out(Vec<u8>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > MOST {
            return Err(io::Error::other("the compressed answer grows beyond all bounds"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// For what the `content-encoding` header says; none when it is not known here.
    pub(super) fn of(encoding: Option<&str>) -> Option<Decoder> {
        let out = Out::default;
        Some(match encoding.unwrap_or("identity").trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Decoder::Plain,
            "gzip" | "x-gzip" => Decoder::Gzip(flate2::write::MultiGzDecoder::new(out())),
            "deflate" => Decoder::Deflate(flate2::write::ZlibDecoder::new(out())),
            "br" => Decoder::Brotli(Box::new(brotli::DecompressorWriter::new(out(), 4096))),
            "zstd" => Decoder::Zstd(Box::new(zstd::stream::write::Decoder::new(out()).ok()?)),
            _ => return None,
        })
    }

    /// Whether there is nothing to take off.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Decoder::Plain)
    }

    /// Takes a piece; hands out what is plain by now.
    ///
    /// # Errors
    /// When it is not what the header said, or grows beyond all bounds.
    pub(super) fn push(&mut self, piece: &[u8], take: impl FnOnce(&[u8])) -> io::Result<()> {
        let out = match self {
            Decoder::Plain => {
                take(piece);
                return Ok(());
            }
            Decoder::Gzip(gzip) => {
                gzip.write_all(piece)?;
                gzip.flush()?;
                gzip.get_mut()
            }
            Decoder::Deflate(deflate) => {
                deflate.write_all(piece)?;
                deflate.flush()?;
                deflate.get_mut()
            }
            Decoder::Brotli(brotli) => {
                brotli.write_all(piece)?;
                brotli.flush()?;
                brotli.get_mut()
            }
            Decoder::Zstd(zstd) => {
                zstd.write_all(piece)?;
                zstd.flush()?;
                zstd.get_mut()
            }
        };
        take(&out.0);
        out.0.clear();
        Ok(())
    }

    /// Whether what came so far can be all.
    ///
    /// # Errors
    /// When it broke off, as far as the encoding tells.
    fn end(&mut self) -> io::Result<()> {
        match self {
            Decoder::Plain | Decoder::Zstd(_) => Ok(()),
            Decoder::Gzip(gzip) => gzip.try_finish(),
            Decoder::Deflate(deflate) => deflate.try_finish(),
            Decoder::Brotli(brotli) => brotli.close(),
        }
    }
}

/// The plain form of a whole body.
///
/// # Errors
/// As [`Decoder::push`]; or the encoding is not known.
pub(super) fn whole(encoding: Option<&str>, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut decoder = Decoder::of(encoding).ok_or_else(|| {
        io::Error::other(format!("unknown content-encoding `{}`", encoding.unwrap_or_default()))
    })?;
    let mut plain = Vec::new();
    decoder.push(bytes, |piece| plain.extend_from_slice(piece))?;
    decoder.end()?;
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(encoding: &str, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match encoding {
            "gzip" => {
                let mut gzip = flate2::write::GzEncoder::new(&mut out, flate2::Compression::default());
                gzip.write_all(text).unwrap();
                gzip.finish().unwrap();
            }
            "deflate" => {
                let mut zlib = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::default());
                zlib.write_all(text).unwrap();
                zlib.finish().unwrap();
            }
            "br" => {
                brotli::CompressorWriter::new(&mut out, 4096, 5, 22).write_all(text).unwrap();
            }
            "zstd" => out = zstd::encode_all(text, 3).unwrap(),
            _ => out.extend_from_slice(text),
        }
        out
    }

    #[test]
    fn every_encoding_comes_off_however_it_is_cut() {
        let text = "data: {\"a\": \"日本語 text text text\"}\n\n".repeat(50);
        for encoding in ["identity", "gzip", "deflate", "br", "zstd"] {
            let bytes = compressed(encoding, text.as_bytes());
            for size in [1, 7, bytes.len()] {
                let mut decoder = Decoder::of(Some(encoding)).unwrap();
                let mut plain = Vec::new();
                for piece in bytes.chunks(size) {
                    decoder.push(piece, |piece| plain.extend_from_slice(piece)).unwrap();
                }
                assert_eq!(String::from_utf8(plain).unwrap(), text, "{encoding} {size}");
            }
        }
    }

    #[test]
    fn what_it_is_not_and_bombs_are_refused() {
        assert!(Decoder::of(Some("rot13")).is_none());
        assert!(whole(Some("gzip"), b"no gzip").is_err());
        for encoding in ["gzip", "br"] {
            let cut = compressed(encoding, b"{\"a\": \"text text text\"}");
            assert!(whole(Some(encoding), &cut[..cut.len() - 9]).is_err(), "{encoding}");
        }
        let bomb = compressed("gzip", &vec![0; 65 << 20]);
        assert!(whole(Some("gzip"), &bomb).is_err());
    }
}
