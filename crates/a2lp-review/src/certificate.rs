//! The certificate: what an audit showed, with everything that is needed to show it again.

use crate::audit::{DELTA, Ladder, Promise, SETS};
use crate::draw::Seed;
use crate::error::ReviewError;
use crate::event::AuditSettings;
use crate::session::{Session, delta_of};
use a2lp_data::LabelRow;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};

const LAYOUT: u32 = 1;

/// What was shown about a labels file, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The layout of the file.
    pub review_certificate: u32,
    /// The version that wrote it.
    pub a2lp: String,
    /// What it is about.
    pub title: String,
    /// The run whose labels were reviewed.
    pub run: String,
    /// The result in words.
    pub statement: String,
    /// What it rests on, in words.
    pub assumes: Vec<String>,
    /// What the audit was to show.
    pub settings: AuditSettings,
    /// The probability that a statement about any version of the labels is false.
    pub delta: f64,
    /// The version of the labels, from 1, and the probability that a statement about this one is false.
    pub version: u32,
    /// See `version`.
    pub version_delta: f64,
    /// The seed of the draw: items were shown in ascending order of the first 8 bytes of SHA-256(seed, row as 8 bytes, lowest first).
    pub seed: Seed,
    /// Items that carried a label which no person had given.
    pub items: usize,
    /// SHA-256 of a line `row, tab, label, tab, confidence with six decimals` for each of them, in the order of rows.
    pub labels_sha256: String,
    /// The accepted set: tenths of the items, the most confident first, lower rows first where confidences are equal.
    pub accepted_set: usize,
    /// Items of the accepted set.
    pub accepted_items: usize,
    /// The confidence of its least confident item.
    pub least_confidence: f64,
    /// The fewest and the most labels of the accepted set that can be right, as found in the audit.
    pub right_between: (f64, f64),
    /// Everything that was answered, in that order.
    pub answers: Vec<CertifiedAnswer>,
}

/// An answer, and the label that it was about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CertifiedAnswer {
    /// The row of the item.
    pub row: u64,
    /// Its label.
    pub label: Option<String>,
    /// The confidence of the label.
    pub confidence: f64,
    /// What the person said; `None` if no class fits.
    pub said: Option<String>,
}

impl CertifiedAnswer {
    fn is_wrong(&self) -> bool {
        self.label.is_none() || self.label != self.said
    }
}

/// One item that an audit speaks of.
struct Audited<'a> {
    row: u64,
    label: &'a str,
    confidence: f64,
}

