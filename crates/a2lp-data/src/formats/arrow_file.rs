//! Arrow IPC, which Feather of version 2 is: messages, each a description and a body. In a stream they stand one behind the other;
//! a file has a signature before and a list of them at its end.

use super::arrow_blocks::{Blocks, Dictionaries, Parts};
use super::table::Batches;
use crate::error::Problem;
use crate::guard::guarded;
use crate::write::{Output, TableFile};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_footer_length, read_record_batch};
use arrow_ipc::{Endianness, MessageHeader, root_as_footer, root_as_message};
use arrow_schema::{Schema, SchemaRef};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const FORMAT: &str = "Arrow";
const MAGIC: &[u8] = b"ARROW1";
/// Longest description of a message.
const MAX_DESCRIPTION: u64 = 256 << 20;

/// An open file.
pub(crate) struct ArrowFile {
    file: File,
    length: u64,
    schema: SchemaRef,
    messages: Vec<Message>,
    rows: usize,
}

/// Where a message stands.
#[derive(Clone, Copy)]
struct Message {
    start: u64,
    description: u64,
    body: u64,
}

impl ArrowFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let file = File::open(path)?;
        guarded(FORMAT, move || {
            let length = file.metadata()?.len();
            let mut head = Vec::new();
            (&file).take(MAGIC.len() as u64).read_to_end(&mut head)?;
            let mut found =
                ArrowFile { file, length, schema: Arc::new(Schema::empty()), messages: Vec::new(), rows: 0 };
            if head == MAGIC {
                found.find_by_list()?
            } else {
                found.find_in_stream()?
            }
            Ok(found)
        })
    }

    /// Finds the messages by the list at the end of the file, dictionaries first.
    fn find_by_list(&mut self) -> Result<(), Problem> {
        let mut tail = [0u8; 10];
        let behind = (MAGIC.len() + tail.len()) as u64;
        let most = self.length.checked_sub(behind).ok_or_else(|| wrong("it ends too early"))?;
        (&self.file).seek(SeekFrom::End(-(tail.len() as i64)))?;
        (&self.file).read_exact(&mut tail)?;
        let size = read_footer_length(tail)
            .map_err(|_| wrong("it does not end with ARROW1; was it written to the end?"))?;
        if size as u64 > most.min(MAX_DESCRIPTION) {
            return Err(wrong("the list of its messages is longer than the file"));
        }
        let mut bytes = vec![0u8; size];
        (&self.file).seek(SeekFrom::End(-((tail.len() + size) as i64)))?;
        (&self.file).read_exact(&mut bytes)?;
        let footer = root_as_footer(&bytes).map_err(wrong)?;
        self.set_schema(footer.schema())?;
        let mut described = 0u64;
        for block in footer.dictionaries().iter().flatten().chain(footer.recordBatches().iter().flatten()) {
            let at = u64::try_from(block.offset()).map_err(|_| wrong("a message before the file"))?;
            let end = self.add_message(at)?.ok_or_else(|| wrong(format!("no message at byte {at}")))?;
            // Messages share nothing; a list that names one a million times is none.
            described += end - at;
            if described > self.length {
                return Err(wrong("its messages are longer than the file"));
            }
        }
        Ok(())
    }

    /// Finds the messages one behind the other.
    fn find_in_stream(&mut self) -> Result<(), Problem> {
        let mut at = 0;
        while let Some(next) = self.add_message(at)? {
            at = next;
        }
        if self.schema.fields().is_empty() { Err(wrong("it names no columns")) } else { Ok(()) }
    }

    /// Takes note of the message at `at`, and says where it ends.
    fn add_message(&mut self, at: u64) -> Result<Option<u64>, Problem> {
        let Some((description, prefix)) = describe(&self.file, at, self.length)? else { return Ok(None) };
        let message = root_as_message(&description[prefix..])
            .map_err(|error| wrong(format!("the message at byte {at}: {error}")))?;
        let body = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
        let size = description.len() as u64;
        let end = (at + size).checked_add(body).filter(|&end| end <= self.length);
        let end = end.ok_or(Problem::Truncated {
            promised: u128::from(at) + u128::from(size) + u128::from(body),
            found: self.length,
        })?;
        match message.header_type() {
            MessageHeader::Schema => self.set_schema(message.header_as_schema())?,
            MessageHeader::DictionaryBatch => {}
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or_else(|| wrong("no rows"))?;
                let rows = usize::try_from(batch.length()).ok().and_then(|more| self.rows.checked_add(more));
                self.rows = rows.ok_or_else(|| wrong(format!("a batch of {} rows", batch.length())))?;
            }
            other => return Err(wrong(format!("a message of kind {other:?}"))),
        }
        self.messages.push(Message { start: at, description: size, body });
        Ok(Some(end))
    }

    fn set_schema(&mut self, schema: Option<arrow_ipc::Schema<'_>>) -> Result<(), Problem> {
        let schema = schema.ok_or_else(|| wrong("it names no columns"))?;
        if schema.endianness() != Endianness::Little {
            return Err(Problem::Unsupported("an Arrow file of big-endian numbers".into()));
        }
        self.schema = Arc::new(try_fb_to_schema(schema).map_err(wrong)?);
        Ok(())
    }

    /// The body of a message.
    fn load(&self, message: Message) -> Result<Buffer, Problem> {
        let mut bytes = Vec::new();
        let size = usize::try_from(message.body).map_err(|_| Problem::Changed)?;
        bytes.try_reserve_exact(size).map_err(|_| Problem::Memory(size as u128))?;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(message.start + message.description))?;
        file.take(message.body).read_to_end(&mut bytes)?;
        if bytes.len() != size {
            return Err(Problem::Changed);
        }
        Ok(Buffer::from_vec(bytes))
    }
}

