//! safetensors: the length of a JSON header, the header, then the elements of every tensor.
//!
//! Tensors are `features` (or the only matrix) and `labels`; words are JSON lists in the header's metadata.

use super::arrays::Arrays;
use super::elements::{ElementType, Header};
use crate::column::Column;
use crate::error::Problem;
use crate::rows::Rows;
use crate::write::{Array, ArrayFile, Output};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Longest header accepted, as in the format's own library.
const MAX_HEADER: u64 = 100_000_000;

/// The key of the words in the header.
const METADATA: &str = "__metadata__";

/// An open file.
pub(crate) struct SafetensorsFile {
    reader: BufReader<File>,
    tensors: Map<String, Value>,
    /// Where the elements begin, and how many bytes there are of them.
    start: u64,
    length: u64,
}

impl SafetensorsFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut reader = BufReader::new(file);
        let mut length = [0u8; 8];
        reader.read_exact(&mut length).map_err(|_| wrong("it has no header"))?;
        let header = u64::from_le_bytes(length);
        let start = header.saturating_add(8);
        if header > MAX_HEADER || start > bytes {
            return Err(wrong(format!("it promises a header of {header} bytes and has {bytes} in all")));
        }
        let mut text = vec![0u8; header as usize];
        reader.read_exact(&mut text)?;
        let tensors =
            serde_json::from_slice(&text).map_err(|e| wrong(format!("its header is damaged: {e}")))?;
        Ok(SafetensorsFile { reader, tensors, start, length: bytes - start })
    }

    /// Shape and type of a tensor, and where its elements begin.
    fn place(&self, name: &str) -> Result<(Header, u64), Problem> {
        let info = self.tensors.get(name).unwrap_or(&Value::Null);
        let damaged = || wrong(format!("the description of '{name}' is damaged"));
        let numbers =
            |value: &Value| -> Option<Vec<u64>> { value.as_array()?.iter().map(Value::as_u64).collect() };
        let element = match info["dtype"].as_str().ok_or_else(damaged)? {
            "F16" => ElementType::Float(2),
            "BF16" => ElementType::BrainFloat,
            "F32" => ElementType::Float(4),
            "F64" => ElementType::Float(8),
            "I8" => ElementType::Signed(1),
            "I16" => ElementType::Signed(2),
            "I32" => ElementType::Signed(4),
            "I64" => ElementType::Signed(8),
            "U8" => ElementType::Unsigned(1),
            "U16" => ElementType::Unsigned(2),
            "U32" => ElementType::Unsigned(4),
            "U64" => ElementType::Unsigned(8),
            "BOOL" => ElementType::Bool,
            other => return Err(Problem::ElementType(other.chars().take(40).collect())),
        };
        let shape = numbers(&info["shape"]).ok_or_else(damaged)?;
        let shape =
            shape.iter().map(|&n| usize::try_from(n)).collect::<Result<_, _>>().map_err(|_| damaged())?;
        let header = Header::plain(element, shape)?;
        let &[from, to] = &numbers(&info["data_offsets"]).ok_or_else(damaged)?[..] else {
            return Err(damaged());
        };
        if from.checked_add(header.bytes) != Some(to) {
            return Err(damaged());
        }
        if to > self.length {
            return Err(Problem::Truncated { promised: u128::from(to), found: self.length });
        }
        Ok((header, self.start + from))
    }

    /// A tensor, and a reader at its first element.
    fn tensor(&mut self, name: &str) -> Result<(Header, &mut impl Read), Problem> {
        let (header, start) = self.place(name)?;
        self.reader.seek(SeekFrom::Start(start))?;
        Ok((header, &mut self.reader))
    }

    /// A list of words in the metadata.
    fn words(&self, name: &str) -> Option<&str> {
        self.tensors.get(METADATA)?.get(name)?.as_str().filter(|text| text.starts_with('['))
    }
}

impl Arrays for SafetensorsFile {
    fn names(&self) -> Vec<String> {
        let words = self.tensors.get(METADATA).and_then(Value::as_object).into_iter().flatten();
        let words = words.map(|(name, _)| name).filter(|name| self.words(name).is_some());
        self.tensors.keys().filter(|name| *name != METADATA).chain(words).cloned().collect()
    }

    fn header(&mut self, name: &str) -> Result<Header, Problem> {
        Ok(self.place(name)?.0)
    }