/// SHA-256 of all parts together, in hexadecimal digits.
pub fn fingerprint<Part: AsRef<[u8]>>(parts: impl IntoIterator<Item = Part>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fingerprint_of(items: &[Audited<'_>]) -> String {
    let line =
        |Audited { row, label, confidence }: &Audited<'_>| format!("{row}\t{label}\t{confidence:.6}\n");
    fingerprint(items.iter().map(line))
}

/// A statement for people.
fn statement(accepted: usize, items: usize, settings: &AuditSettings) -> String {
    match accepted {
        0 => "Nothing is signed off: the answers do not show that any set keeps to the allowed share of wrong labels.".into(),
        _ => format!(
            "At most {} of the {accepted} accepted labels are wrong ({} %), with {} % confidence. {} of {items} labels were left out.",
            (settings.max_error * accepted as f64 + 1e-9).floor(),
            round(settings.max_error * 100.0),
            round(100.0 * (1.0 - DELTA)),
            items - accepted,
        ),
    }
}

/// At most two decimals.
fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

impl Session {
    /// What can be certified now. `accept` is the set to accept, in tenths; the largest one that is signed off unless it is given.
    pub fn certificate(&mut self, accept: Option<usize>) -> Result<Certificate, ReviewError> {
        let (ranked, ladder) = self.audited_items()?;
        let set = accept.unwrap_or(ladder.signed_off());
        if set > ladder.signed_off() {
            return Err(ReviewError::refused("this set is not signed off yet"));
        }
        let accepted = ladder.set_size(set);
        let mut items = ranked.clone();
        items.sort_unstable();
        let label = |item: usize| self.label(item);
        let audited: Vec<Audited<'_>> = items
            .iter()
            .map(|&item| Audited {
                row: self.task().row(item),
                label: label(item).unwrap_or_default(),
                confidence: self.confidence(item),
            })
            .collect();
        let answer = |(item, said): &(usize, Option<String>)| CertifiedAnswer {
            row: self.task().row(*item),
            label: label(*item).map(str::to_string),
            confidence: self.confidence(*item),
            said: said.clone(),
        };
        let settings = self.settings();
        let right_between = match set {
            0 => (0.0, 1.0),
            _ => {
                let (fewest, most) = ladder.wrong_in(set);
                let share = |wrong: usize| 1.0 - wrong as f64 / accepted.max(1) as f64;
                (share(most), share(fewest))
            }
        };
        let mut assumes = vec![
            "The person's answers are right.".to_string(),
            "The items that were corrected were not chosen by what the check had shown.".to_string(),
        ];
        if settings.final_labels {
            assumes.push("The labels were declared final before the first answer.".to_string());
        }
        Ok(Certificate {
            review_certificate: LAYOUT,
            a2lp: env!("CARGO_PKG_VERSION").into(),
            title: self.task().title.clone(),
            run: self.task().fingerprint.clone(),
            statement: statement(accepted, items.len(), &settings),
            assumes,
            settings,
            delta: DELTA,
            version: self.version(),
            version_delta: ladder.promise().delta,
            seed: self.seed(),
            items: items.len(),
            labels_sha256: fingerprint_of(&audited),
            accepted_set: set,
            accepted_items: accepted,
            least_confidence: accepted.checked_sub(1).map_or(1.0, |last| self.confidence(ranked[last])),
            right_between,
            answers: self.answers().iter().map(answer).collect(),
        })
    }
}

/// Works a certificate out again from a labels file, as the review exported it or as the run wrote it. Tells what was found to hold, or
/// what does not.
pub fn verify(certificate: &Certificate, file: &[LabelRow]) -> Result<Vec<String>, String> {
    if certificate.review_certificate != LAYOUT {
        return Err("another version of a2lp wrote the certificate".into());
    }
    let settings = certificate.settings;
    if let Some(problem) = settings.problem() {
        return Err(problem.into());
    }
    let allowed = delta_of(certificate.version, settings.final_labels);
    if certificate.delta != DELTA || certificate.version_delta != allowed {
        return Err(format!("version {} may use a δ of {allowed}, not another", certificate.version));
    }

    let answers: HashMap<u64, &CertifiedAnswer> =
        certificate.answers.iter().map(|answer| (answer.row, answer)).collect();
    if answers.len() != certificate.answers.len() {
        return Err("a row was answered twice".into());
    }
    let mut audited: Vec<Audited<'_>> = Vec::new();
    let mut places = HashMap::new();
    for row in file {
        let answer = answers.get(&row.row);
        let (label, confidence) = match answer {
            Some(answer) if row.is_from_person && row.label != answer.said => {
                return Err(format!("row {}: the file does not have the person's answer", row.row));
            }
            Some(answer) => (&answer.label, answer.confidence),
            // Corrected items are not part of the audit.
            None if row.is_from_person => continue,
            None => (&row.label, row.confidence),
        };
        if let Some(label) = label {
            places.insert(row.row, audited.len());
            audited.push(Audited { row: row.row, label, confidence });
        }
    }
    let rows: HashSet<u64> = file.iter().map(|row| row.row).collect();
    if let Some(missing) = certificate.answers.iter().find(|answer| !rows.contains(&answer.row)) {
        return Err(format!("row {} was answered, but the file does not have it", missing.row));
    }
    if audited.len() != certificate.items || fingerprint_of(&audited) != certificate.labels_sha256 {
        return Err("these are not the labels that the certificate speaks of; give it the file that the review exported".into());
    }
    let mut holds = vec![format!("the file has the {} labels that the certificate speaks of", audited.len())];

    let mut draw: Vec<usize> = (0..audited.len()).collect();
    draw.sort_by_cached_key(|&at| (certificate.seed.key(audited[at].row), at));
    let confidence: Vec<f64> = audited.iter().map(|item| item.confidence).collect();
    let AuditSettings { max_error, first_set, .. } = settings;
    let promise = Promise { max_error, delta: certificate.version_delta, first_set };
    let mut ladder = Ladder::new(&confidence, &draw, promise);
    for answer in &certificate.answers {
        if let Some(&at) = places.get(&answer.row) {
            ladder.answer(at, answer.is_wrong());
        }
    }
    let set = certificate.accepted_set;
    if set > SETS || set > ladder.signed_off() {
        return Err(format!("the answers sign off {} tenths of the labels, not {set}", ladder.signed_off()));
    }
    if ladder.set_size(set) != certificate.accepted_items
        || certificate.statement != statement(certificate.accepted_items, audited.len(), &settings)
    {
        return Err("the statement does not follow from the answers".into());
    }
    holds.push(format!(
        "the {} answers sign off {} tenths of the labels",
        certificate.answers.len(),
        ladder.signed_off()
    ));

    if file.iter().all(|row| row.accepted.is_some()) {
        let mut accepted = vec![false; audited.len()];
        ladder.ranked()[..certificate.accepted_items].iter().for_each(|&at| accepted[at] = true);
        for row in file {
            let by_rule = match row.is_from_person {
                true => row.label.is_some(),
                false => places.get(&row.row).is_some_and(|&at| accepted[at]),
            };
            if row.accepted != Some(by_rule) {
                return Err(format!("row {}: the column `accepted` does not follow the rule", row.row));
            }
        }
        holds.push("the column `accepted` follows the rule".into());
    }
    Ok(holds)
}
