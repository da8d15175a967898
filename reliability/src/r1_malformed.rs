//! R1: malformed files. No panic, no hang, no memory beyond what the file holds, an error that names the file.

use crate::allocations::most_during;
use crate::files::{self, Sample};
use crate::mutate::{Draws, mutate};
use crate::tally::{Tally, expect};
use crate::{Effort, r11_archives};
use std::path::Path;
use std::time::Instant;

/// Granted beyond twice what was decoded.
const GRANTED_BYTES: usize = 16 << 20;
const MAX_SECS: f64 = 5.0;

pub(crate) fn check(effort: Effort) -> Tally {
    let mut tally = Tally::default();
    let folder = files::scratch();
    let mut samples = files::corpus();
    samples.push(files::network());
    let mut draws = Draws(1);
    let (mut worst_bytes, mut worst_secs) = (0, 0f64);
    let mut one = |name: String, file: &str, bytes: &[u8]| {
        let path = folder.path().join(file);
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{error}"));
        let (wrong, bytes, secs) = try_file(&path, bytes.len());
        (worst_bytes, worst_secs) = (worst_bytes.max(bytes), worst_secs.max(secs));
        std::fs::remove_file(&path).ok();
        tally.case(name, wrong);
    };
    for Sample { name, bytes } in hostile() {
        one(format!("hostile {name}"), &name, &bytes);
    }
    for sample in &samples {
        for at in 0..effort.of(10, 150) {
            let other = &samples[draws.below(samples.len())].bytes;
            let bytes = mutate(&sample.bytes, other, &mut draws);
            one(format!("{} changed, number {at}", sample.name), &sample.name, &bytes);
        }
        // Cut at every length there is, in steps.
        for part in 0..effort.of(4, 16) {
            let bytes = &sample.bytes[..sample.bytes.len() * part / effort.of(4, 16)];
            one(format!("{} cut to {} bytes", sample.name, bytes.len()), &sample.name, bytes);
        }
    }
    tally.note(format!("at most {:.1} MB and {worst_secs:.2} s for one file", worst_bytes as f64 / 1e6));
    tally
}

/// Reads one file under watch.
fn try_file(path: &Path, file_bytes: usize) -> (Result<(), String>, usize, f64) {
    let started = Instant::now();
    let (result, most) = most_during(|| std::panic::catch_unwind(|| files::read(path)));
    let secs = started.elapsed().as_secs_f64();
    let wrong = result.map_err(|_| "a panic reached the user".to_string()).and_then(|outcome| {
        let limit = 2 * (file_bytes + outcome.decoded_bytes) + GRANTED_BYTES;
        expect(most <= limit, || format!("{most} bytes held, {limit} allowed"))?;
        expect(secs <= MAX_SECS, || format!("took {secs:.1} s"))?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let nameless =
            outcome.errors.iter().find(|error| !error.contains(&*file) && !file.ends_with(".toml"));
        nameless.map_or(Ok(()), |error| Err(format!("an error that does not name the file: {error}")))
    });
    (wrong, most, secs)
}

