//! The columns of an Arrow message, a block of rows at a time.
//!
//! Writers put as many rows into a message as they like, and Arrow's library wants a message whole, compressed and not. Columns of
//! numbers, words and lists of numbers are read here from where they stand; all others are left to the library.

use super::arrow_file::wrong;
use crate::error::Problem;
use arrow_array::{ArrayRef, RecordBatch, make_array};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_ipc::CompressionType;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;

/// Values read at a time.
const BLOCK: usize = 1 << 19;
/// Parts that are no larger are decompressed at once.
const SMALL_BYTES: u64 = 1 << 20;

/// The entries of categorical columns, by the number of their list.
pub(crate) type Dictionaries = HashMap<i64, ArrayRef>;

/// Some columns of a message, read as far as blocks were asked for.
pub(crate) struct Blocks<'a> {
    schema: SchemaRef,
    columns: Vec<PlainColumn<'a>>,
    rows_left: usize,
    rows_at_a_time: usize,
}

impl<'a> Blocks<'a> {
    /// The columns `wanted`, in ascending order. `None` when one is for the library: for its kind, or for values that are missing.
    pub(crate) fn open(
        parts: &Parts<'a>,
        schema: &Schema,
        wanted: &[usize],
        dictionaries: &Dictionaries,
    ) -> Result<Option<Self>, Problem> {
        let (mut columns, mut values) = (Vec::new(), 0usize);
        let (mut node, mut part) = (0, 0);
        let mut views = parts.of_views.iter();
        for (at, field) in schema.fields().iter().enumerate() {
            if wanted.binary_search(&at).is_ok() {
                let Some(column) = PlainColumn::open(parts, node, part, field, dictionaries)? else {
                    return Ok(None);
                };
                values = values.saturating_add(column.count);
                columns.push(column);
            }
            let Some((nodes, of_column)) = places(field.data_type(), &mut views) else { return Ok(None) };
            (node, part) = (node + nodes, part + of_column);
        }
        // Flags stand eight to a byte.
        let rows_at_a_time = (BLOCK / (values / parts.rows.max(1)).max(1)).next_multiple_of(8).max(8);
        let schema = Arc::new(schema.project(wanted).map_err(wrong)?);
        Ok(Some(Blocks { schema, columns, rows_left: parts.rows, rows_at_a_time }))
    }
}

impl Iterator for Blocks<'_> {
    type Item = Result<RecordBatch, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows_left.min(self.rows_at_a_time);
        if rows == 0 {
            return None;
        }
        self.rows_left -= rows;
        let columns = self.columns.iter_mut().map(|column| column.read(rows)).collect::<Result<_, _>>();
        Some(columns.and_then(|columns| RecordBatch::try_new(self.schema.clone(), columns).map_err(wrong)))
    }
}

/// How many nodes and parts a column of this kind has. `views`: how many parts hold the words of each column of views.
fn places(kind: &DataType, views: &mut std::slice::Iter<usize>) -> Option<(usize, usize)> {
    let with = |parts: usize, fields: &[&FieldRef], views: &mut std::slice::Iter<usize>| {
        fields.iter().try_fold((1, parts), |(nodes, parts), field| {
            places(field.data_type(), views).map(|more| (nodes + more.0, parts + more.1))
        })
    };
    match kind {
        DataType::Null => Some((1, 0)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => Some((1, 3)),
        DataType::Utf8View | DataType::BinaryView => views.next().map(|words| (1, 2 + words)),
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => with(2, &[item], views),
        DataType::ListView(item) | DataType::LargeListView(item) => with(3, &[item], views),
        DataType::FixedSizeList(item, _) => with(1, &[item], views),
        DataType::Struct(fields) => with(1, &fields.iter().collect::<Vec<_>>(), views),
        DataType::RunEndEncoded(ends, values) => with(0, &[ends, values], views),
        // Depends on the version.
        DataType::Union(..) => None,
        _ => Some((1, 2)),
    }
}

/// A column without gaps.
struct PlainColumn<'a> {
    kind: DataType,
    /// Kind of the values of a list.
    item: Option<DataType>,
    /// Where rows end, for lists and words.
    ends: Option<Ends<'a>>,
    /// Values of a row, where all rows have as many.
    width: usize,
    values: Stream<'a>,
    bits: usize,
    /// What the values of a categorical column stand for.
    entries: Option<ArrayRef>,
    /// Values of all rows.
    count: usize,
}

