//! A walk through Thrift's compact encoding, in which Parquet describes itself.
//!
//! Parquet's library makes room for as many entries as a list claims to have. This walk goes first and sees that they are
//! there.

use crate::error::Problem;

/// Deepest nesting accepted.
const MAX_DEPTH: usize = 32;

/// Bytes not yet walked over.
pub(crate) struct Walk<'a>(pub(crate) &'a [u8]);

/// The numbers among the first fields of a struct, by field number.
pub(crate) type Numbers = [Option<i64>; 16];

impl Walk<'_> {
    /// Walks over a struct, to its end.
    pub(crate) fn structure(&mut self) -> Result<Numbers, Problem> {
        self.structure_at(0)
    }

    fn structure_at(&mut self, depth: usize) -> Result<Numbers, Problem> {
        if depth > MAX_DEPTH {
            return Err(wrong("nested too deeply"));
        }
        let mut numbers = Numbers::default();
        let mut field = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(numbers);
            }
            field = match head >> 4 {
                0 => self.number()?,
                step => field.saturating_add(i64::from(step)),
            };
            let kind = head & 15;
            if let 4..=6 = kind {
                let number = self.number()?;
                if let Some(slot) = usize::try_from(field).ok().and_then(|at| numbers.get_mut(at)) {
                    *slot = Some(number);
                }
            } else if !matches!(kind, 1 | 2) {
                // The value of a flag is part of the head.
                self.value(kind, depth)?;
            }
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<(), Problem> {
        match kind {
            1..=3 => self.byte().map(drop),
            4..=6 => self.number().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                self.values(count, &[head & 15], depth)
            }
            11 => match self.varint()? {
                0 => Ok(()),
                count => {
                    let kinds = self.byte()?;
                    self.values(count, &[kinds >> 4, kinds & 15], depth)
                }
            },
            12 => self.structure_at(depth + 1).map(drop),
            _ => Err(wrong("an unknown type")),
        }
    }

    fn values(&mut self, count: u64, kinds: &[u8], depth: usize) -> Result<(), Problem> {
        // Every value takes a byte at least.
        if count > self.0.len() as u64 || depth > MAX_DEPTH {
            return Err(wrong("a list is longer than the file"));
        }
        (0..count).try_for_each(|_| kinds.iter().try_for_each(|&kind| self.value(kind, depth + 1)))
    }

    fn byte(&mut self) -> Result<u8, Problem> {
        let (&first, rest) = self.0.split_first().ok_or_else(|| wrong("it ends too early"))?;
        self.0 = rest;
        Ok(first)
    }

    fn skip(&mut self, length: u64) -> Result<(), Problem> {
        let rest = usize::try_from(length).ok().and_then(|length| self.0.get(length..));
        self.0 = rest.ok_or_else(|| wrong("it ends too early"))?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Problem> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(wrong("a number is too long"))
    }

    fn number(&mut self) -> Result<i64, Problem> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

fn wrong(message: &str) -> Problem {
    Problem::damaged("Parquet", format!("its description is damaged: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_behind_other_fields() {
        // 1: i32 -3, 2: list of two strings, 3: struct with a flag, 4: i64 300, end
        let bytes = [0x15, 5, 0x19, 0x28, 1, b'a', 0, 0x1c, 0x11, 0, 0x16, 0xd8, 0x04, 0, 99];
        let mut walk = Walk(&bytes);
        let numbers = walk.structure().unwrap();
        assert_eq!((numbers[1], numbers[4]), (Some(-3), Some(300)));
        assert_eq!(walk.0, [99]);
    }

    #[test]
    fn a_list_longer_than_the_file_is_refused() {
        let bytes = [0x19, 0xfc, 0xff, 0xff, 0xff, 0x7f, 0, 0];
        assert!(Walk(&bytes).structure().unwrap_err().to_string().contains("longer than the file"));
        let deep = [0x1c; 100];
        assert!(Walk(&deep).structure().unwrap_err().to_string().contains("deeply"));
    }
}