    fn read_matrix(&mut self, name: &str, rows: &mut Rows) -> Result<(), Problem> {
        let (header, reader) = self.tensor(name)?;
        rows.reserve_all()?;
        header.read_matrix(reader, rows)
    }

    fn read_column(&mut self, name: &str) -> Result<Column, Problem> {
        if let Some(text) = self.words(name) {
            let words = serde_json::from_str(text)
                .map_err(|_| wrong(format!("'{name}' of its metadata is not a JSON list of words")))?;
            return Ok(Column::Strings(words));
        }
        let (header, reader) = self.tensor(name)?;
        header.read_column(reader)
    }
}

fn wrong(message: impl Into<String>) -> Problem {
    Problem::Archive(format!("not a safetensors file: {}", message.into()))
}

pub(super) fn write(arrays: &ArrayFile, file: &mut dyn Output) -> std::io::Result<()> {
    let mut header = serde_json::Map::new();
    let (mut words, mut end) = (serde_json::Map::new(), 0);
    for (name, array) in &arrays.fields {
        match array {
            Array::Numbers { descr, shape, bytes, .. } => {
                let dtype = match *descr {
                    "<f4" => "F32",
                    "<i8" => "I64",
                    _ => "U8",
                };
                let offsets = [end, end + bytes];
                end += bytes;
                let info = serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
                header.insert(name.clone(), info);
            }
            Array::Words(list) => {
                words.insert(name.clone(), serde_json::json!(list).to_string().into());
            }
        }
    }
    if !words.is_empty() {
        header.insert("__metadata__".into(), words.into());
    }
    let mut text = serde_json::Value::from(header).to_string();
    // The elements start at a multiple of 8 bytes.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    file.write_all(&(text.len() as u64).to_le_bytes())?;
    file.write_all(text.as_bytes())?;
    arrays.fields.iter().try_for_each(|(_, array)| match array {
        Array::Numbers { write, .. } => write(file),
        Array::Words(_) => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use crate::{ArrayFile, Column, FeatureFile};

    fn file(header: &str, data: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        std::fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        let written = ArrayFile::new()
            .matrix("features", 2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.5])
            .strings("ids", &["a \"b\"", "ö"])
            .integers("labels", &[1, -1])
            .strings("class_names", &["bike", "mug"]);
        written.write(&path, false).unwrap();
        let mut file = FeatureFile::open(&path).unwrap();
        assert_eq!((file.rows(), file.columns()), (2, 3));
        assert_eq!(file.ids().unwrap().unwrap(), ["a \"b\"", "ö"]);
        assert_eq!(file.labels().unwrap().unwrap(), Column::Integers(vec![1, -1]));
        assert_eq!(file.class_names().unwrap().unwrap(), ["bike", "mug"]);
        assert_eq!(file.read().unwrap().values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.5]);
    }

    #[test]
    fn brain_floats_are_the_upper_half_of_floats() {
        let header = r#"{"x":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}}"#;
        let (_dir, path) = file(header, &[0x20, 0x40, 0x80, 0xbf]);
        assert_eq!(FeatureFile::open(&path).unwrap().read().unwrap().values(), [2.5, -1.0]);
    }

    #[test]
    fn hostile_headers_are_refused() {
        let cases = [
            (
                r#"{"features":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}"#,
                "larger than any memory",
            ),
            (r#"{"x":{"dtype":"F32","shape":[1,2],"data_offsets":[0,4]}}"#, "damaged"),
            (r#"{"features":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}"#, "8"),
            (r#"{"features":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[0,2]}}"#, "F8_E4M3"),
            (
                r#"{"features":{"dtype":"F32","shape":[1,2],"data_offsets":[18446744073709551615,7]}}"#,
                "damaged",
            ),
            (r#"{"features":7}"#, "damaged"),
            ("[1]", "damaged"),
            ("{}", "no array 'features'"),
        ];
        for (header, message) in cases {
            let (_dir, path) = file(header, &[0; 4]);
            let error = FeatureFile::open(&path).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains(message), "{header}: {error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        std::fs::write(&path, u64::MAX.to_le_bytes()).unwrap();
        assert!(FeatureFile::open(&path).is_err());
        std::fs::write(&path, [1, 2]).unwrap();
        assert!(FeatureFile::open(&path).is_err());
    }
}
