//! NumPy's array format: a short text header, then the elements.

use crate::arrays::Arrays;
use crate::column::Column;
use crate::error::Problem;
use crate::rows::Rows;
use half::f16;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

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

/// What a header says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) element: ElementType,
    big_endian: bool,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<usize>,
    /// Bytes of one element.
    size: usize,
    /// Bytes of all elements; known not to overflow.
    pub(crate) bytes: u64,
}

/// Longest header accepted; NumPy itself stops at 10,000 characters by default.
const MAX_HEADER: usize = 64 << 10;

impl Header {
    /// Opens a file that is as long as its header says, and leaves the reader at the first element.
    pub(crate) fn open(path: &Path) -> Result<(Self, BufReader<File>), Problem> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut reader = BufReader::new(file);
        let header = Self::read(&mut reader)?;
        if header.bytes > length {
            return Err(Problem::Truncated { promised: u128::from(header.bytes), found: length });
        }
        Ok((header, reader))
    }

    /// Reads a header and leaves `reader` at the first element.
    pub(crate) fn read(reader: &mut impl Read) -> Result<Self, Problem> {
        let wrong = |message: &str| Problem::Header(message.into());
        let mut magic = [0u8; 8];
        read_all(reader, &mut magic, "the header")?;
        if &magic[..6] != b"\x93NUMPY" {
            return Err(wrong("it does not begin with \\x93NUMPY"));
        }
        let mut length = [0u8; 4];
        let length = match magic[6] {
            1 => {
                read_all(reader, &mut length[..2], "the header")?;
                u32::from_le_bytes(length) as usize
            }
            2 | 3 => {
                read_all(reader, &mut length, "the header")?;
                u32::from_le_bytes(length) as usize
            }
            version => return Err(Problem::Header(format!("version {version} is unknown"))),
        };
        if length > MAX_HEADER {
            return Err(Problem::Header(format!("a header of {length} bytes is too long")));
        }
        let mut text = vec![0u8; length];
        read_all(reader, &mut text, "the header")?;
        Self::parse(std::str::from_utf8(&text).map_err(|_| wrong("it is not text"))?)
    }

    /// The Python dictionary with the keys `descr`, `fortran_order` and `shape`.
    fn parse(text: &str) -> Result<Self, Problem> {
        let wrong = |message: &str| Problem::Header(message.into());
        let after = |key: &str| {
            let rest = [format!("'{key}'"), format!("\"{key}\"")]
                .iter()
                .find_map(|quoted| text.split_once(quoted.as_str()).map(|(_, rest)| rest.trim_start()))
                .and_then(|rest| rest.strip_prefix(':'));
            rest.map(str::trim_start).ok_or_else(|| Problem::Header(format!("no '{key}'")))
        };
        let descr = after("descr")?;
        let Some(quote) = descr.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
            return Err(Problem::ElementType("structured".into()));
        };
        let descr = descr[1..].split(quote).next().unwrap_or("");
        let fortran_order = match after("fortran_order")? {
            v if v.starts_with("True") => true,
            v if v.starts_with("False") => false,
            _ => return Err(wrong("fortran_order is neither True nor False")),
        };
        let tuple = after("shape")?.strip_prefix('(').and_then(|s| s.split_once(')'));
        let tuple = tuple.ok_or_else(|| wrong("shape is not a tuple"))?.0;
        let shape = tuple
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| part.trim_end_matches('L').parse::<usize>())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| wrong("shape holds something other than sizes"))?;

        let (element, size, big_endian) = parse_descr(descr)?;
        let bytes = bytes_of(&shape, size)?;
        Ok(Header { element, big_endian, fortran_order, shape, size, bytes })
    }

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
            (0..count.min(MAX_HEADER)).for_each(|_| take(&[]));
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

/// One array, and nothing else.
pub(crate) struct NpyFile {
    header: Header,
    reader: BufReader<File>,
}

impl NpyFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let (header, reader) = Header::open(path)?;
        Ok(NpyFile { header, reader })
    }
}

impl Arrays for NpyFile {
    fn names(&self) -> Vec<String> {
        vec!["the array".into()]
    }

    fn is_nameless(&self) -> bool {
        true
    }

    fn header(&mut self, _: &str) -> Result<Header, Problem> {
        Ok(self.header.clone())
    }

    fn read_matrix(&mut self, _: &str, rows: &mut Rows) -> Result<(), Problem> {
        rows.reserve_all()?;
        self.header.read_matrix(&mut self.reader, rows)
    }

    fn read_column(&mut self, _: &str) -> Result<Column, Problem> {
        self.header.read_column(&mut self.reader)
    }
}

/// Bytes of all elements, where memory could hold them.
fn bytes_of(shape: &[usize], size: usize) -> Result<u64, Problem> {
    shape
        .iter()
        .try_fold(size as u64, |product, &n| product.checked_mul(n as u64))
        .filter(|&bytes| usize::try_from(bytes).is_ok_and(|b| b <= isize::MAX as usize))
        .ok_or_else(|| Problem::Header(format!("shape {shape:?} is larger than any memory")))
}