/// Files made on purpose to do harm.
fn hostile() -> Vec<Sample> {
    let npy = |header: &str| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes
    };
    let shaped = |descr: &str, shape: &str| {
        npy(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n"))
    };
    let safetensors = |header: &str| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes
    };
    let parquet = |footer: &[u8]| {
        let mut bytes = b"PAR1".to_vec();
        bytes.extend(footer);
        bytes.extend((footer.len() as u32).to_le_bytes());
        bytes.extend(b"PAR1");
        bytes
    };
    let mut mat = b"MATLAB 5.0 MAT-file".to_vec();
    mat.resize(124, b' ');
    mat.extend([0, 1, b'I', b'M']);
    let mat =
        |elements: &[u32]| [mat.clone(), elements.iter().flat_map(|w| w.to_le_bytes()).collect()].concat();
    let mut arrow = b"ARROW1\0\0\xff\xff\xff\xff".to_vec();
    arrow.extend(0x7fff_fff0u32.to_le_bytes());
    let mut hdf5 = b"\x89HDF\r\n\x1a\n".to_vec();
    hdf5.resize(2048, 0xff);
    let list: &[(&str, Vec<u8>)] = &[
        ("empty.npy", vec![]),
        ("magic-only.npy", b"\x93NUMPY".to_vec()),
        ("14-bytes.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff\0\0".to_vec()),
        ("no-header.npy", npy("")),
        ("huge.npy", shaped("<f4", "(4294967296, 4294967296)")),
        ("wrapped.npy", shaped("<f8", "(2305843009213693952, 2)")),
        ("gigabytes.npy", shaped("<f4", "(1000000000, 8)")),
        ("negative.npy", shaped("<f4", "(-1, 8)")),
        ("object.npy", shaped("|O", "(2, 2)")),
        (
            "code.npy",
            npy("{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (1,)}"),
        ),
        ("wide-words.npy", shaped("<U99999999", "(2,)")),
        ("no-width.npy", shaped("|S0", "(9999999999999,)")),
        ("deep.npy", npy(&"(".repeat(60_000))),
        ("zero-rows.npy", shaped("<f4", "(0, 5)")),
        ("zero-columns.npy", shaped("<f4", "(5, 0)")),
        ("no-zip.npz", b"PK\x03\x04".to_vec()),
        ("empty-zip.npz", [b"PK\x05\x06".to_vec(), vec![0; 18]].concat()),
        ("long-header.safetensors", u64::MAX.to_le_bytes().to_vec()),
        ("deep.safetensors", safetensors(&"[".repeat(100_000))),
        (
            "huge.safetensors",
            safetensors(r#"{"features":{"dtype":"F32","shape":[9e9,9e9],"data_offsets":[0,4]}}"#),
        ),
        (
            "beyond.safetensors",
            safetensors(
                r#"{"features":{"dtype":"F32","shape":[1000000000,8],"data_offsets":[0,32000000000]}}"#,
            ),
        ),
        ("list.parquet", parquet(&[0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0x7f, 0, 0])),
        ("deep.parquet", parquet(&[0x1c; 4000])),
        ("map.parquet", parquet(&[0x1b, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xcc])),
        ("long-footer.parquet", b"PAR1\xff\xff\xff\x7fPAR1".to_vec()),
        ("nothing.parquet", parquet(&[0])),
        ("cut.parquet", b"PAR1".to_vec()),
        ("encrypted.parquet", b"PARE\0\0\0\0PARE".to_vec()),
        ("long-message.arrow", arrow),
        ("signature.arrow", b"ARROW1\0\0".to_vec()),
        ("stream.arrow", vec![0xff; 64]),
        ("zeros.feather", vec![0; 64]),
        ("old.feather", b"FEA1aaaaFEA1".to_vec()),
        ("ones.h5", hdf5),
        ("signature.h5", b"\x89HDF\r\n\x1a\n".to_vec()),
        ("huge.mat", mat(&[14, 0xffff_fff0])),
        ("short.mat", mat(&[0x00ff_000e, 0])),
        ("cells.mat", mat(&[14, 48, 6, 8, 1, 0, 5, 8, 0x7fff_ffff, 0x7fff_ffff, 1, 1, 0x61, 0])),
        (
            "sizes.mat",
            mat(&[14, 64, 6, 8, 6, 0, 5, 8, 0x7fff_ffff, 0x7fff_ffff, 1, 1, 0x61, 0, 9, 0xffff_fff8]),
        ),
        ("bomb.mat", mat(&[15, 4, 0xffff_ffff])),
        ("quotes.csv", b"a,b\n\"1,2\n3,4\n".to_vec()),
        ("ragged.csv", b"1,2\n3\n".to_vec()),
        ("commas.csv", vec![b','; 1 << 20]),
        ("bytes.csv", (0..=255).collect()),
        ("numbers.csv", b"a,b\n1e999,-1e999\nnan,inf\n".to_vec()),
        ("lines.txt", vec![b'\n'; 1 << 20]),
        ("nested.toml", format!("a = {}", "[".repeat(100_000)).into_bytes()),
        ("types.toml", b"neighbours = {a = 1}\n".to_vec()),
        ("graph-empty.npz", [b"PK\x05\x06".to_vec(), vec![0; 18]].concat()),
        ("weights-code.pth", b"\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R.".to_vec()),
        ("weights-empty.pth", vec![]),
        ("weights-zip.pth", [b"PK\x05\x06".to_vec(), vec![0; 18]].concat()),
        ("pickle.npy", b"\x80\x04\x95\0\0\0\0\0\0\0\0.".to_vec()),
        ("features.pkl", b"\x80\x04.".to_vec()),
    ];
    let mut all: Vec<Sample> =
        list.iter().map(|(name, bytes)| Sample { name: (*name).into(), bytes: bytes.clone() }).collect();
    all.extend(r11_archives::bombs());
    all
}
