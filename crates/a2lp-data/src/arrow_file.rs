//! Arrow IPC, which Feather of version 2 is: a row of messages, each a description and a body. The file format puts a signature
//! before and a list of the messages behind; both are read as the stream they contain.

use crate::error::Problem;
use crate::guard::guarded;
use crate::table::Batches;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{Block, MessageHeader, MetadataVersion, root_as_message};
use arrow_schema::{Schema, SchemaRef};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const FORMAT: &str = "Arrow";
/// Longest description of a message.
const MAX_DESCRIPTION: u64 = 256 << 20;

/// An open file.
pub(crate) struct ArrowFile {
    file: File,
    length: u64,
    schema: SchemaRef,
    version: MetadataVersion,
    messages: Vec<Message>,
    rows: usize,
}

/// Where a message stands.
#[derive(Clone, Copy)]
struct Message {
    start: u64,
    description: u64,
    body: u64,
    is_dictionary: bool,
}

impl ArrowFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let mut file = File::open(path)?;
        guarded(FORMAT, move || {
            let length = file.metadata()?.len();
            let mut head = Vec::new();
            (&mut file).take(64).read_to_end(&mut head)?;
            // The signature is filled up with zeros, to 8 or to 64 bytes.
            let mut at = 0;
            if head.starts_with(b"ARROW1") {
                let zeros = head[6..].iter().take_while(|&&byte| byte == 0).count();
                at = (6 + zeros as u64) / 8 * 8;
            }
            let mut found: Option<(Schema, MetadataVersion)> = None;
            let (mut messages, mut rows) = (Vec::new(), 0usize);
            while let Some((description, prefix)) = describe(&mut file, at, length)? {
                let message = root_as_message(&description[prefix..])
                    .map_err(|error| wrong(format!("the message at byte {at}: {error}")))?;
                let body = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
                let size = description.len() as u64;
                let next = at.checked_add(size).and_then(|at| at.checked_add(body));
                let next = next.filter(|&next| next <= length).ok_or(Problem::Truncated {
                    promised: u128::from(at) + u128::from(size) + u128::from(body),
                    found: length,
                })?;
                let kept = |is_dictionary| Message { start: at, description: size, body, is_dictionary };
                match message.header_type() {
                    MessageHeader::Schema => {
                        let schema = message.header_as_schema().ok_or_else(|| wrong("no columns"))?;
                        found = Some((try_fb_to_schema(schema).map_err(wrong)?, message.version()));
                    }
                    MessageHeader::DictionaryBatch => messages.push(kept(true)),
                    MessageHeader::RecordBatch => {
                        let batch = message.header_as_record_batch().ok_or_else(|| wrong("no rows"))?;
                        let more = usize::try_from(batch.length()).ok();
                        rows = more
                            .and_then(|more| rows.checked_add(more))
                            .ok_or_else(|| wrong(format!("a batch of {} rows", batch.length())))?;
                        messages.push(kept(false));
                    }
                    other => return Err(wrong(format!("a message of kind {other:?}"))),
                }
                at = next;
            }
            let (schema, version) = found.ok_or_else(|| wrong("it names no columns"))?;
            Ok(ArrowFile { file, length, schema: Arc::new(schema), version, messages, rows })
        })
    }

    /// A message with its body.
    fn load(&mut self, message: Message) -> Result<Buffer, Problem> {
        let size = usize::try_from(message.description + message.body).map_err(|_| Problem::Changed)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| Problem::Memory(size as u128))?;
        self.file.seek(SeekFrom::Start(message.start))?;
        (&mut self.file).take(size as u64).read_to_end(&mut bytes)?;
        if bytes.len() != size {
            return Err(Problem::Changed);
        }
        check_bodies(&bytes, message)?;
        Ok(Buffer::from_vec(bytes))
    }
}

/// The description of the message at `at` with what stands before it, and where it begins in that; `None` at the end.
fn describe(file: &mut File, at: u64, length: u64) -> Result<Option<(Vec<u8>, usize)>, Problem> {
    let mut prefix = [0u8; 8];
    let there = length.saturating_sub(at).min(8) as usize;
    if there < 4 {
        return if there == 0 { Ok(None) } else { Err(wrong("it ends within a message")) };
    }
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut prefix[..there])?;
    let word = |from: usize| {
        u32::from_le_bytes([prefix[from], prefix[from + 1], prefix[from + 2], prefix[from + 3]])
    };
    // Since version 0.15 a mark stands before the length.
    let (size, skip) = if word(0) == u32::MAX { (word(4), 8) } else { (word(0), 4) };
    if size == 0 {
        return Ok(None);
    }
    let size = u64::from(size);
    if size > MAX_DESCRIPTION || at + skip + size > length {
        let promised = u128::from(at + skip + size);
        return Err(Problem::Truncated { promised, found: length });
    }
    let mut bytes = vec![0u8; (skip + size) as usize];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(Some((bytes, skip as usize)))
}

/// Compressed bodies begin with the size they will have; the library makes room for it.
fn check_bodies(bytes: &[u8], place: Message) -> Result<(), Problem> {
    let skip = if bytes.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let (description, body) = bytes.split_at(place.description as usize);
    let message = root_as_message(&description[skip..]).map_err(wrong)?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        _ => message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()),
    };
    let batch = batch.ok_or_else(|| wrong("a message without its rows"))?;
    let compressed = batch.compression().is_some();
    for part in batch.buffers().iter().flatten() {
        let range = u64::try_from(part.offset()).ok().zip(u64::try_from(part.length()).ok());
        let (from, size) = range.ok_or_else(|| wrong("a negative size"))?;
        let part = from
            .checked_add(size)
            .filter(|&to| to <= body.len() as u64)
            .map(|to| &body[from as usize..to as usize])
            .ok_or_else(|| wrong("a column reaches beyond its message"))?;
        let claimed = part.first_chunk().filter(|_| compressed).map(|claimed| u64::from_le_bytes(*claimed));
        // -1 stands for stored as it is.
        if let Some(claimed) = claimed.filter(|&claimed| claimed != u64::MAX) {
            Problem::check_piece(claimed, size)?;
        }
    }
    Ok(())
}

impl Batches for ArrowFile {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn file_bytes(&self) -> u64 {
        self.length
    }

    fn reading_bytes(&self) -> u64 {
        // A message as it stands in the file, and its numbers, which hardly compress.
        let largest = self.messages.iter().map(|message| message.body).max().unwrap_or(0);
        2 * largest + largest / 2
    }

    fn for_each(
        &mut self,
        columns: &[usize],
        take: &mut dyn FnMut(&RecordBatch) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem> {
        guarded(FORMAT, || {
            let mut decoder =
                FileDecoder::new(self.schema.clone(), self.version).with_projection(columns.to_vec());
            for message in self.messages.clone() {
                let bytes = self.load(message)?;
                let block = Block::new(message.start as i64, message.description as i32, message.body as i64);
                if message.is_dictionary {
                    decoder.read_dictionary(&block, &bytes).map_err(wrong)?;
                } else if let Some(batch) = decoder.read_record_batch(&block, &bytes).map_err(wrong)?
                    && take(&batch)?.is_break()
                {
                    break;
                }
            }
            Ok(())
        })
    }
}

fn wrong(message: impl ToString) -> Problem {
    Problem::damaged(FORMAT, message)
}
