//! Input at the edge of sense: a defined answer or a typed error, never nonsense.

use a2lp::{
    Domain, Domains, Error, FeatureMatrix, Labelling, Labels, Method, Parameters, Similarity, Solver,
    SourceNodes, Status, Unknown, Unreached, Verdict, label,
};

fn domains<const D: usize>(
    source: &[[f32; D]],
    labels: &[&str],
    target: &[[f32; D]],
) -> Result<Domains, Error> {
    Domains::new(FeatureMatrix::from_rows(source)?, Labels::new(labels), FeatureMatrix::from_rows(target)?)
}

fn run<const D: usize>(
    source: &[[f32; D]],
    labels: &[&str],
    target: &[[f32; D]],
    parameters: Parameters,
) -> Result<Labelling, Error> {
    label(domains(source, labels, target)?, &parameters.check()?)
}

fn statuses(labelling: &Labelling) -> Vec<Status> {
    labelling.pseudo_labels.status().to_vec()
}

#[test]
fn nothing_on_one_side() {
    assert_eq!(domains::<2>(&[], &[], &[[1.0, 0.0]]).unwrap_err(), Error::Empty(Domain::Source));
    assert_eq!(domains(&[[1.0, 0.0]], &["a"], &[]).unwrap_err(), Error::Empty(Domain::Target));
    assert_eq!(domains(&[[]], &["a"], &[[]]).unwrap_err(), Error::Empty(Domain::Source));
}

#[test]
fn widths_and_counts_that_do_not_fit() {
    let narrow = FeatureMatrix::from_rows(&[[1.0]]).unwrap();
    let wide = FeatureMatrix::from_rows(&[[1.0, 2.0]]).unwrap();
    let error = Domains::new(narrow, Labels::new(&["a"]), wide).unwrap_err();
    assert_eq!(error, Error::Width { source_columns: 1, target_columns: 2 });
    let error = domains(&[[1.0]], &["a", "b"], &[[1.0]]).unwrap_err();
    assert_eq!(error, Error::LabelCount { domain: Domain::Source, labels: 2, rows: 1 });
    assert!(matches!(FeatureMatrix::new(2, 3, vec![0.0; 5]), Err(Error::Shape { values: 5, .. })));
}

#[test]
fn nan_and_infinity_are_named_with_their_place() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = domains(&[[1.0, 0.0], [0.0, value]], &["a", "b"], &[[1.0, 1.0]]).unwrap_err();
        assert!(
            matches!(error, Error::NotFinite { domain: Domain::Source, row: 1, column: 1, .. }),
            "{error}"
        );
        let error = domains(&[[1.0, 0.0]], &["a"], &[[1.0, 1.0], [0.0, 2.0], [value, 0.0]]).unwrap_err();
        assert!(
            matches!(error, Error::NotFinite { domain: Domain::Target, row: 2, column: 0, .. }),
            "{error}"
        );
    }
}

#[test]
fn one_row_on_each_side() {
    let labelling = run(&[[1.0, 1.0]], &["a"], &[[1.0, 0.5]], Parameters::paper()).unwrap();
    assert_eq!(labelling.pseudo_labels.labels(), [Some(0)]);
    // With a single class there is nothing to doubt.
    assert_eq!(labelling.pseudo_labels.confidence(), [1.0]);
}

#[test]
fn a_single_column_and_fewer_rows_than_neighbours() {
    let labelling =
        run(&[[1.0], [2.0]], &["a", "b"], &[[3.0], [0.5]], Parameters::paper().rounds(1)).unwrap();
    // Under the cosine all positive numbers are alike: both classes are equally near.
    assert!(labelling.pseudo_labels.confidence().iter().all(|&w| w < 1e-5));
    let gaussian = Parameters::paper().similarity(Similarity::Gaussian { sigma2: 0.5 }).neighbours(1);
    let labelling = run(&[[1.0], [2.0]], &["a", "b"], &[[2.4], [0.8]], gaussian).unwrap();
    assert_eq!(labelling.pseudo_labels.labels(), [Some(1), Some(0)]);
}

#[test]
fn a_class_with_one_sample_and_a_class_that_no_target_gets() {
    let source = [[1.0, 0.0], [0.9, 0.1], [0.95, 0.0], [0.0, 1.0]];
    let labelling =
        run(&source, &["a", "a", "a", "b"], &[[1.0, 0.05], [0.9, 0.0]], Parameters::paper().neighbours(2))
            .unwrap();
    assert_eq!(labelling.pseudo_labels.labels(), [Some(0), Some(0)]);
    // No anchor for the class nobody was given.
    assert!(labelling.anchors.iter().all(|anchor| anchor.class == 0));
    assert_eq!(labelling.anchors.len(), 9);
    assert!(
        labelling.warnings().iter().any(|w| w.to_string().contains("1 source class got no target item: b"))
    );
}