impl<'a> PlainColumn<'a> {
    fn open(
        parts: &Parts<'a>,
        node: usize,
        part: usize,
        field: &Field,
        dictionaries: &Dictionaries,
    ) -> Result<Option<Self>, Problem> {
        let kind = field.data_type();
        let (end_bytes, item, width) = match kind {
            DataType::Utf8 => (Some(4), None, 0),
            DataType::LargeUtf8 => (Some(8), None, 0),
            DataType::List(item) => (Some(4), Some(item.data_type()), 0),
            DataType::LargeList(item) => (Some(8), Some(item.data_type()), 0),
            DataType::FixedSizeList(item, width) => {
                (None, Some(item.data_type()), usize::try_from(*width).map_err(wrong)?)
            }
            _ => (None, None, 1),
        };
        let bits = match (kind, item) {
            (DataType::Utf8 | DataType::LargeUtf8, _) => Some(8),
            (DataType::Boolean, _) => Some(1),
            (DataType::Dictionary(key, _), _) => key.primitive_width().map(|bytes| 8 * bytes),
            (kind, item) => item.unwrap_or(kind).primitive_width().map(|bytes| 8 * bytes),
        };
        #[expect(deprecated, reason = "files know the entries of a column by a number")]
        let entries = field.dict_id().and_then(|number| dictionaries.get(&number)).cloned();
        let known = entries.is_some() || !matches!(kind, DataType::Dictionary(..));
        let Some(bits) = bits.filter(|_| known) else { return Ok(None) };
        let (rows, gaps) = parts.node(node)?;
        let (of_items, more_gaps) = if item.is_some() { parts.node(node + 1)? } else { (0, 0) };
        if gaps + more_gaps > 0 || rows != parts.rows {
            return Ok(None);
        }
        // Validity flags come first: of the rows, then of the items of lists.
        let of_ends = part + 1;
        let of_values = of_ends + usize::from(end_bytes.is_some()) + usize::from(item.is_some());
        let of_values = parts.part(of_values)?;
        let count = match (end_bytes, item) {
            (Some(_), Some(_)) => of_items,
            (Some(_), None) => of_values.size as usize,
            (None, _) => rows.checked_mul(width).ok_or_else(|| wrong("too many numbers"))?,
        };
        let bytes = count.checked_mul(bits).ok_or_else(|| wrong("too many numbers"))?.div_ceil(8) as u64;
        // Parts are filled up to 64 bytes. In larger ones old writers put wider numbers, which the library knows.
        if !(bytes..bytes + 64).contains(&of_values.size) {
            return Ok(None);
        }
        let Some(mut values) = of_values.open()? else { return Ok(None) };
        let mut ends = None;
        if let Some(end_bytes) = end_bytes {
            let Some(stream) = parts.part(of_ends)?.open()? else { return Ok(None) };
            let opened = Ends::open(stream, end_bytes, count)?;
            values.skip((opened.last * bits / 8) as u64)?;
            ends = Some(opened);
        }
        let (kind, item) = (kind.clone(), item.cloned());
        Ok(Some(PlainColumn { kind, item, ends, width, values, bits, entries, count }))
    }

    fn read(&mut self, rows: usize) -> Result<ArrayRef, Problem> {
        let mut column = ArrayData::builder(self.kind.clone()).len(rows);
        let count = match &mut self.ends {
            None => rows * self.width,
            Some(ends) => {
                let (count, buffer) = ends.read(rows)?;
                column = column.add_buffer(buffer);
                count
            }
        };
        let values = self.values.read((count * self.bits).div_ceil(8))?;
        column = match &self.item {
            None => column.add_buffer(values),
            Some(item) => {
                let items = ArrayData::builder(item.clone()).len(count).add_buffer(values);
                column.add_child_data(items.build().map_err(wrong)?)
            }
        };
        if let Some(entries) = &self.entries {
            column = column.add_child_data(entries.to_data());
        }
        Ok(make_array(column.build().map_err(wrong)?))
    }
}

