//! Elements of arrays as files hold them: their type and order, and numbers, labels and words decoded from their bytes.

use crate::column::Column;
use crate::error::Problem;
use crate::rows::Rows;
use half::f16;
use std::fmt;
use std::io::Read;

/// Type of the elements of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// IEEE float of this many bytes.
    Float(usize),
    /// The upper two bytes of a float of four.
    BrainFloat,
    /// Signed integer of this many bytes.
    Signed(usize),
    /// Unsigned integer of this many bytes.
    Unsigned(usize),
    /// True or false, one byte.
    Bool,
    /// Fixed-length byte strings.
    Bytes(usize),
    /// Fixed-length strings of 4-byte characters.
    Unicode(usize),
    /// Numbers written as text.
    Text,
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementType::Float(bytes) => write!(f, "float{}", 8 * bytes),
            ElementType::BrainFloat => write!(f, "bfloat16"),
            ElementType::Signed(bytes) => write!(f, "int{}", 8 * bytes),
            ElementType::Unsigned(bytes) => write!(f, "uint{}", 8 * bytes),
            ElementType::Bool => write!(f, "bool"),
            ElementType::Bytes(_) | ElementType::Unicode(_) => write!(f, "string"),
            ElementType::Text => write!(f, "text"),
        }
    }
}

/// What a file says about an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) element: ElementType,
    pub(super) big_endian: bool,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<usize>,
    /// Bytes of one element.
    pub(super) size: usize,
    /// Bytes of all elements; known not to overflow.
    pub(crate) bytes: u64,
}
/// Most words of no characters that are read: they take no bytes, so a file can claim any number.
const MAX_EMPTY_WORDS: usize = 64 << 10;

impl Header {
    /// The same with bytes or elements in another order.
    pub(crate) fn ordered(self, big_endian: bool, fortran_order: bool) -> Self {
        Header { big_endian, fortran_order, ..self }
    }

    /// Little-endian numbers, row after row, as other formats hold them.
    pub(crate) fn plain(element: ElementType, shape: Vec<usize>) -> Result<Self, Problem> {
        let size = match element {
            ElementType::Float(size) | ElementType::Signed(size) | ElementType::Unsigned(size) => size,
            ElementType::BrainFloat => 2,
            _ => 1,
        };
        let bytes = bytes_of(&shape, size)?;
        Ok(Header { element, big_endian: false, fortran_order: false, shape, size, bytes })
    }

    /// Rows and columns of a feature matrix.
    pub(crate) fn matrix_shape(&self) -> Result<(usize, usize), Problem> {
        match (&self.shape[..], self.element) {
            (_, ElementType::Bytes(_) | ElementType::Unicode(_)) => {
                Err(Problem::ElementType("string".into()))
            }
            (&[rows, columns], _) => Ok((rows, columns)),
            _ => Err(Problem::Dimensions {
                what: "features",
                wanted: "two dimensions (items × features)",
                shape: self.shape.clone(),
            }),
        }
    }

    /// Streams the elements of a matrix, row-major whatever their order in the file. Where that is column after column, the
    /// caller knows that the file is as long as it claims.
    pub(crate) fn read_matrix(&self, reader: &mut impl Read, rows: &mut Rows) -> Result<(), Problem> {
        let (height, width) = self.matrix_shape()?;
        let mut values = Vec::new();
        if !self.fortran_order {
            return self.for_each_block(reader, |bytes| {
                self.decode_numbers(bytes, &mut values);
                rows.push(&values)
            });
        }
        let (out, mut at) = (rows.whole()?, 0);
        self.for_each_block(reader, |bytes| {
            self.decode_numbers(bytes, &mut values);
            for &value in &values {
                out[at % height * width + at / height] = value;
                at += 1;
            }
            Ok(())
        })
    }

    /// Reads through all elements and keeps none, to see that they are there.
    pub(crate) fn prove(&self, reader: &mut impl Read) -> Result<(), Problem> {
        self.for_each_block(reader, |_| Ok(()))
    }

    /// Reads a vector of numbers.
    pub(crate) fn read_vector(&self, reader: &mut impl Read) -> Result<Vec<f32>, Problem> {
        let [_] = self.shape[..] else {
            let (what, wanted) = ("weights", "one dimension");
            return Err(Problem::Dimensions { what, wanted, shape: self.shape.clone() });
        };
        let (mut all, mut values) = (Vec::new(), Vec::new());
        self.for_each_block(reader, |bytes| {
            self.decode_numbers(bytes, &mut values);
            all.extend_from_slice(&values);
            Ok(())
        })?;
        Ok(all)
    }

    /// Bytes of one element.
    #[cfg(feature = "tables")]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// One value per row?
    pub(crate) fn is_vector(&self) -> bool {
        matches!(self.shape[..], [_] | [_, 1] | [1, _])
    }

    /// Reads a single word.
    pub(crate) fn read_scalar(&self, reader: &mut impl Read) -> Result<String, Problem> {
        let one = Header { shape: vec![1], ..self.clone() };
        Ok(one.read_column(reader)?.into_strings().pop().unwrap_or_default())
    }