#[test]
fn no_edge_between_the_domains_leaves_all_unreached() {
    // The domains live on different axes: every similarity across is 0.
    let (source, target) = ([[1.0, 0.0], [2.0, 0.0]], [[0.0, 1.0], [0.0, 3.0]]);
    for parameters in [
        Parameters::paper(),
        Parameters::paper().solver(Solver::Dense),
        Parameters::paper().full_graph(),
        Parameters::paper().source_nodes(SourceNodes::Centres),
    ] {
        let labelling = run(&source, &["a", "b"], &target, parameters).unwrap();
        assert_eq!(statuses(&labelling), [Status::Unreached; 2]);
        assert_eq!(labelling.pseudo_labels.labels(), [None, None]);
        assert_eq!(labelling.pseudo_labels.confidence(), [0.0, 0.0]);
        assert_eq!(labelling.pseudo_labels.probabilities(0), [0.5, 0.5]);
        assert!(labelling.anchors.is_empty());
        assert!(labelling.warnings()[0].to_string().contains("2 of 2 target items (100.0 %)"));
    }
}

#[test]
fn an_unreached_item_can_take_the_nearest_label() {
    // Target row 0 sits with the source; rows 1 to 3 form a clique of their own but are not orthogonal to class b.
    let source = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let target = [[0.9, 0.0, 0.0], [0.0, 0.1, 1.0], [0.0, 0.1, 1.1], [0.0, 0.11, 1.0]];
    let parameters = Parameters::paper().neighbours(1).rounds(1);
    let plain = run(&source, &["a", "b"], &target, parameters.clone()).unwrap();
    // Class b's own nearest neighbour is in the clique, so it is reached; cut that tie by hiding b.
    assert_eq!(plain.pseudo_labels.labels()[1], Some(1));
    let source = [[1.0, 0.01, 0.0], [1.0, 0.02, 0.0]];
    let labelling = run(&source, &["a", "b"], &target, parameters.clone()).unwrap();
    assert_eq!(statuses(&labelling)[1..], [Status::Unreached; 3]);
    let filled = run(&source, &["a", "b"], &target, parameters.unreached(Unreached::Nearest)).unwrap();
    assert_eq!(statuses(&filled)[1..], [Status::Unreached; 3]);
    assert_eq!(filled.pseudo_labels.labels()[1..], [Some(1); 3]);
    assert_eq!(filled.pseudo_labels.confidence()[1], 0.0);
}

#[test]
fn zero_rows_are_isolated_and_poison_nothing() {
    let source = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]];
    let target = [[0.9, 0.1], [0.0, 0.0], [0.2, 0.9]];
    for similarity in [Similarity::Cosine, Similarity::Dot3] {
        for parameters in
            [Parameters::paper(), Parameters::paper().full_graph(), Parameters::paper().solver(Solver::Dense)]
        {
            let labelling =
                run(&source, &["a", "b", "a"], &target, parameters.similarity(similarity)).unwrap();
            assert_eq!(labelling.pseudo_labels.labels(), [Some(0), None, Some(1)]);
            assert_eq!(statuses(&labelling)[1], Status::Unreached);
        }
    }
    // Even when asked for the nearest: a zero row is near to nothing.
    let nearest = Parameters::paper().unreached(Unreached::Nearest);
    assert_eq!(run(&source, &["a", "b", "a"], &target, nearest).unwrap().pseudo_labels.labels()[1], None);
}

