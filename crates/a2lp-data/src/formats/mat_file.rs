//! MATLAB's files of version 5 to 7: variables one after the other, each usually compressed on its own. Matrices stand column
//! after column. (Version 7.3 is HDF5.)

use super::arrays::Arrays;
use super::elements::{ElementType, Header};
use crate::column::Column;
use crate::error::{MAX_EXPANSION, Problem};
use crate::rows::Rows;
use crate::write::{Array, ArrayFile, Output};
use flate2::bufread::ZlibDecoder;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes before the first variable.
const PREAMBLE: u64 = 128;
const MAX_VARIABLES: usize = 100_000;
/// Bytes of the longest word in a cell array.
const MAX_WORD: u64 = 1 << 20;
/// Kinds of elements, by their number in the format.
const COMPRESSED: u32 = 15;
const MATRIX: u32 = 14;
/// Compressed matrices beyond this size are read through once before room is made for them.
const UNPROVED: u64 = 8 << 20;

/// An open file.
pub(crate) struct MatFile {
    file: File,
    big_endian: bool,
    variables: Vec<Variable>,
}

/// Where a variable stands.
struct Variable {
    name: String,
    /// Of its element, tag included.
    start: u64,
    bytes: u64,
    is_compressed: bool,
}

/// The beginning of an element: its kind, its size and, when it is short, what it holds.
struct Tag {
    kind: u32,
    bytes: u64,
    short: Option<[u8; 4]>,
}

/// What stands before the numbers of a variable.
struct Described {
    name: String,
    /// What kind of variable.
    class: u8,
    is_complex: bool,
    shape: Vec<usize>,
}

