//! The run record: what was run, on what, and the results. Enough to run it again and to compare.

use a2lp::evaluation::{RoundScore, Score, TargetTruth, UnknownScore};
use a2lp::{
    CheckedParameters, ClassId, Error, Evidence, GraphReport, Guard, Labelling, MethodChoice, MixChoice,
    Quality, Round, Solver, Status, UnknownGroup, Verdict, ViewName, Warning,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Everything about one run but the items themselves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// The version that ran.
    pub a2lp: String,
    /// The command line, word by word; empty when there was none.
    pub command: Vec<String>,
    /// When it finished, in seconds since 1970.
    pub finished_unix_secs: u64,
    /// The files it read; `None` when the data never were files.
    pub inputs: Option<Inputs>,
    /// Every parameter by name.
    pub settings: Map<String, Value>,
    /// The result.
    pub summary: Summary,
    /// How right it was, where the truth is known.
    pub evaluation: Option<Evaluation>,
    /// How neighbours were found.
    pub graph: Option<GraphReport>,
    /// Round by round.
    pub rounds: Vec<Round>,
    /// What each view of a consensus made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consensus: Option<Consensus>,
    /// What can be said about classes that the source lacks, unless that was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<UnknownRecord>,
    /// The verdict of the guard, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// Where the time went.
    pub timings: Timings,
    /// Where the memory went.
    pub memory: Memory,
}

/// What the caller knows about a run and its result does not tell.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// The command line, word by word.
    pub command: Vec<String>,
    /// The files that were read.
    pub inputs: Option<Inputs>,
    /// Where the labels go, or the page.
    pub out: PathBuf,
    /// Share of unreached items above which the user should look.
    pub max_unreached: f64,
    /// Seconds spent reading.
    pub read_secs: f64,
    /// Seconds since the start.
    pub total_secs: f64,
    /// Memory, planned and used.
    pub memory: Memory,
}

impl RunRecord {
    /// The record of a finished run. `rounds` are the scores that an [`Evaluator`](a2lp::evaluation::Evaluator) saw; without
    /// them rounds are scored by their labels alone.
    pub fn new(
        labelling: &Labelling,
        parameters: &CheckedParameters,
        truth: Option<&TargetTruth>,
        rounds: Option<Vec<RoundScore>>,
        circumstances: Circumstances,
    ) -> Result<Self, Error> {
        let Circumstances { command, inputs, out, max_unreached, read_secs, total_secs, memory } =
            circumstances;
        let evaluation = truth.map(|truth| Evaluation::new(labelling, truth, rounds)).transpose()?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(RunRecord {
            a2lp: env!("CARGO_PKG_VERSION").into(),
            command,
            finished_unix_secs: now.map_or(0, |now| now.as_secs()),
            inputs,
            settings: settings(parameters, &labelling.method, max_unreached),
            summary: Summary::new(&out, labelling, evaluation.as_ref().map(|evaluation| &evaluation.score)),
            evaluation,
            graph: labelling.graph.clone(),
            rounds: labelling.rounds.clone(),
            consensus: Consensus::new(labelling, truth),
            unknown: UnknownRecord::new(labelling, truth),
            guard: labelling.guard.clone(),
            timings: Timings {
                read_secs,
                neighbours_secs: labelling.neighbours_secs,
                reach_secs: labelling.reach_secs,
                rounds_secs: labelling.rounds.iter().map(|round| round.graph_secs + round.solve_secs).sum(),
                total_secs,
            },
            memory,
        })
    }
}

/// The views of a consensus.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Consensus {
    /// Each of them.
    pub views: Vec<ViewRecord>,
    /// Share of the items on which all agree after the last round.
    pub agreement: f64,
    /// Items on which they do not.
    pub disagreements: usize,
    /// Rows of those items, at most 1,000; the labels file has the votes of all.
    pub disagreement_rows: Vec<usize>,
    /// The class mix that the labels assume, and how well each hypothesis fits.
    #[serde(default)]
    pub mix: Option<MixChoice>,
    /// The class shares of both domains.
    #[serde(default)]
    pub class_shares: Vec<ClassShare>,
}

/// The share of a class in both domains.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassShare {
    /// Its name.
    pub class: String,
    /// Its share of the source.
    pub source: f64,
    /// Its estimated share of the target.
    pub target: f64,
    /// Is it probably absent from the target?
    pub probably_absent: bool,
}

/// One view of a consensus.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ViewRecord {
    /// Which.
    pub name: ViewName,
    /// The first round in which it voted.
    #[serde(default = "first_round")]
    pub first_round: usize,
    /// Its own accuracy in every round from that one on, if the truth is known.
    pub accuracy_by_round: Option<Vec<f64>>,
}

