//! The journal: an append-only file of events beside the labels. An event is on the disk before it counts.

use crate::draw::Seed;
use crate::error::ReviewError;
use crate::event::Event;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The layout of the file.
    pub review_journal: u32,
    /// The run whose labels are reviewed.
    pub run: String,
    /// The seed of the audit's draw.
    pub seed: Seed,
}

const LAYOUT: u32 = 1;
/// Longest line that is read.
const MAX_LINE: usize = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Line {
    /// Seconds since 1970.
    at: u64,
    #[serde(flatten)]
    event: Event,
}

/// An open journal. No second process can open it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// What a journal held when it was opened.
#[derive(Debug)]
pub struct Past {
    /// The seed.
    pub seed: Seed,
    /// The events in order.
    pub events: Vec<Event>,
    /// Bytes of a last line that was cut off, and so was never acknowledged.
    pub torn_bytes: usize,
}

impl Journal {
    /// Opens the journal of a run, or begins one with a random seed.
    pub fn open(path: &Path, run: &str) -> Result<(Journal, Past), ReviewError> {
        let fail =
            |error: std::io::Error| ReviewError::Journal { path: path.into(), message: error.to_string() };
        let wrong = |message: String| ReviewError::Journal { path: path.into(), message };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(wrong("another `a2lp review` has it open; use that one, or end it first".into()));
            }
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(fail)?;
        // Every line ends with a line break, so whatever follows the last one was not written to its end.
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let torn_bytes = text.len() - whole;
        let mut lines = text[..whole].split(|&byte| byte == b'\n').enumerate();
        let mut next = || lines.next().filter(|(_, line)| !line.is_empty());
        let header = next().map(|(_, line)| parse_header(line, run).map_err(&wrong)).transpose()?;
        let mut events = Vec::new();
        while let Some((number, line)) = next() {
            let line: Line = (line.len() <= MAX_LINE)
                .then(|| serde_json::from_slice(line).ok())
                .flatten()
                .ok_or_else(|| wrong(format!("line {} is not an event of this version", number + 1)))?;
            events.push(line.event);
        }
        file.set_len(whole as u64).map_err(fail)?;
        file.seek(SeekFrom::End(0)).map_err(fail)?;
        let mut journal = Journal { path: path.into(), file };
        let seed = match header {
            Some(header) => header.seed,
            None => {
                let seed = Seed::random().map_err(fail)?;
                journal.write(&Header { review_journal: LAYOUT, run: run.into(), seed })?;
                sync_folder(path).map_err(fail)?;
                seed
            }
        };
        Ok((journal, Past { seed, events, torn_bytes }))
    }

    /// Appends an event. It is on the disk when this returns.
    pub fn append(&mut self, event: &Event) -> Result<(), ReviewError> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.write(&Line { at, event: event.clone() })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), ReviewError> {
        let fail = |error: std::io::Error| ReviewError::Journal {
            path: self.path.clone(),
            message: format!("{error}; nothing was noted"),
        };
        let mut text = serde_json::to_vec(line).map_err(|error| fail(error.into()))?;
        text.push(b'\n');
        let end = self.file.stream_position().map_err(fail)?;
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A half line would make the next one unreadable.
            self.file.set_len(end).and_then(|()| self.file.seek(SeekFrom::Start(end))).ok();
            return Err(fail(error));
        }
        Ok(())
    }
}

fn parse_header(line: &[u8], run: &str) -> Result<Header, String> {
    let header: Header = serde_json::from_slice(line)
        .map_err(|_| "the first line is not that of a review journal".to_string())?;
    match () {
        () if header.review_journal != LAYOUT => Err("another version of a2lp wrote it".into()),
        () if header.run != run => {
            Err("it is about another run; the labels were made anew since. Move it away to begin again"
                .into())
        }
        () => Ok(header),
    }
}

/// A new file is on the disk only when its folder is.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(unix) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn events() -> Vec<Event> {
        vec![
            Event::Correct { labels: vec![(3, Some("mug \"x\"\n".into())), (4, None)] },
            Event::Answer { row: 9, said: None },
            Event::Undo,
            Event::Promise(Default::default()),
            Event::Version { number: 2 },
            Event::Rerun { after: 1 },
        ]
    }

    #[test]
    fn what_was_appended_is_there_after_every_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("labels.csv.review.jsonl");
        let (mut journal, past) = Journal::open(&path, "run").unwrap();
        assert!(past.events.is_empty());
        events().iter().for_each(|event| journal.append(event).unwrap());
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, cut_past) = Journal::open(&path, "run").unwrap();
            let lines = whole[..cut].iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(cut_past.events, events()[..lines.saturating_sub(1)]);
            assert_eq!(lines > 0, cut_past.seed == past.seed);
            // It goes on from there.
            journal.append(&Event::Undo).unwrap();
            drop(journal);
            let (_, again) = Journal::open(&path, "run").unwrap();
            assert_eq!((again.events.len(), again.torn_bytes), (cut_past.events.len() + 1, 0));
        }
    }

    #[test]
    fn a_journal_that_cannot_be_right_is_refused_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let refused = |path: &Path| Journal::open(path, "run").unwrap_err().to_string();
        drop(Journal::open(&path, "other run").unwrap());
        assert!(refused(&path).contains("another run"));
        fs::write(&path, "a,b\n1,2\n").unwrap();
        assert!(refused(&path).contains("not that of a review journal"));
        fs::remove_file(&path).unwrap();
        let (mut journal, _) = Journal::open(&path, "run").unwrap();
        assert!(refused(&path).contains("another `a2lp review`"));
        journal.append(&Event::Undo).unwrap();
        drop(journal);
        let text = fs::read_to_string(&path).unwrap().replace("undo", "redo");
        fs::write(&path, text).unwrap();
        assert!(refused(&path).contains("line 2 is not an event"));
    }
}