impl MatFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut preamble = [0u8; PREAMBLE as usize];
        file.read_exact(&mut preamble).map_err(|_| wrong("it ends within its first line"))?;
        let big_endian = match &preamble[126..] {
            b"IM" => false,
            b"MI" => true,
            _ => return Err(wrong("it does not say in which order its bytes stand")),
        };
        let mut found = MatFile { file, big_endian, variables: Vec::new() };
        let mut start = PREAMBLE;
        while start + 8 <= length {
            found.file.seek(SeekFrom::Start(start))?;
            let tag = found.tag(&mut found.file.try_clone()?)?;
            let bytes = tag.bytes + 8;
            if start + bytes > length {
                return Err(Problem::Truncated { promised: u128::from(start + bytes), found: length });
            }
            let is_compressed = tag.kind == COMPRESSED;
            if is_compressed || tag.kind == MATRIX {
                let mut variable = Variable { name: String::new(), start, bytes, is_compressed };
                variable.name = found.describe(&variable)?.0.name;
                found.variables.push(variable);
            }
            if found.variables.len() > MAX_VARIABLES {
                return Err(wrong("implausibly many variables"));
            }
            start += bytes;
        }
        Ok(found)
    }

    fn find(&self, name: &str) -> Result<&Variable, Problem> {
        let found = self.variables.iter().find(|variable| variable.name == name);
        found.ok_or_else(|| Problem::Archive(format!("no variable '{name}'")))
    }

    fn word(&self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn tag(&self, reader: &mut impl Read) -> Result<Tag, Problem> {
        let [mut first, mut second] = [[0u8; 4]; 2];
        reader.read_exact(&mut first).and_then(|()| reader.read_exact(&mut second)).map_err(ended)?;
        let kind = self.word(first);
        // An element of at most four bytes is stored in its own tag.
        if kind >> 16 != 0 {
            let bytes = kind >> 16;
            if bytes > 4 {
                return Err(wrong("a short element of more than four bytes"));
            }
            return Ok(Tag { kind: kind & 0xffff, bytes: u64::from(bytes), short: Some(second) });
        }
        Ok(Tag { kind, bytes: u64::from(self.word(second)), short: None })
    }

    /// The kind of a short element, or of one of up to `most` bytes, and what it holds.
    fn small(&self, reader: &mut impl Read, most: u64) -> Result<(u32, Vec<u8>), Problem> {
        let tag = self.tag(reader)?;
        if let Some(short) = tag.short {
            return Ok((tag.kind, short[..tag.bytes as usize].to_vec()));
        }
        if tag.bytes > most {
            return Err(wrong(format!("{} bytes where at most {most} can be", tag.bytes)));
        }
        let mut bytes = vec![0u8; tag.bytes.next_multiple_of(8) as usize];
        reader.read_exact(&mut bytes).map_err(ended)?;
        bytes.truncate(tag.bytes as usize);
        Ok((tag.kind, bytes))
    }

    /// The words of a cell array of text.
    fn words(&self, described: &Described, mut reader: Box<dyn Read>) -> Result<Vec<String>, Problem> {
        let count = described.shape.iter().try_fold(1usize, |count, &side| count.checked_mul(side));
        let mut words = Vec::new();
        for row in 0..count.ok_or_else(|| wrong("a cell array that is too large"))? {
            let no_text = || Problem::Row { row, message: "a cell that is not text".into() };
            let tag = self.tag(&mut reader)?;
            if tag.kind != MATRIX || tag.bytes == 0 {
                return Err(no_text());
            }
            let cell = self.describe_here(&mut reader)?;
            if cell.class != 4 || cell.shape.iter().filter(|&&side| side > 1).count() > 1 {
                return Err(no_text());
            }
            let (kind, bytes) = self.small(&mut reader, MAX_WORD)?;
            let word = match kind {
                1 | 2 | 16 => String::from_utf8(bytes).ok(),
                4 | 17 => {
                    let unit = |b: &[u8]| {
                        if self.big_endian {
                            u16::from_be_bytes([b[0], b[1]])
                        } else {
                            u16::from_le_bytes([b[0], b[1]])
                        }
                    };
                    String::from_utf16(&bytes.chunks_exact(2).map(unit).collect::<Vec<_>>()).ok()
                }
                _ => None,
            };
            words.push(word.ok_or_else(no_text)?);
        }
        Ok(words)
    }

    /// A variable without its numbers, and a reader that stands before them.
    fn describe(&self, variable: &Variable) -> Result<(Described, Box<dyn Read>), Problem> {
        let mut file = self.file.try_clone()?;
        let skip = if variable.is_compressed { 8 } else { 0 };
        file.seek(SeekFrom::Start(variable.start + skip))?;
        let plain = BufReader::new(file).take(variable.bytes - skip);
        let mut reader: Box<dyn Read> = match variable.is_compressed {
            true => Box::new(BufReader::new(ZlibDecoder::new(plain))),
            false => Box::new(plain),
        };
        let tag = self.tag(&mut reader)?;
        if tag.kind != MATRIX || tag.short.is_some() {
            return Err(wrong("a variable that is no array"));
        }
        Ok((self.describe_here(&mut reader)?, reader))
    }

    fn describe_here(&self, mut reader: &mut dyn Read) -> Result<Described, Problem> {
        let (_, flags) = self.small(&mut reader, 8)?;
        let Some(&[a, b, c, d]) = flags.get(..4) else {
            return Err(wrong("a variable without its kind"));
        };
        let flags = self.word([a, b, c, d]);
        let (_, shape) = self.small(&mut reader, 256)?;
        let shape = shape.chunks_exact(4).map(|b| self.word([b[0], b[1], b[2], b[3]]) as usize).collect();
        let (_, name) = self.small(&mut reader, 4096)?;
        let name = String::from_utf8(name).map_err(|_| wrong("a name that is not text"))?;
        Ok(Described { name, class: flags as u8, is_complex: flags & 0x800 != 0, shape })
    }

    /// The numbers of a variable.
    fn numbers(&self, name: &str) -> Result<(Header, impl Read), Problem> {
        let variable = self.find(name)?;
        let (described, mut reader) = self.describe(variable)?;
        let refused = |what: &str| {
            let message = format!("'{name}' is {what}; a2lp reads full arrays of real numbers");
            Err(Problem::Unsupported(message))
        };
        match described.class {
            1 => return refused("a cell array"),
            2 | 3 => return refused("a struct or an object"),
            4 => return refused("text"),
            5 => return refused("a sparse matrix"),
            6..=15 if described.is_complex => return refused("complex"),
            6..=15 => {}
            _ => return refused("of an unknown kind"),
        }
        let tag = self.tag(&mut reader)?;
        let element = match tag.kind {
            1 => ElementType::Signed(1),
            2 => ElementType::Unsigned(1),
            3 => ElementType::Signed(2),
            4 => ElementType::Unsigned(2),
            5 => ElementType::Signed(4),
            6 => ElementType::Unsigned(4),
            7 => ElementType::Float(4),
            9 => ElementType::Float(8),
            12 => ElementType::Signed(8),
            13 => ElementType::Unsigned(8),
            other => return Err(Problem::ElementType(format!("number {other} of MATLAB"))),
        };
        let header = Header::plain(element, described.shape)?.ordered(self.big_endian, true);
        let most = if variable.is_compressed { MAX_EXPANSION } else { 1 } * variable.bytes;
        if header.bytes != tag.bytes || tag.bytes > most {
            return Err(Problem::Truncated {
                promised: u128::from(header.bytes),
                found: tag.bytes.min(most),
            });
        }
        let short = tag.short.map_or(Vec::new(), |short| short[..tag.bytes as usize].to_vec());
        Ok((header, std::io::Cursor::new(short).chain(reader)))
    }
}

