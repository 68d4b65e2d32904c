//! Packs a reply's body, as a server that compresses unasked does. Only runs of one byte get smaller, which is what
//! a gzip bomb is made of; a library would be one more dependency for that.

/// The longest run that one code stands for.
const LONGEST: usize = 258;

/// Text in the gzip format: one block with the fixed codes.
pub(super) fn pack(text: &[u8]) -> Vec<u8> {
    let mut bits = Bits { bytes: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], open: 0, count: 0 };
    // the last block, with fixed codes
    bits.push(0b011, 3);
    let mut rest = text;
    let mut last = None;
    while let Some((byte, after)) = rest.split_first() {
        if last.is_some_and(|last| rest.starts_with(&[last; LONGEST])) {
            // length 258, distance 1
            bits.code(0b1100_0101, 8);
            bits.code(0, 5);
            rest = rest.get(LONGEST..).unwrap_or_default();
        } else {
            let literal = u32::from(*byte);
            match literal {
                0..144 => bits.code(literal.saturating_add(0x30), 8),
                _ => bits.code(literal.saturating_add(0x190 - 144), 9),
            }
            rest = after;
            last = Some(*byte);
        }
    }
    bits.code(0, 7);
    bits.push(0, 7);
    let mut packed = bits.bytes;
    packed.extend(checksum(text).to_le_bytes());
    let length = u64::try_from(text.len()).unwrap_or(0) & u64::from(u32::MAX);
    packed.extend(u32::try_from(length).unwrap_or(0).to_le_bytes());
    packed
}

/// Bits, the lowest of a byte first.
struct Bits {
    bytes: Vec<u8>,
    open: u8,
    count: u32,
}

impl Bits {
    /// A number, its lowest bit first.
    fn push(&mut self, number: u32, count: u32) {
        for place in 0..count {
            self.bit((number >> place) & 1 == 1);
        }
    }

    /// A code, its highest bit first.
    fn code(&mut self, code: u32, count: u32) {
        for place in (0..count).rev() {
            self.bit((code >> place) & 1 == 1);
        }
    }

    fn bit(&mut self, set: bool) {
        self.open |= u8::from(set) << self.count;
        self.count = (self.count.saturating_add(1)) % 8;
        if self.count == 0 {
            self.bytes.push(std::mem::take(&mut self.open));
        }
    }
}

/// CRC-32.
fn checksum(text: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    let table: Vec<u32> = (0..256).map(|byte| (0..8).fold(byte, |sum, _| step(sum))).collect();
    !text.iter().fold(u32::MAX, |sum, byte| {
        let place = usize::from(sum.to_le_bytes()[0] ^ byte);
        (sum >> 8) ^ table.get(place).copied().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn others_can_unpack_it() {
        let long =
            [b"{\"decision\":\"allow\",\"x\":\"".as_slice(), &b"0".repeat(1_000_000), "é\"}".as_bytes()]
                .concat();
        for text in [b"".as_slice(), b"a", &long, &b"0".repeat(259)] {
            let packed = pack(text);
            let gzip = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let Ok(mut gzip) = gzip else { return };
            let mut stdin = gzip.stdin.take().unwrap();
            let writer = std::thread::spawn(move || stdin.write_all(&packed).unwrap());
            let out = gzip.wait_with_output().unwrap();
            writer.join().unwrap();
            assert!(out.status.success() && out.stdout == text, "{} bytes", text.len());
        }
        assert!(pack(&long).len() < 10_000);
    }
}