fn first_round() -> usize {
    1
}

impl ViewRecord {
    /// Its accuracy in a round, from 1.
    pub fn accuracy(&self, round: usize) -> Option<f64> {
        self.accuracy_by_round.as_ref()?.get(round.checked_sub(self.first_round)?).copied()
    }
}

/// Most rows of disagreements, and of a group, that a record lists.
const MAX_ROWS: usize = 1000;

impl Consensus {
    /// `None` if only one view took part.
    fn new(labelling: &Labelling, truth: Option<&TargetTruth>) -> Option<Self> {
        let agreement = labelling.rounds.last()?.agreement?;
        let accuracy = |labels: &Vec<Option<ClassId>>| {
            truth.and_then(|truth| truth.score(labels).ok()).map(|score| score.accuracy)
        };
        let views = labelling
            .views
            .iter()
            .map(|view| ViewRecord {
                name: view.name,
                first_round: view.first_round,
                accuracy_by_round: view.labels_by_round.iter().map(accuracy).collect(),
            })
            .collect();
        let mut disagreement_rows = labelling.disagreements();
        let disagreements = disagreement_rows.len();
        disagreement_rows.truncate(MAX_ROWS);
        let (mix, class_shares) = (labelling.mix.clone(), class_shares(labelling));
        Some(Consensus { views, agreement, disagreements, disagreement_rows, mix, class_shares })
    }
}

fn class_shares(labelling: &Labelling) -> Vec<ClassShare> {
    let absent = labelling.absent_classes();
    let share =
        |counts: &[usize], class: usize| counts[class] as f64 / counts.iter().sum::<usize>().max(1) as f64;
    let counts = labelling.pseudo_labels.class_counts();
    let of = |(class, name): (usize, &String)| ClassShare {
        class: name.clone(),
        source: share(&labelling.source_counts, class),
        target: share(&counts, class),
        probably_absent: absent.contains(&(class as ClassId)),
    };
    labelling.classes.names().iter().enumerate().map(of).collect()
}

/// What can be said about classes that the source lacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnknownRecord {
    /// In a word.
    pub verdict: Verdict,
    /// In words, with the reasons.
    pub message: String,
    /// Items that match nothing in the source; 0 if the verdict allows no threshold.
    pub items: usize,
    /// Were their labels taken away?
    pub flagged: bool,
    /// The reach below which an item matches nothing in the source.
    pub threshold: f64,
    /// What the verdict rests on.
    pub evidence: Evidence,
    /// Groups of such items that look alike, the largest first, at most 100.
    pub groups: Vec<GroupRecord>,
    /// How right this is, if the truth is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<UnknownScore>,
}

/// Unknown items that look alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupRecord {
    /// How many.
    pub items: usize,
    /// Their rows, the most central first, at most 1,000.
    pub rows: Vec<usize>,
}

/// Most groups that a record lists.
const MAX_GROUPS: usize = 100;

impl UnknownRecord {
    fn new(labelling: &Labelling, truth: Option<&TargetTruth>) -> Option<Self> {
        let reach = labelling.reach.as_ref()?;
        let group = |group: &UnknownGroup| GroupRecord {
            items: group.items.len(),
            rows: group.items.iter().take(MAX_ROWS).copied().collect(),
        };
        Some(UnknownRecord {
            verdict: reach.verdict,
            message: reach.to_string(),
            items: reach.unknown_items(),
            flagged: labelling.nearest_labels.is_some(),
            threshold: reach.threshold,
            evidence: reach.evidence,
            groups: reach.groups.iter().take(MAX_GROUPS).map(group).collect(),
            score: truth.and_then(|truth| truth.score_unknown(reach, labelling.pseudo_labels.labels())),
        })
    }
}

/// Bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    /// What the plan said before the run.
    pub planned_bytes: u64,
    /// Most that the process held; only where the system tells.
    pub peak_bytes: Option<u64>,
}

/// The files of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inputs {
    /// Features of the source.
    pub source: Input,
    /// Labels of the source.
    pub source_labels: PathBuf,
    /// Features of the target.
    pub target: Input,
}

/// A file of features.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Where it was.
    pub path: PathBuf,
    /// Rows in it, those left out included.
    pub rows: usize,
    /// Features per item.
    pub columns: usize,
    /// The type of its numbers.
    pub element_type: String,
    /// The column or array that the features are, where the user named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_column: Option<String>,
    /// Further files of the same set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_files: Vec<PathBuf>,
    /// Rows that were left out because they hold NaN or infinities, counted over all files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_rows: Vec<usize>,
}

impl Input {
    /// All files of the set.
    pub fn paths(&self) -> Vec<PathBuf> {
        std::iter::once(&self.path).chain(&self.more_files).cloned().collect()
    }
}

