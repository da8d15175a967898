//! R9: files that are written to, cut or replaced after they were opened.

use crate::Effort;
use crate::files;
use crate::tally::{Tally, expect};
use a2lp_data::FeatureFile;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

type Change = fn(&Path, &[u8]) -> std::io::Result<()>;

const CHANGES: [(&str, Change); 6] = [
    ("cut to half", |path, bytes| OpenOptions::new().write(true).open(path)?.set_len(bytes.len() as u64 / 2)),
    ("cut to nothing", |path, _| OpenOptions::new().write(true).open(path)?.set_len(0)),
    ("made longer", |path, bytes| OpenOptions::new().append(true).open(path)?.write_all(bytes)),
    ("overwritten in the middle", |path, bytes| {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::Start(bytes.len() as u64 / 2))?;
        file.write_all(&[0xa5; 16])
    }),
    ("replaced", |path, bytes| {
        let other = path.with_extension("other");
        std::fs::write(&other, [bytes, bytes].concat())?;
        std::fs::rename(other, path)
    }),
    ("removed", |path, _| std::fs::remove_file(path)),
];

pub(crate) fn check(_: Effort) -> Tally {
    let mut tally = Tally::default();
    let folder = files::scratch();
    for sample in files::corpus() {
        let path = folder.path().join(&sample.name);
        for (change, make) in CHANGES {
            std::fs::write(&path, &sample.bytes).unwrap_or_else(|error| panic!("{error}"));
            let Ok(file) = FeatureFile::open(&path) else { continue };
            // Clocks of file systems tick slowly.
            std::thread::sleep(std::time::Duration::from_millis(12));
            let made = make(&path, &sample.bytes);
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| file.read()));
            let wrong = made.map_err(|error| error.to_string()).and_then(|()| match tried {
                Err(_) => Err("a panic".into()),
                Ok(Ok(_)) => Err("read as if nothing had happened".into()),
                Ok(Err(error)) => {
                    expect(error.to_string().contains("changed while it was being read"), || {
                        error.to_string()
                    })
                }
            });
            tally.case(format!("{}, {change}", sample.name), wrong);
            std::fs::remove_file(&path).ok();
        }
    }
    tally
}