    /// Reads a vector of labels or names.
    pub(crate) fn read_column(&self, reader: &mut impl Read) -> Result<Column, Problem> {
        if !self.is_vector() {
            let (what, wanted) = ("labels", "one dimension");
            return Err(Problem::Dimensions { what, wanted, shape: self.shape.clone() });
        }
        match self.element {
            ElementType::Bytes(_) | ElementType::Unicode(_) => {
                let mut strings = Vec::new();
                let mut bad = None;
                self.for_each_element(reader, |bytes| {
                    let text = self.decode_string(bytes);
                    bad = bad.or(text.is_none().then_some(strings.len()));
                    strings.push(text.unwrap_or_default());
                })?;
                match bad {
                    Some(row) => Err(Problem::Row { row, message: "not a valid string".into() }),
                    None => Ok(Column::Strings(strings)),
                }
            }
            ElementType::Float(_) | ElementType::BrainFloat => {
                let mut integers = Vec::new();
                let mut bad = None;
                self.for_each_element(reader, |bytes| {
                    let value = self.decode_float(bytes);
                    let whole = value.fract() == 0.0 && value.abs() < 9e15;
                    bad = bad.or((!whole).then_some((integers.len(), value)));
                    integers.push(value as i64);
                })?;
                match bad {
                    Some((row, value)) => Err(Problem::Row { row, message: format!("{value} is no class") }),
                    None => Ok(Column::Integers(integers)),
                }
            }
            _ => {
                let mut integers = Vec::new();
                self.for_each_element(reader, |bytes| integers.push(self.decode_integer(bytes)))?;
                Ok(Column::Integers(integers))
            }
        }
    }

    /// Hands the bytes of every element to `take`, in file order.
    fn for_each_element(&self, reader: &mut impl Read, mut take: impl FnMut(&[u8])) -> Result<(), Problem> {
        if self.size == 0 {
            // Strings of no characters take no bytes; `bytes` says nothing about their number.
            let count: usize = self.shape.iter().product();
            (0..count.min(MAX_EMPTY_WORDS)).for_each(|_| take(&[]));
            return Ok(());
        }
        self.for_each_block(reader, |bytes| {
            bytes.chunks_exact(self.size).for_each(&mut take);
            Ok(())
        })
    }

    /// Reads whole elements, many at a time.
    fn for_each_block(
        &self,
        reader: &mut impl Read,
        mut take: impl FnMut(&[u8]) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut left = self.bytes;
        let largest = ((1 << 20) / self.size.max(1)).max(1) * self.size;
        let mut block = vec![0u8; left.min(largest as u64) as usize];
        while left > 0 {
            let length = left.min(block.len() as u64) as usize;
            let part = &mut block[..length];
            let mut filled = 0;
            while filled < part.len() {
                match reader.read(&mut part[filled..])? {
                    0 => {
                        let found = self.bytes - left + filled as u64;
                        return Err(Problem::Truncated { promised: u128::from(self.bytes), found });
                    }
                    n => filled += n,
                }
            }
            take(part)?;
            left -= part.len() as u64;
        }
        Ok(())
    }

    /// Replaces `values` by the numbers in `bytes`.
    pub(crate) fn decode_numbers(&self, bytes: &[u8], values: &mut Vec<f32>) {
        values.clear();
        let elements = bytes.chunks_exact(self.size.max(1));
        match (self.element, self.big_endian) {
            // What nearly every file holds, without detours.
            (ElementType::Float(4), false) => {
                values.extend(elements.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
            }
            (ElementType::Float(_) | ElementType::BrainFloat, _) => {
                values.extend(elements.map(|bytes| self.decode_float(bytes) as f32));
            }
            _ => values.extend(elements.map(|bytes| self.decode_integer(bytes) as f32)),
        }
    }

    fn decode_float(&self, bytes: &[u8]) -> f64 {
        let raw = self.decode_raw(bytes);
        match bytes.len() {
            2 if self.element == ElementType::BrainFloat => f64::from(f32::from_bits((raw as u32) << 16)),
            2 => f16::from_bits(raw as u16).to_f64(),
            4 => f64::from(f32::from_bits(raw as u32)),
            _ => f64::from_bits(raw),
        }
    }

    /// Up to eight bytes as an unsigned number.
    fn decode_raw(&self, bytes: &[u8]) -> u64 {
        let mut raw = [0u8; 8];
        raw[..bytes.len()].copy_from_slice(bytes);
        if self.big_endian {
            raw[..bytes.len()].reverse();
        }
        u64::from_le_bytes(raw)
    }

    fn decode_integer(&self, bytes: &[u8]) -> i64 {
        let raw = self.decode_raw(bytes);
        match self.element {
            ElementType::Signed(size) => {
                let unused = 64 - 8 * size as u32;
                (raw << unused) as i64 >> unused
            }
            ElementType::Bool => i64::from(raw != 0),
            _ => i64::try_from(raw).unwrap_or(i64::MAX),
        }
    }

    /// A fixed-length string without its padding.
    fn decode_string(&self, bytes: &[u8]) -> Option<String> {
        if let ElementType::Bytes(_) = self.element {
            let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |at| at + 1);
            return String::from_utf8(bytes[..end].to_vec()).ok();
        }
        let characters: Option<String> =
            bytes.chunks_exact(4).map(|c| char::from_u32(self.decode_raw(c) as u32)).collect();
        characters.map(|text| text.trim_end_matches('\0').to_string())
    }
}
/// Bytes of all elements, where memory could hold them.
pub(super) fn bytes_of(shape: &[usize], size: usize) -> Result<u64, Problem> {
    shape
        .iter()
        .try_fold(size as u64, |product, &n| product.checked_mul(n as u64))
        .filter(|&bytes| usize::try_from(bytes).is_ok_and(|b| b <= isize::MAX as usize))
        .ok_or_else(|| Problem::Header(format!("shape {shape:?} is larger than any memory")))
}