/// Where the rows of a column end among its values.
struct Ends<'a> {
    stream: Stream<'a>,
    /// Of one end.
    bytes: usize,
    last: usize,
    most: usize,
}

impl<'a> Ends<'a> {
    fn open(stream: Stream<'a>, bytes: usize, most: usize) -> Result<Self, Problem> {
        let mut ends = Ends { stream, bytes, last: 0, most };
        ends.last = ends.next(1)?[0];
        Ok(ends)
    }

    fn next(&mut self, count: usize) -> Result<Vec<usize>, Problem> {
        let buffer = self.stream.read(count * self.bytes)?;
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        let ends: Vec<usize> = buffer.chunks(self.bytes).map(|bytes| number(bytes) as usize).collect();
        let ordered = ends.iter().try_fold(self.last, |last, &end| (last <= end).then_some(end));
        match ordered.filter(|&last| last <= self.most) {
            Some(_) => Ok(ends),
            None => Err(wrong("the ends of its rows are not in order")),
        }
    }

    /// The number of values in the next rows, and where each row ends among these, as Arrow wants it.
    fn read(&mut self, rows: usize) -> Result<(usize, Buffer), Problem> {
        let ends = self.next(rows)?;
        let start = self.last;
        self.last = ends.last().copied().unwrap_or(start);
        let within = std::iter::once(start).chain(ends).map(|end| end - start);
        let buffer = if self.bytes == 4 {
            Buffer::from_iter(within.map(|end| end as i32))
        } else {
            Buffer::from_iter(within.map(|end| end as i64))
        };
        Ok((self.last - start, buffer))
    }
}

/// What a message describes: nodes (how many values, how many of them missing) and parts of its body.
pub(crate) struct Parts<'a> {
    rows: usize,
    nodes: Vec<(usize, usize)>,
    parts: Vec<Part<'a>>,
    /// How many parts hold the words of each column of views.
    of_views: Vec<usize>,
}

/// A part of the body of a message.
struct Part<'a> {
    stored: Stored<'a>,
    compression: Option<CompressionType>,
    /// Bytes it has, or claims to have, once decompressed.
    size: u64,
}

impl<'a> Parts<'a> {
    /// Finds the parts in a body of `length` bytes at `start`, and checks that all lie inside and claim plausible sizes.
    pub(crate) fn find(
        file: &'a File,
        start: u64,
        body: u64,
        batch: arrow_ipc::RecordBatch<'_>,
    ) -> Result<Self, Problem> {
        let count = |number: i64| usize::try_from(number).map_err(|_| wrong("a negative size"));
        let compression = batch.compression().map(|compression| compression.codec());
        let mut nodes = Vec::new();
        for node in batch.nodes().iter().flatten() {
            nodes.push((count(node.length())?, count(node.null_count())?));
        }
        let (mut parts, mut claimed, mut there) = (Vec::new(), 0u64, 0u64);
        for part in batch.buffers().iter().flatten() {
            let (from, stored) = (count(part.offset())? as u64, count(part.length())? as u64);
            if from.checked_add(stored).is_none_or(|to| to > body) {
                return Err(wrong("a column reaches beyond its message"));
            }
            let mut part = Part {
                stored: Stored { file, at: start + from, left: stored },
                compression: compression.filter(|_| stored > 0),
                size: stored,
            };
            if part.compression.is_some() {
                let mut size = [0u8; 8];
                part.stored.read_exact(&mut size)?;
                part.size = u64::from_le_bytes(size);
                match part.size {
                    0 => (part.compression, part.stored.left) = (None, 0),
                    // -1 stands for stored as it is.
                    u64::MAX => (part.compression, part.size) = (None, part.stored.left),
                    _ => {}
                }
            }
            (claimed, there) = (claimed.saturating_add(part.size), there + stored);
            parts.push(part);
        }
        Problem::check_piece(claimed, there)?;
        let mut of_views = Vec::new();
        for words in batch.variadicBufferCounts().iter().flatten() {
            of_views.push(count(words)?.min(parts.len()));
        }
        Ok(Parts { rows: count(batch.length())?, nodes, parts, of_views })
    }