/// Element type, bytes of an element, big-endian?
fn parse_descr(descr: &str) -> Result<(ElementType, usize, bool), Problem> {
    let unsupported = || Problem::ElementType(descr.chars().take(40).collect());
    let (order, rest) = match descr.as_bytes().first() {
        Some(b'<' | b'|' | b'=') => (false, &descr[1..]),
        Some(b'>') => (true, &descr[1..]),
        _ => (false, descr),
    };
    let kind = rest.chars().next().ok_or_else(unsupported)?;
    let number: usize = rest[kind.len_utf8()..].parse().map_err(|_| unsupported())?;
    let (element, size) = match (kind, number) {
        ('f', 2 | 4 | 8) => (ElementType::Float(number), number),
        ('i', 1 | 2 | 4 | 8) => (ElementType::Signed(number), number),
        ('u', 1 | 2 | 4 | 8) => (ElementType::Unsigned(number), number),
        ('b', 1) => (ElementType::Bool, 1),
        ('S' | 'a', _) if number <= 1 << 16 => (ElementType::Bytes(number), number),
        ('U', _) if number <= 1 << 14 => (ElementType::Unicode(number), 4 * number),
        _ => return Err(unsupported()),
    };
    Ok((element, size, order))
}

fn read_all(reader: &mut impl Read, buffer: &mut [u8], what: &str) -> Result<(), Problem> {
    reader.read_exact(buffer).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Problem::Header(format!("the file ends within {what}")),
        _ => Problem::Io(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn matrix(bytes: &[u8]) -> Result<Vec<f32>, Problem> {
        let mut reader = bytes;
        let header = Header::read(&mut reader)?;
        let (rows, columns) = header.matrix_shape()?;
        let mut out = Vec::new();
        header.read_matrix(&mut reader, &mut Rows::new(&mut out, rows * columns, rows * columns))?;
        Ok(out)
    }

    #[test]
    fn both_orders_and_all_float_types_give_the_same_matrix() {
        let rows = [1.5f64, -2.0, 0.25, 3.0, 4.0, -0.5];
        let columns = [1.5f64, 3.0, -2.0, 4.0, 0.25, -0.5];
        let le = |values: &[f64], size: usize, big: bool| -> Vec<u8> {
            let encode = |&v: &f64| {
                let mut bytes = match size {
                    2 => f16::from_f64(v).to_le_bytes().to_vec(),
                    4 => (v as f32).to_le_bytes().to_vec(),
                    _ => v.to_le_bytes().to_vec(),
                };
                if big {
                    bytes.reverse();
                }
                bytes
            };
            values.iter().flat_map(encode).collect()
        };
        let want: Vec<f32> = rows.iter().map(|&v| v as f32).collect();
        for size in [2, 4, 8] {
            for (sign, big) in [("<", false), (">", true)] {
                let descr = format!("{sign}f{size}");
                assert_eq!(matrix(&file(&descr, "False", "(2, 3)", &le(&rows, size, big))).unwrap(), want);
                assert_eq!(matrix(&file(&descr, "True", "(2, 3)", &le(&columns, size, big))).unwrap(), want);
            }
        }
        assert_eq!(matrix(&file("|u1", "False", "(1, 2)", &[7, 255])).unwrap(), [7.0, 255.0]);
    }

    #[test]
    fn labels_may_be_integers_whole_floats_or_strings() {
        let read = |bytes: Vec<u8>| {
            let mut reader = &bytes[..];
            Header::read(&mut reader)?.read_column(&mut reader)
        };
        assert_eq!(
            read(file("<i2", "False", "(2,)", &[255, 255, 3, 0])).unwrap(),
            Column::Integers(vec![-1, 3])
        );
        let floats: Vec<u8> = [2f32, 5.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(read(file("<f4", "False", "(2, 1)", &floats)).unwrap(), Column::Integers(vec![2, 5]));
        let broken: Vec<u8> = [2f32, f32::NAN].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(
            read(file("<f4", "False", "(2,)", &broken)).unwrap_err().to_string(),
            "row 1: NaN is no class"
        );
        let unicode: Vec<u8> = "ä\0mug".chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
        let mut padded = unicode[..8].to_vec();
        padded.extend([0; 4]);
        padded.extend(&unicode[8..]);
        assert_eq!(
            read(file("<U3", "False", "(2,)", &padded)).unwrap(),
            Column::Strings(vec!["ä".into(), "mug".into()])
        );
        assert_eq!(
            read(file("|S4", "False", "(2,)", b"mug\0bike")).unwrap(),
            Column::Strings(vec!["mug".into(), "bike".into()])
        );
    }

    #[test]
    fn hostile_headers_are_refused_without_allocating() {
        let huge = file("<f4", "False", "(4294967296, 4294967296)", &[]);
        assert!(matrix(&huge).unwrap_err().to_string().contains("larger than any memory"));
        assert!(matches!(matrix(&file("|O", "False", "(2, 3)", &[])), Err(Problem::ElementType(_))));
        assert!(matches!(matrix(&file("<f4", "False", "(-1, 3)", &[])), Err(Problem::Header(_))));
        assert!(matches!(matrix(&file("<f4", "Maybe", "(1, 3)", &[])), Err(Problem::Header(_))));
        assert!(matches!(matrix(&file("<f4", "False", "(3,)", &[0; 12])), Err(Problem::Dimensions { .. })));
        assert!(matches!(matrix(b"\x93NUMPY\x01\x00"), Err(Problem::Header(_))));
        assert!(matches!(matrix(b"\x93NUMPY\x02\x00\xff\xff\xff\xff"), Err(Problem::Header(_))));
        assert!(matches!(
            matrix(&file("<f4", "False", "(1, 3)", &[0; 11])),
            Err(Problem::Truncated { found: 11, .. })
        ));
    }
}