#[test]
fn all_rows_identical() {
    let row = [0.3f32, 0.4, 0.5];
    for parameters in
        [Parameters::paper(), Parameters::paper().full_graph(), Parameters::paper().neighbours(1)]
    {
        let labelling = run(&[row; 6], &["a", "b", "a", "b", "a", "b"], &[row; 5], parameters).unwrap();
        assert!(labelling.converged());
        for item in 0..5 {
            let sum: f32 = labelling.pseudo_labels.probabilities(item).iter().sum();
            assert!((sum - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn more_neighbours_than_nodes_cost_nothing() {
    let labelling = run(
        &[[1.0, 0.1], [0.1, 1.0]],
        &["a", "b"],
        &[[1.0, 0.2]],
        Parameters::paper().neighbours(4_000_000_000),
    );
    assert_eq!(labelling.unwrap().pseudo_labels.labels(), [Some(0)]);
}

#[test]
fn similarities_that_overflow_are_an_error() {
    let parameters = Parameters::paper().similarity(Similarity::Dot3);
    let error = run(&[[1e18f32, 1.0]], &["a"], &[[1e18, 2.0]], parameters).unwrap_err();
    assert!(matches!(error, Error::WeightOverflow(_)), "{error}");
}

#[test]
fn similarities_that_underflow_leave_items_unreached() {
    let parameters = Parameters::paper().similarity(Similarity::Gaussian { sigma2: 1.0 });
    let labelling = run(&[[0.0f32]], &["a"], &[[100.0]], parameters).unwrap();
    assert_eq!(statuses(&labelling), [Status::Unreached]);
}

#[test]
fn a_consensus_of_very_little() {
    let far = [0.0, 0.0, 1.0];
    type Rows = [[f32; 3]];
    let cases: [(&Rows, &[&str], &Rows); 6] = [
        (&[[1.0, 0.0, 0.0]], &["a"], &[[1.0, 0.1, 0.0]]),
        (&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], &["a", "b"], &[[1.0, 0.1, 0.0]]),
        (&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], &["a", "b"], &[[0.0; 3], [0.0; 3]]),
        (&[[0.0; 3], [0.0; 3]], &["a", "b"], &[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        (&[[1.0, 0.0, 0.0]; 5], &["a", "b", "a", "b", "a"], &[[1.0, 0.0, 0.0]; 4]),
        (&[[1.0, 0.0, 0.0], [0.9, 0.1, 0.0]], &["a", "a"], &[[0.8, 0.1, 0.0], far]),
    ];
    for (source, labels, target) in cases {
        for views in [2, 3] {
            for k in [1, 2, 20] {
                let parameters =
                    Parameters::new().method(Method::Consensus).views(views).neighbours(k).quality(true);
                let found = run(source, labels, target, parameters).unwrap();
                for item in 0..target.len() {
                    let sum: f32 = found.pseudo_labels.probabilities(item).iter().sum();
                    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
                    assert!((0.0..=1.0).contains(&found.pseudo_labels.confidence()[item]));
                }
                // One class is no question, so there is no score.
                assert_eq!(found.quality.is_some(), labels.contains(&"b"));
                if let Some(quality) = found.quality {
                    assert!(
                        quality.score.is_finite() && (-1.0..=1.0).contains(&quality.score),
                        "{quality:?}"
                    );
                }
            }
        }
    }
}

/// Clusters about axes: the axes of the source's rows and of the target's.
fn clusters(source: &[usize], target: &[usize]) -> Domains {
    let mut noise = 7u32;
    let mut row = |axis: usize| -> [f32; 8] {
        std::array::from_fn(|column| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let random = (noise >> 8) as f32 / (1 << 24) as f32 - 0.5;
            0.3 + 0.8 * random + if column == axis { 2.0 } else { 0.0 }
        })
    };
    let rows: Vec<[f32; 8]> = source.iter().map(|&axis| row(axis)).collect();
    let names: Vec<String> = source.iter().map(ToString::to_string).collect();
    let target: Vec<[f32; 8]> = target.iter().map(|&axis| row(axis)).collect();
    Domains::new(
        FeatureMatrix::from_rows(&rows).unwrap(),
        Labels::new(&names),
        FeatureMatrix::from_rows(&target).unwrap(),
    )
    .unwrap()
}

/// Rows that take turns among these axes.
fn turns(axes: &[usize], rows: usize) -> Vec<usize> {
    axes.iter().copied().cycle().take(rows).collect()
}

/// Labels by the default settings, with unknown items flagged.
fn flag(source: &[usize], target: &[usize]) -> Labelling {
    label(clusters(source, target), &Parameters::new().unknown(Unknown::Flag).check().unwrap()).unwrap()
}

/// docs/unknown.md promises these answers.
#[test]
fn unknown_classes_at_the_edge_of_sense() {
    let known = turns(&[0, 1, 2], 90);
    let verdict = |labelling: &Labelling| labelling.reach.as_ref().unwrap().verdict;
    let unknown = |labelling: &Labelling| labelling.pseudo_labels.count(Status::Unknown);

    // No item is unknown.
    let found = flag(&known, &turns(&[0, 1, 2], 90));
    assert_eq!((verdict(&found), unknown(&found)), (Verdict::None, 0));
    // The target holds one known class: a few items on its edge may be taken for others.
    let found = flag(&known, &turns(&[1], 60));
    let ones = found.pseudo_labels.labels().iter().filter(|&&label| label == found.classes.find("1")).count();
    assert!(ones >= 50 && unknown(&found) <= 3, "{ones} and {}", unknown(&found));
    // One row, and one source row, are too few to tell.
    let found = flag(&known, &[1]);
    assert_eq!(
        (verdict(&found), found.pseudo_labels.labels()),
        (Verdict::CannotTell, &[found.classes.find("1")][..])
    );
    let found = flag(&[1], &turns(&[0, 1, 2], 60));
    assert_eq!((verdict(&found), unknown(&found)), (Verdict::CannotTell, 0));
    // A source of one class: every item gets that class, unless it is flagged.
    let found = flag(&turns(&[1], 60), &turns(&[1], 60));
    assert_eq!((verdict(&found), unknown(&found), found.quality), (Verdict::None, 0, None));
    // All items are unknown: reach is relative, so there is nothing to compare them with.
    let found = flag(&known, &turns(&[4, 5, 6], 90));
    assert_ne!(verdict(&found), Verdict::New, "{:?}", found.reach.as_ref().unwrap().evidence);
}

#[test]
fn a_consensus_refuses_what_it_cannot_heed() {
    let consensus = || Parameters::new().method(Method::Consensus);
    for (parameters, part) in [
        (consensus().views(1), "views = 1"),
        (consensus().similarity(Similarity::Dot3), "similarity = dot3"),
        (consensus().source_nodes(SourceNodes::Centres), "source-nodes = centres"),
        (consensus().full_graph(), "neighbours = all"),
    ] {
        let message = parameters.check().unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
}
