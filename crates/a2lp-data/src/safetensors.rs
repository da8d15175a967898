//! safetensors: the length of a JSON header, the header, then the elements of every tensor.
//!
//! Tensors are `features` (or the only matrix) and `labels`; words stand in the header's metadata as JSON lists.

use crate::column::Column;
use crate::error::Problem;
use crate::npy::{ElementType, Header};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Longest header accepted, as in the format's own library.
const MAX_HEADER: u64 = 100_000_000;

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

    /// The tensor that holds features: `features`, or else the only matrix.
    pub(crate) fn feature_field(&self) -> Result<String, Problem> {
        if self.has("features") {
            return Ok("features".into());
        }
        let mut found =
            self.names().filter(|name| self.header(name).is_ok_and(|(h, _)| h.matrix_shape().is_ok()));
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only.into()),
            _ => {
                let names: Vec<&str> = self.names().collect();
                Err(wrong(format!("no tensor 'features'; it has: {}", names.join(", "))))
            }
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str).filter(|name| *name != "__metadata__")
    }

    fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// What is known of a tensor, and where its elements begin.
    pub(crate) fn header(&self, name: &str) -> Result<(Header, u64), Problem> {
        let info = &self.tensors[name];
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
    pub(crate) fn tensor(&mut self, name: &str) -> Result<(Header, &mut impl Read), Problem> {
        let (header, start) = self.header(name)?;
        self.reader.seek(SeekFrom::Start(start))?;
        Ok((header, &mut self.reader))
    }

    /// One value per row: a tensor of that name, or a JSON list in the metadata.
    pub(crate) fn column(&mut self, name: &str) -> Result<Option<Column>, Problem> {
        if self.has(name) {
            let (header, reader) = self.tensor(name)?;
            return header.read_column(reader).map(Some);
        }
        let Some(text) = self.tensors.get("__metadata__").and_then(|words| words[name].as_str()) else {
            return Ok(None);
        };
        let words = serde_json::from_str(text)
            .map_err(|_| wrong(format!("'{name}' of its metadata is not a JSON list of words")))?;
        Ok(Some(Column::Strings(words)))
    }
}

fn wrong(message: impl Into<String>) -> Problem {
    Problem::Archive(format!("not a safetensors file: {}", message.into()))
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
            (r#"{"x":{"dtype":"F32","shape":[1,2],"data_offsets":[0,4]}}"#, "no tensor 'features'"),
            (r#"{"features":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}"#, "8"),
            (r#"{"features":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[0,2]}}"#, "F8_E4M3"),
            (
                r#"{"features":{"dtype":"F32","shape":[1,2],"data_offsets":[18446744073709551615,7]}}"#,
                "damaged",
            ),
            (r#"{"features":7}"#, "damaged"),
            ("[1]", "damaged"),
            ("{}", "no tensor"),
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