    fn node(&self, at: usize) -> Result<(usize, usize), Problem> {
        self.nodes.get(at).copied().ok_or_else(|| wrong("it describes fewer columns than it names"))
    }

    fn part(&self, at: usize) -> Result<&Part<'a>, Problem> {
        self.parts.get(at).ok_or_else(|| wrong("it has fewer columns than it names"))
    }
}

impl<'a> Part<'a> {
    /// `None` when decompressing it bit by bit would take more memory than at once.
    fn open(&self) -> Result<Option<Stream<'a>>, Problem> {
        let stored = self.stored;
        let reader: Box<dyn Read + 'a> = match self.compression {
            None => return Ok(Some(Stream { reader: Box::new(stored), is_stored: true })),
            Some(CompressionType::LZ4_FRAME) => {
                // A signature, flags, and the size of blocks, of which the decoder holds three.
                let mut head = [0u8; 6];
                { stored }.read_exact(&mut head).map_err(wrong)?;
                if !head.starts_with(&[0x04, 0x22, 0x4d, 0x18]) {
                    return Err(wrong("a column is not compressed as it claims"));
                }
                let block = 1u64 << (8 + 2 * (head[5] >> 4 & 7));
                if self.size > SMALL_BYTES && 2 * block > self.size {
                    return Ok(None);
                }
                Box::new(lz4_flex::frame::FrameDecoder::new(BufReader::new(stored)))
            }
            Some(CompressionType::ZSTD) => {
                let mut decoder = zstd::Decoder::new(stored)?.single_frame();
                decoder.window_log_max(self.size.next_power_of_two().ilog2().clamp(23, 27))?;
                Box::new(decoder)
            }
            Some(other) => return Err(Problem::Unsupported(format!("compressed by {other:?}"))),
        };
        if self.size > SMALL_BYTES {
            return Ok(Some(Stream { reader, is_stored: false }));
        }
        // Decoders take more than a small part does.
        let mut bytes = Vec::new();
        reader.take(self.size).read_to_end(&mut bytes).map_err(wrong)?;
        Ok(Some(Stream { reader: Box::new(Cursor::new(bytes)), is_stored: false }))
    }
}

/// Bytes as they stand in a file. Several are read in turns, so each finds its own place.
#[derive(Clone, Copy)]
struct Stored<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Stored<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.file.seek(SeekFrom::Start(self.at))?;
        let count = self.file.read(&mut out[..most])?;
        (self.at, self.left) = (self.at + count as u64, self.left - count as u64);
        Ok(count)
    }
}

/// The values of a part, one after the other.
struct Stream<'a> {
    reader: Box<dyn Read + 'a>,
    is_stored: bool,
}