/// The description of the message at `at` with what stands before it, and where it begins in that; `None` at the end.
fn describe(mut file: &File, at: u64, length: u64) -> Result<Option<(Vec<u8>, usize)>, Problem> {
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
        // A block as it stands in the file and as numbers.
        (8 << 20).min(2 * self.length)
    }

    fn for_each(
        &mut self,
        columns: &[usize],
        take: &mut dyn FnMut(&RecordBatch) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem> {
        guarded(FORMAT, || {
            let mut dictionaries = Dictionaries::new();
            for &place in &self.messages {
                let (description, prefix) =
                    describe(&self.file, place.start, self.length)?.ok_or(Problem::Changed)?;
                let message = root_as_message(&description[prefix..]).map_err(wrong)?;
                let parts =
                    |batch| Parts::find(&self.file, place.start + place.description, place.body, batch);
                let version = &message.version();
                if let Some(dictionary) = message.header_as_dictionary_batch() {
                    dictionary.data().map(parts).transpose()?;
                    let body = self.load(place)?;
                    read_dictionary(&body, dictionary, &self.schema, &mut dictionaries, version)
                        .map_err(wrong)?;
                } else if let Some(batch) = message.header_as_record_batch() {
                    let blocks = Blocks::open(&parts(batch)?, &self.schema, columns, &dictionaries)?;
                    let whole = || {
                        let schema = self.schema.clone();
                        read_record_batch(
                            &self.load(place)?,
                            batch,
                            schema,
                            &dictionaries,
                            Some(columns),
                            version,
                        )
                        .map_err(wrong)
                    };
                    let is_whole = blocks.is_none();
                    for block in blocks.into_iter().flatten().chain(is_whole.then(whole)) {
                        if take(&block?)?.is_break() {
                            return Ok(());
                        }
                    }
                }
            }
            Ok(())
        })
    }
}

pub(crate) fn wrong(message: impl ToString) -> Problem {
    Problem::damaged(FORMAT, message)
}

pub(super) fn write(table: &TableFile, file: &mut dyn Output) -> std::io::Result<()> {
    let mut writer =
        arrow_ipc::writer::FileWriter::try_new(file, &table.schema()).map_err(std::io::Error::other)?;
    for batch in table.batches() {
        writer.write(&batch?).map_err(std::io::Error::other)?;
    }
    writer.finish().map_err(std::io::Error::other)
}
