//! NumPy's array format: a short text header, then the elements.

use super::arrays::Arrays;
use super::elements::{ElementType, Header, bytes_of};
use crate::column::Column;
use crate::error::Problem;
use crate::rows::Rows;
use crate::write::Array;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

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
/// An `.npy` file.
pub(super) fn write(array: &Array, mut file: &mut dyn Write) -> std::io::Result<()> {
    let (descr, shape) = match array {
        Array::Numbers { descr, shape, .. } => ((*descr).to_string(), shape.clone()),
        Array::Words(words) => (format!("<U{}", Array::width(words)), vec![words.len()]),
    };
    let shape = match shape[..] {
        [length] => format!("({length},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The elements start at a multiple of 64 bytes.
    let padded = (10 + header.len() + 1).next_multiple_of(64);
    header.extend(std::iter::repeat_n(' ', padded - 11 - header.len()));
    header.push('\n');
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(header.len() as u16).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    match array {
        Array::Numbers { write, .. } => write(&mut file),
        Array::Words(words) => {
            let width = Array::width(words);
            for word in words {
                let characters = word.chars().chain(std::iter::repeat('\0')).take(width);
                let bytes: Vec<u8> = characters.flat_map(|c| (c as u32).to_le_bytes()).collect();
                file.write_all(&bytes)?;
            }
            Ok(())
        }
    }
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
    use half::f16;

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
