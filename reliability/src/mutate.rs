//! Damaged files: small changes to good ones, the same for the same seed.

/// A stream of numbers (splitmix64).
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Numbers that headers lie with.
const LIES: [u64; 12] =
    [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, i64::MAX as u64, u64::MAX, 1 << 62];

/// Changes a file in one to four places.
pub(crate) fn mutate(seed: &[u8], other: &[u8], draws: &mut Draws) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + draws.below(4) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = draws.below(bytes.len());
        match draws.below(10) {
            0 | 1 => bytes[at] ^= 1 << draws.below(8),
            2 => bytes[at] = draws.next() as u8,
            3 => bytes.truncate(at),
            4 => {
                let end = (at + 1 + draws.below(64)).min(bytes.len());
                bytes.drain(at..end);
            }
            5 => {
                let end = (at + 1 + draws.below(64)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            6 => {
                let (from, length) = (draws.below(other.len()), 1 + draws.below(64));
                let part = other[from.min(other.len())..(from + length).min(other.len())].to_vec();
                let end = (at + part.len()).min(bytes.len());
                bytes.splice(at..end, part);
            }
            // The ends of files hold directories: lies there go further.
            kind => {
                let lie = LIES[draws.below(LIES.len())].wrapping_sub(draws.below(2) as u64);
                let size = [1, 2, 4, 8][draws.below(4)];
                let at = if kind == 9 { bytes.len() - 1 - draws.below(bytes.len().min(64)) } else { at };
                let end = (at + size).min(bytes.len());
                let lie = if draws.below(2) == 0 { lie.to_le_bytes() } else { lie.to_be_bytes() };
                let from = if draws.below(2) == 0 { 0 } else { 8 - size };
                bytes[at..end].copy_from_slice(&lie[from..from + end - at]);
            }
        }
    }
    bytes
}
