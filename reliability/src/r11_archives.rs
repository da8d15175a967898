//! R11: archives that expand to very much, that name places elsewhere, and arrays of objects.

use crate::Effort;
use crate::commands::{code, run, told};
use crate::files::{self, Sample};
use crate::tally::{Tally, expect};
use std::io::Write;
use std::path::Path;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

pub(crate) fn check(_: Effort) -> Tally {
    let mut tally = Tally::default();
    let outer = files::scratch();
    let folder = outer.path().join("here");
    std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{error}"));
    for Sample { name, bytes } in bombs() {
        for words in [
            format!("inspect {name}"),
            format!("convert {name} --out x.npy --force"),
            format!("label --source {name} --target {name} --out x.csv --force"),
        ] {
            std::fs::write(folder.join(&name), &bytes).unwrap_or_else(|error| panic!("{error}"));
            let before = listing(outer.path());
            let output = run(&folder, &words);
            let after = listing(outer.path());
            let wrong =
                expect(code(&output) == 2, || format!("exit code {}: {}", code(&output), told(&output)))
                    .and_then(|()| expect(told(&output).contains(&name), || told(&output)))
                    .and_then(|()| expect(before == after, || format!("files appeared: {after:?}")));
            tally.case(words, wrong);
            std::fs::remove_file(folder.join(&name)).ok();
        }
    }
    tally
}

/// Everything below a folder.
fn listing(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        all.push(entry.path().display().to_string());
        all.extend(listing(&entry.path()));
    }
    all.sort();
    all
}

fn archive(entries: &[(&str, &[u8], CompressionMethod)]) -> Vec<u8> {
    let mut buffer = std::io::Cursor::new(Vec::new());
    let mut writer = zip::ZipWriter::new(&mut buffer);
    for (name, bytes, method) in entries {
        let options = SimpleFileOptions::default().compression_method(*method);
        writer.start_file(*name, options).and_then(|()| Ok(writer.write_all(bytes)?)).unwrap_or_default();
    }
    writer.finish().map(drop).unwrap_or_default();
    buffer.into_inner()
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// Archives that must be refused.
pub(crate) fn bombs() -> Vec<Sample> {
    let deflated = CompressionMethod::Deflated;
    let zeros = vec![0u8; 4 << 20];
    let features = npy("<f4", "(2, 2)", &[0; 16]);
    let list: Vec<(&str, Vec<u8>)> = vec![
        // Four megabytes of zeros that claim to be four gigabytes.
        ("claims.npz", archive(&[("features.npy", &npy("<f4", "(1000000, 1024)", &zeros), deflated)])),
        (
            "claims-columns.npz",
            archive(&[("features.npy", &npy("<f4", "(1, 1000000000)", &zeros), deflated)]),
        ),
        ("words.npz", archive(&[("features.npy", &npy("<U16000", "(1000, 1000)", &zeros), deflated)])),
        ("objects.npz", archive(&[("features.npy", &npy("|O", "(2, 2)", b"\x80\x04."), deflated)])),
        (
            "objects-stored.npz",
            archive(&[("features.npy", &npy("|O", "(2, 2)", b"\x80\x04."), CompressionMethod::Stored)]),
        ),
        ("structured.npz", archive(&[("features.npy", &npy("', 'x': '", "(2, 2)", &[0; 16]), deflated)])),
        ("up.npz", archive(&[("../../features.npy", &features, deflated), ("../up.txt", b"x", deflated)])),
        ("absolute.npz", archive(&[("/tmp/a2lp-absolute.npy", &npy("|O", "(1,)", &[]), deflated)])),
        (
            "inner.npz",
            archive(&[("features.npz", &archive(&[("features.npy", &features, deflated)]), deflated)]),
        ),
        ("empty.npz", archive(&[])),
    ];
    list.into_iter().map(|(name, bytes)| Sample { name: name.into(), bytes }).collect()
}