impl Stream<'_> {
    fn read(&mut self, bytes: usize) -> Result<Buffer, Problem> {
        let mut buffer = MutableBuffer::from_len_zeroed(bytes);
        self.reader.read_exact(buffer.as_slice_mut()).map_err(|error| match error.kind() {
            // It was within the file when it was opened.
            ErrorKind::UnexpectedEof if self.is_stored => Problem::Changed,
            _ => wrong(error),
        })?;
        Ok(buffer.into())
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Problem> {
        std::io::copy(&mut (&mut self.reader).take(bytes), &mut std::io::sink()).map_err(wrong)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::arrow_file::ArrowFile;
    use super::super::table::Batches;
    use arrow_array::builder::{FixedSizeListBuilder, LargeListBuilder, ListBuilder, PrimitiveBuilder};
    use arrow_array::types::*;
    use arrow_array::*;
    use arrow_ipc::CompressionType;
    use arrow_ipc::reader::FileReader;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
    use std::ops::ControlFlow;
    use std::sync::Arc;

    const ROWS: usize = 70_001;

    /// Numbers that neither repeat at once nor are beyond compressing.
    fn number(row: usize, column: usize) -> f64 {
        ((row / 3 * 31 + column * 7) % 1009) as f64 / 8.0 - 50.0
    }

    fn numbers<T: ArrowPrimitiveType>(values: impl Iterator<Item = T::Native>) -> PrimitiveBuilder<T> {
        let mut builder = PrimitiveBuilder::new();
        values.for_each(|value| builder.append_value(value));
        builder
    }

    fn table() -> RecordBatch {
        let floats = |width: usize| {
            let at = (0..ROWS).flat_map(move |row| (0..width).map(move |column| (row, column)));
            numbers::<Float32Type>(at.map(|(row, column)| number(row, column) as f32))
        };
        let mut fixed = FixedSizeListBuilder::new(floats(32), 32);
        let mut lists = ListBuilder::new(numbers::<Float64Type>(std::iter::empty()));
        let mut ragged = LargeListBuilder::new(numbers::<Int16Type>(std::iter::empty()));
        for row in 0..ROWS {
            fixed.append(true);
            (0..20).for_each(|column| lists.values().append_value(number(row, column)));
            lists.append(true);
            (0..row % 5).for_each(|column| ragged.values().append_value(row as i16 + column as i16));
            ragged.append(true);
        }
        let words = || (0..ROWS).map(|row| format!("item-{}", row * row % 977));
        let kinds: Vec<String> = words().collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("fixed", Arc::new(fixed.finish())),
            ("word", Arc::new(StringArray::from_iter_values(words()))),
            ("lists", Arc::new(lists.finish())),
            ("kind", Arc::new(kinds.iter().map(String::as_str).collect::<DictionaryArray<Int16Type>>())),
            ("ragged", Arc::new(ragged.finish())),
            ("flag", Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| Some(row % 7 < 3))))),
            ("long word", Arc::new(LargeStringArray::from_iter_values(words()))),
            ("one", Arc::new(floats(1).finish())),
            (
                "gaps",
                Arc::new(Int64Array::from_iter((0..ROWS).map(|row| (row % 9 > 0).then_some(row as i64)))),
            ),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn blocks_hold_what_the_library_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.arrow");
        let table = table();
        for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
            let file = std::fs::File::create(&path).unwrap();
            let mut writer = FileWriter::try_new_with_options(file, &table.schema(), options).unwrap();
            writer.write(&table).unwrap();
            // A slice, whose lists do not begin at the first value.
            writer.write(&table.slice(5, 1000)).unwrap();
            writer.finish().unwrap();
            let all = FileReader::try_new(std::fs::File::open(&path).unwrap(), None).unwrap();
            let all: Vec<RecordBatch> = all.map(Result::unwrap).collect();
            let mut file = ArrowFile::open(&path).unwrap();
            assert_eq!(file.rows(), ROWS + 1000);
            for columns in
                [&[0][..], &[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[0, 2], &[1, 3, 7], &[7, 8]]
            {
                let (mut batch, mut row, mut blocks) = (0, 0, 0);
                file.for_each(columns, &mut |block| {
                    let whole = all[batch].project(columns).unwrap();
                    assert_eq!(*block, whole.slice(row, block.num_rows()), "{compression:?}, {columns:?}");
                    (row, blocks) = (row + block.num_rows(), blocks + 1);
                    if row == whole.num_rows() {
                        (batch, row) = (batch + 1, 0);
                    }
                    Ok(ControlFlow::Continue(()))
                })
                .unwrap();
                assert_eq!((batch, row), (2, 0));
                let small = matches!(columns, [0 | 2, ..]);
                assert!(!small || blocks > 2, "{compression:?}, {columns:?}: {blocks} blocks");
                assert!(!columns.contains(&8) || blocks == 2, "what is missing is the library's to say");
            }
        }
    }
}
