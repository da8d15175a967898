//! R10: no silent nonsense. A warning about a result appears on standard error, in the record and on the page, and the exit
//! code follows the user's limit.

use crate::Effort;
use crate::commands::{Clusters, code, run, told};
use crate::files;
use crate::tally::{Tally, expect};
use std::path::Path;

/// The defect, its code in the record, part of the warning, and further options.
type Trouble = (&'static str, &'static str, &'static str, &'static str, fn(&mut Clusters));

const TROUBLES: [Trouble; 8] = [
    ("no path to a label", "unreached", "have no path to any label", "--neighbours 3", |data| {
        // Domains in directions of their own.
        let columns = data.columns;
        for (values, own) in [(&mut data.source, 0), (&mut data.target, 1)] {
            for (at, value) in values.iter_mut().enumerate() {
                *value = if at % columns % 2 == own { value.abs() + 0.1 } else { 0.0 };
            }
        }
    }),
    ("classes that the target lacks", "absent-classes", "are probably absent from the target", "", |data| {
        like_the_first_classes(data, 2);
    }),
    ("one class takes all", "dominant", "takes", "--method a2lp", |data| {
        like_the_first_classes(data, 1);
    }),
    ("one class, spread over several", "scattered", "compare with lp", "", |data| {
        like_the_first_classes(data, 1);
    }),
    ("a class that the source lacks", "unknown-items", "match nothing in the source", "", |data| {
        // Three clusters and a fourth that only the target has, each about an axis of its own.
        let columns = data.columns;
        for (values, classes) in [(&mut data.source, 3), (&mut data.target, 4)] {
            for (at, value) in values.iter_mut().enumerate() {
                *value = 0.3 * value.abs() + if at % columns == at / columns % classes { 2.0 } else { 0.3 };
            }
        }
        data.labels.iter_mut().enumerate().for_each(|(row, label)| *label = (row % 3) as i64);
    }),
    (
        "an anchor of one item",
        "thin-anchors",
        "were made of fewer than 3 items",
        "--method a2lp --neighbours 4 --rounds 2",
        |data| {
            // All of the target is like the first class but for one item of each other.
            let (columns, classes) = (data.columns, data.classes);
            like_the_first_classes(data, 1);
            for class in 0..classes {
                let own = data.source[class * columns..][..columns].to_vec();
                data.target[class * columns..][..columns].copy_from_slice(&own);
            }
        },
    ),
    (
        "labels that do not settle",
        "unsettled",
        "still changed in the last round",
        "--neighbours 3 --rounds 2 --alpha 0.9",
        |data| {
            // Noise: neighbours mean nothing.
            let mut draws = crate::mutate::Draws(3);
            data.source.iter_mut().chain(&mut data.target).for_each(|value| {
                *value = (draws.next() as f64 / u64::MAX as f64 - 0.5) as f32;
            });
        },
    ),
    (
        "a solver that cannot get there",
        "not-converged",
        "the solver stopped after",
        "--tolerance 1e-300 --solver cg --alpha 0.999",
        |_| {},
    ),
];

/// Makes all target items the items of the source's first classes.
fn like_the_first_classes(data: &mut Clusters, classes: usize) {
    let (kept, step) = (classes * data.columns, data.classes * data.columns);
    let own: Vec<f32> = data.source.chunks(step).flat_map(|items| items[..kept].to_vec()).collect();
    data.target.iter_mut().zip(own.iter().cycle()).for_each(|(value, own)| *value = *own);
}

pub(crate) fn check(_: Effort) -> Tally {
    let mut tally = Tally::default();
    let folder = files::scratch();
    let folder = folder.path();
    for (name, kind, sentence, words, make) in TROUBLES {
        let mut data = Clusters::new(60, 80, 8, 4, 2);
        make(&mut data);
        data.write(folder);
        let run_with = |more: &str| {
            run(
                folder,
                &format!(
                    "label --source src.npz --target tgt.npy --out x.csv --force --report {words} {more}"
                ),
            )
        };
        let output = run_with("--max-unreached 1");
        tally.case(
            format!("{name}: said"),
            expect(told(&output).contains("warning: ") && told(&output).contains(sentence), || {
                format!("exit code {}: {}", code(&output), told(&output))
            }),
        );
        tally.case(
            format!("{name}: in the record"),
            holds(&folder.join("x.csv.run.json"), &format!("\"{kind}\"")),
        );
        tally.case(format!("{name}: on the page"), holds(&folder.join("x.html"), sentence));
        let usual = if kind == "not-converged" { 1 } else { 0 };
        tally.case(
            format!("{name}: exit code"),
            expect(code(&output) == usual, || format!("{} instead of {usual}", code(&output))),
        );
        let strict = run_with("--max-unreached 1 --strict");
        tally.case(
            format!("{name}: exit code with --strict"),
            expect(code(&strict) == 1, || code(&strict).to_string()),
        );
        if kind == "unreached" {
            let over = run_with("--max-unreached 0.1");
            tally.case(
                format!("{name}: exit code over the limit"),
                expect(code(&over) == 1, || code(&over).to_string()),
            );
        }
    }
    let data = Clusters::new(60, 80, 8, 4, 2);
    data.write(folder);
    let output = run(folder, "label --source src.npz --target tgt.npy --out x.csv --force --strict");
    tally.case(
        "nothing wrong",
        expect(code(&output) == 0 && !told(&output).contains("warning"), || told(&output)),
    );
    tally
}

fn holds(path: &Path, wanted: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    expect(text.contains(wanted), || format!("no {wanted} in {}", path.display()))
}
