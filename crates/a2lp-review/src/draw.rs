//! The draw: in which order items are shown in an audit. Anyone can repeat it from the seed with SHA-256.

use sha2::{Digest, Sha256};

/// The seed of a draw: 16 random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub [u8; 16]);

impl Seed {
    /// From the system's source of randomness.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Seed(bytes))
    }

    /// The key of a row: the first 8 bytes of SHA-256(seed, row as 8 bytes, lowest first), as a number, highest byte first.
    pub fn key(&self, row: u64) -> u64 {
        let digest = Sha256::new().chain_update(self.0).chain_update(row.to_le_bytes()).finalize();
        digest[..8].iter().fold(0, |key, &byte| key << 8 | u64::from(byte))
    }
}

/// In hexadecimal digits.
impl std::fmt::Display for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for Seed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: Option<Vec<u8>> = text.chars().map(|c| Some(c.to_digit(16)? as u8)).collect();
        let bytes: Vec<u8> =
            digits.unwrap_or_default().chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        match (text.len(), bytes.try_into()) {
            (32, Ok(bytes)) => Ok(Seed(bytes)),
            _ => Err("a seed has 32 hexadecimal digits"),
        }
    }
}

impl serde::Serialize for Seed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Seed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_any_other_sha_256() {
        // hashlib.sha256(bytes(range(16)) + (5).to_bytes(8, "little")).digest()[:8] as a big-endian number
        let seed: Seed = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
        assert_eq!(seed.key(5), KEY_OF_5);
        assert_eq!(seed.to_string().parse(), Ok(seed));
        assert!(
            "0001".parse::<Seed>().is_err() && "zz0102030405060708090a0b0c0d0e0f".parse::<Seed>().is_err()
        );
    }

    const KEY_OF_5: u64 = 0xb368cb9897e6f316;
}
