//! Parquet: columns in compressed pages, described at the end of the file.
//!
//! The format's own library reads it; the walk through its descriptions that comes first is the limit round it.

use super::table::Batches;
use super::thrift::Walk;
use crate::error::{PIECE_BYTES, Problem};
use crate::guard::guarded;
use crate::write::{Output, TableColumn, TableFile};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

const FORMAT: &str = "Parquet";
/// Rows handed on at a time: of vectors, or numbers of all columns.
const BATCH_ROWS: usize = 256;
const BATCH_NUMBERS: usize = 1 << 16;
/// Longest description of a page.
const MAX_PAGE_HEADER: u64 = 1 << 20;

/// An open file.
pub(crate) struct ParquetFile {
    file: File,
    length: u64,
    metadata: ArrowReaderMetadata,
    rows: usize,
}

impl ParquetFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        check_footer(&mut file, length)?;
        guarded(FORMAT, || {
            let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(damaged)?;
            let rows = metadata.metadata().file_metadata().num_rows();
            let rows =
                usize::try_from(rows).map_err(|_| Problem::damaged(FORMAT, format!("it has {rows} rows")))?;
            Ok(ParquetFile { file, length, metadata, rows })
        })
    }

    /// Walks over the descriptions of all pages of these columns.
    fn check_pages(&self, columns: &[usize]) -> Result<(), Problem> {
        let metadata = self.metadata.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let mut file = self.file.try_clone()?;
        for (group, of_group) in metadata.row_groups().iter().enumerate() {
            for (leaf, chunk) in of_group.columns().iter().enumerate() {
                if !columns.contains(&schema.get_column_root_idx(leaf)) {
                    continue;
                }
                let place = || format!("row group {group}, column '{}'", chunk.column_path().string());
                let wrong = |what: &str| Problem::damaged(FORMAT, format!("{}: {what}", place()));
                let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
                let start = u64::try_from(start.min(chunk.data_page_offset()))
                    .map_err(|_| wrong("it begins before the file"))?;
                let bytes =
                    u64::try_from(chunk.compressed_size()).map_err(|_| wrong("it has a negative size"))?;
                let end = start
                    .checked_add(bytes)
                    .filter(|&end| end <= self.length)
                    .ok_or_else(|| wrong("it ends after the file"))?;
                check_chunk(&mut file, start, end).map_err(|problem| match problem {
                    Problem::Damaged { message, .. } => wrong(&message),
                    other => other,
                })?;
            }
        }
        Ok(())
    }
}

/// Sees that the description at the end of the file is there, and its lists as long as they claim.
fn check_footer(file: &mut File, length: u64) -> Result<(), Problem> {
    let wrong = |message: &str| Problem::damaged(FORMAT, message);
    let mut tail = [0u8; 8];
    if length < 12 {
        return Err(wrong("it ends too early"));
    }
    file.seek(SeekFrom::Start(length - 8))?;
    file.read_exact(&mut tail)?;
    if &tail[4..] != b"PAR1" {
        return Err(wrong("it does not end with PAR1; was it written to the end?"));
    }
    let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if footer > length - 12 {
        return Err(wrong("its description is longer than the file"));
    }
    let mut bytes = vec![0u8; footer as usize];
    file.seek(SeekFrom::Start(length - 8 - footer))?;
    file.read_exact(&mut bytes)?;
    Walk(&bytes).structure().map(drop)
}

/// Walks from page to page.
fn check_chunk(file: &mut File, start: u64, end: u64) -> Result<(), Problem> {
    let wrong = |message: String| Problem::damaged(FORMAT, message);
    let mut at = start;
    let mut header = Vec::new();
    while at < end {
        let mut window = 1024;
        let (numbers, length) = loop {
            file.seek(SeekFrom::Start(at))?;
            header.clear();
            (&mut *file).take(window.min(end - at)).read_to_end(&mut header)?;
            let mut walk = Walk(&header);
            match walk.structure() {
                Ok(numbers) => break (numbers, (header.len() - walk.0.len()) as u64),
                // A description that did not fit into the window.
                Err(_) if window < MAX_PAGE_HEADER && window < end - at => window *= 8,
                Err(problem) => return Err(problem),
            }
        };
        let size = |field: usize| numbers[field].and_then(|size| u64::try_from(size).ok());
        let (Some(memory), Some(disk)) = (size(2), size(3)) else {
            return Err(wrong(format!("the page at byte {at} has no size")));
        };
        Problem::check_piece(memory, disk)?;
        at = at
            .checked_add(length)
            .and_then(|at| at.checked_add(disk))
            .filter(|&next| next <= end)
            .ok_or_else(|| wrong(format!("the page at byte {at} is longer than its column")))?;
    }
    Ok(())
}

impl Batches for ParquetFile {
    fn schema(&self) -> SchemaRef {
        self.metadata.schema().clone()
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn file_bytes(&self) -> u64 {
        self.length
    }

    fn reading_bytes(&self) -> u64 {
        // Pages of about a megabyte.
        PIECE_BYTES.min(self.length)
    }

    fn for_each(
        &mut self,
        columns: &[usize],
        take: &mut dyn FnMut(&RecordBatch) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem> {
        guarded(FORMAT, || {
            self.check_pages(columns)?;
            let schema = self.metadata.metadata().file_metadata().schema_descr();
            let schema_of_rows = self.metadata.schema();
            let has_vectors = columns.iter().any(|&at| schema_of_rows.field(at).data_type().is_nested());
            let batch_rows = if has_vectors { 1 } else { BATCH_NUMBERS / BATCH_ROWS / columns.len().max(1) };
            let mask = ProjectionMask::roots(schema, columns.iter().copied());
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
                self.file.try_clone()?,
                self.metadata.clone(),
            )
            .with_projection(mask)
            .with_batch_size(BATCH_ROWS * batch_rows.max(1))
            .build()
            .map_err(damaged)?;
            for batch in reader {
                if take(&batch.map_err(|error| Problem::damaged(FORMAT, error))?)?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }
}

fn damaged(error: parquet::errors::ParquetError) -> Problem {
    Problem::damaged(FORMAT, error)
}

pub(super) fn write(table: &TableFile, file: &mut dyn Output) -> std::io::Result<()> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(std::io::Error::other)?))
        .set_max_row_group_row_count(Some(table.block_rows()));
    for (name, column) in &table.columns {
        // Numbers with fractions hardly repeat; looking for those that do takes most of the time.
        let path = match column {
            TableColumn::Vectors(..) => ["list", "item"].iter().fold(vec![name.clone()], |mut path, part| {
                path.push((*part).into());
                path
            }),
            TableColumn::Floats(_) | TableColumn::Strided(..) => vec![name.clone()],
            _ => continue,
        };
        properties = properties.set_column_dictionary_enabled(ColumnPath::new(path), false);
    }
    let mut writer = ArrowWriter::try_new(file, table.schema(), Some(properties.build()))
        .map_err(std::io::Error::other)?;
    for batch in table.batches() {
        writer.write(&batch?).map_err(std::io::Error::other)?;
    }
    writer.close().map(drop).map_err(std::io::Error::other)
}