/// The parameters of a run as they go into its record.
fn settings(parameters: &CheckedParameters, method: &MethodChoice, max_unreached: f64) -> Map<String, Value> {
    #[derive(Serialize)]
    struct Settings<'a> {
        #[serde(flatten)]
        parameters: &'a CheckedParameters,
        resolved_method: String,
        resolved_solver: Solver,
        max_unreached: f64,
        threads: usize,
    }
    let settings = Settings {
        parameters,
        resolved_method: method.to_string(),
        resolved_solver: parameters.resolved_solver(),
        max_unreached,
        threads: parameters.threads(),
    };
    match serde_json::to_value(settings) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    }
}

/// A run in a few numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Where the labels went.
    pub out: PathBuf,
    /// Target items.
    pub items: usize,
    /// Those with a label to rely on.
    pub labelled: usize,
    /// Those below the confidence asked for.
    pub low_confidence: usize,
    /// Those whose scores are within the solver's error.
    pub weak: usize,
    /// Those that no label reaches.
    pub unreached: usize,
    /// Those whose label was taken away because they match nothing in the source.
    #[serde(default)]
    pub unknown: usize,
    /// Mean confidence over all items.
    pub mean_confidence: f64,
    /// Did the solver converge in every round?
    pub converged: bool,
    /// Rounds that were run.
    pub rounds: usize,
    /// Items per predicted class.
    pub class_counts: BTreeMap<String, usize>,
    /// Share labelled correctly, where the truth is known.
    pub accuracy: Option<f64>,
    /// Mean of the classes' shares.
    pub mean_class_accuracy: Option<f64>,
    /// How consistent the labels look, where that was measured. No estimate of the accuracy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// What to look at.
    pub warnings: Vec<WarningLine>,
}

/// A warning in words and in numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WarningLine {
    /// In words.
    pub message: String,
    /// In numbers.
    #[serde(flatten)]
    pub detail: Warning,
}

/// A run against the truth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evaluation {
    /// After the last round.
    #[serde(flatten)]
    pub score: Score,
    /// After every round.
    pub rounds: Vec<RoundScore>,
}

impl Evaluation {
    fn new(
        labelling: &Labelling,
        truth: &TargetTruth,
        rounds: Option<Vec<RoundScore>>,
    ) -> Result<Self, Error> {
        // Without the graphs of the rounds, only accuracies are known.
        let by_labels = |(labels, round): (&Vec<Option<ClassId>>, usize)| {
            let score = truth.score(labels)?;
            Ok(RoundScore {
                round,
                accuracy: score.accuracy,
                mean_class_accuracy: score.mean_class_accuracy,
                pow: f64::NAN,
                same_class_regulariser: f64::NAN,
                other_class_regulariser: f64::NAN,
            })
        };
        let rounds = match rounds {
            Some(rounds) => rounds,
            None => labelling.labels_by_round.iter().zip(1..).map(by_labels).collect::<Result<_, Error>>()?,
        };
        Ok(Evaluation { score: truth.score(labelling.pseudo_labels.labels())?, rounds })
    }
}

/// Seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timings {
    /// Reading files.
    pub read_secs: f64,
    /// Finding neighbours.
    pub neighbours_secs: f64,
    /// Measuring reach, once its neighbours were found.
    #[serde(default)]
    pub reach_secs: f64,
    /// All rounds.
    pub rounds_secs: f64,
    /// Everything.
    pub total_secs: f64,
}

impl Summary {
    /// The summary of a run whose labels went to `out`.
    fn new(out: &Path, labelling: &Labelling, score: Option<&Score>) -> Self {
        let pseudo = &labelling.pseudo_labels;
        let counts = pseudo.class_counts();
        Summary {
            out: out.to_path_buf(),
            items: pseudo.len(),
            labelled: pseudo.count(Status::Labelled),
            low_confidence: pseudo.count(Status::LowConfidence),
            weak: pseudo.count(Status::Weak),
            unreached: pseudo.count(Status::Unreached),
            unknown: pseudo.count(Status::Unknown),
            mean_confidence: labelling.rounds.last().map_or(0.0, |round| round.mean_confidence),
            converged: labelling.converged(),
            rounds: labelling.rounds.len(),
            class_counts: labelling.classes.names().iter().cloned().zip(counts).collect(),
            accuracy: score.map(|s| s.accuracy),
            mean_class_accuracy: score.map(|s| s.mean_class_accuracy),
            quality: labelling.quality,
            warnings: labelling
                .warnings()
                .into_iter()
                .map(|detail| WarningLine { message: detail.to_string(), detail })
                .collect(),
        }
    }
}