impl Arrays for MatFile {
    fn names(&self) -> Vec<String> {
        self.variables.iter().map(|variable| variable.name.clone()).collect()
    }

    fn header(&mut self, name: &str) -> Result<Header, Problem> {
        let (described, _) = self.describe(self.find(name)?)?;
        if described.class == 1 {
            return Header::plain(ElementType::Bytes(1), described.shape);
        }
        Ok(self.numbers(name)?.0)
    }

    fn read_matrix(&mut self, name: &str, rows: &mut Rows) -> Result<(), Problem> {
        if self.find(name)?.is_compressed {
            let (header, mut reader) = self.numbers(name)?;
            if header.bytes > UNPROVED {
                header.prove(&mut reader)?;
            }
        }
        let (header, mut reader) = self.numbers(name)?;
        header.read_matrix(&mut reader, rows)
    }

    fn read_column(&mut self, name: &str) -> Result<Column, Problem> {
        let (described, reader) = self.describe(self.find(name)?)?;
        if described.class == 1 {
            return self.words(&described, reader).map(Column::Strings);
        }
        let (header, mut reader) = self.numbers(name)?;
        header.read_column(&mut reader)
    }
}

fn wrong(message: impl ToString) -> Problem {
    Problem::damaged("MATLAB", message)
}

fn ended(error: std::io::Error) -> Problem {
    wrong(format!("a variable cannot be read: {error}"))
}

/// MATLAB's version 5, not compressed: matrices column after column, words as a cell array.
pub(super) fn write(arrays: &ArrayFile, file: &mut dyn Output) -> std::io::Result<()> {
    let mut text = b"MATLAB 5.0 MAT-file, written by a2lp".to_vec();
    text.resize(124, b' ');
    text.extend([0x00, 0x01, b'I', b'M']);
    file.write_all(&text)?;
    for (name, array) in &arrays.fields {
        let bytes = match array {
            Array::Numbers { descr, shape, bytes, .. } => {
                let (class, kind) = match *descr {
                    "<f4" => (7, 7),
                    "<i8" => (14, 12),
                    _ => (9, 2),
                };
                let (rows, columns) = match shape[..] {
                    [rows, columns] => (rows, columns),
                    _ => (shape.iter().product(), 1),
                };
                let size = bytes / (rows * columns).max(1);
                let elements = array.elements()?;
                let mut turned = Vec::with_capacity(elements.len());
                for column in 0..columns {
                    for row in 0..rows {
                        turned.extend_from_slice(&elements[(row * columns + column) * size..][..size]);
                    }
                }
                let mut body = mat_head(class, rows, columns, name);
                body.extend(mat_element(kind, &turned)?);
                body
            }
            Array::Words(words) => {
                let mut body = mat_head(1, words.len(), 1, name);
                for word in words {
                    let units: Vec<u16> = word.encode_utf16().collect();
                    let mut cell = mat_head(4, 1, units.len(), "");
                    cell.extend(mat_element(
                        4,
                        &units.iter().flat_map(|u| u.to_le_bytes()).collect::<Vec<_>>(),
                    )?);
                    body.extend(mat_element(14, &cell)?);
                }
                body
            }
        };
        file.write_all(&mat_element(14, &bytes)?)?;
    }
    Ok(())
}

/// An element of a MATLAB file, filled up to a multiple of eight bytes.
fn mat_element(kind: u32, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let length = u32::try_from(bytes.len()).map_err(|_| {
        std::io::Error::other("MATLAB's files hold at most 4 GiB an array; write .h5 instead")
    })?;
    let mut element = Vec::with_capacity(bytes.len() + 16);
    element.extend(kind.to_le_bytes());
    element.extend(length.to_le_bytes());
    element.extend_from_slice(bytes);
    element.resize(element.len().next_multiple_of(8), 0);
    Ok(element)
}

/// Class, shape and name of a MATLAB array.
fn mat_head(class: u32, rows: usize, columns: usize, name: &str) -> Vec<u8> {
    let words = |words: [u32; 2]| words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    [(6, words([class, 0])), (5, words([rows as u32, columns as u32])), (1, name.as_bytes().to_vec())]
        .iter()
        .flat_map(|(kind, bytes)| mat_element(*kind, bytes).unwrap_or_default())
        .collect()
}
