use super::*;
use crate::features::FeatureMatrix;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Random rows with duplicates and zero rows among them.
fn features(rows: usize, columns: usize, seed: u64) -> FeatureMatrix {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut matrix = FeatureMatrix::default();
    for row in 0..rows {
        let values: Vec<f32> = match row % 11 {
            4 => matrix.row(rng.random_range(0..row)).to_vec(),
            7 if row % 3 == 0 => vec![0.0; columns],
            _ => (0..columns).map(|_| rng.random_range(-0.4f32..1.0)).collect(),
        };
        matrix.append_row(&values);
    }
    matrix
}

/// The definition: all pairs, sorted by score, ties by index.
fn naive(matrix: &FeatureMatrix, k: usize, similarity: Similarity) -> Vec<Vec<(u32, u32)>> {
    (0..matrix.rows())
        .map(|i| {
            let mut all: Vec<(f32, u32)> = (0..matrix.rows())
                .filter(|&j| j != i)
                .map(|j| {
                    let mut acc = 0f32;
                    for (&a, &b) in matrix.row(i).iter().zip(matrix.row(j)) {
                        acc = match similarity {
                            Similarity::Gaussian { .. } => (a - b).mul_add(a - b, acc),
                            _ => a.mul_add(b, acc),
                        };
                    }
                    (if matches!(similarity, Similarity::Gaussian { .. }) { -acc } else { acc }, j as u32)
                })
                .filter(|&(score, _)| matches!(similarity, Similarity::Gaussian { .. }) || score > 0.0)
                .collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            all.truncate(k);
            all.into_iter().map(|(score, j)| (j, score.to_bits())).collect()
        })
        .collect()
}

fn as_pairs(lists: &NeighbourLists) -> Vec<Vec<(u32, u32)>> {
    (0..lists.nodes())
        .map(|i| lists.of(i).iter().map(|r| (r.node(), r.score().to_bits())).collect())
        .collect()
}

fn find_exact(matrix: &FeatureMatrix, k: usize, similarity: Similarity) -> NeighbourLists {
    find_neighbours(matrix, Wanted::Nearest(k), similarity, GraphMethod::Exact, 0, &()).unwrap().0
}

const SIMILARITIES: [Similarity; 3] =
    [Similarity::Cosine, Similarity::Gaussian { sigma2: 1.0 }, Similarity::Dot3];

#[test]
fn exact_search_equals_the_double_loop() {
    for (rows, columns, k) in
        [(1, 3, 2), (2, 1, 1), (30, 5, 40), (150, 8, 7), (700, 33, 20), (1300, 300, 100)]
    {
        let mut matrix = features(rows, columns, rows as u64);
        for similarity in SIMILARITIES {
            if similarity == Similarity::Cosine {
                matrix.normalise_rows();
            }
            let found = find_exact(&matrix, k, similarity);
            assert_eq!(
                as_pairs(&found),
                naive(&matrix, k, similarity),
                "{rows}x{columns}, k {k}, {similarity:?}"
            );
        }
    }
}

#[test]
fn exact_search_does_not_depend_on_the_number_of_threads() {
    let matrix = features(2500, 16, 3);
    let lists: Vec<NeighbourLists> = [1, 2, 3, 8]
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| find_exact(&matrix, 20, Similarity::Dot3))
        })
        .into();
    assert!(lists.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn inserting_nodes_equals_building_anew() {
    for similarity in SIMILARITIES {
        for k in [1, 5, 30] {
            let base = features(1100, 12, 5);
            let mut anchors = FeatureMatrix::default();
            let mut lists = find_exact(&base, k, similarity);
            for round in 0..4 {
                let first_new = anchors.rows();
                let added = features(6, 12, 100 + round);
                for row in 0..added.rows() {
                    // The second of each batch repeats an old row: ties must fall the same way.
                    anchors.append_row(if row == 1 { base.row(9) } else { added.row(row) });
                }
                insert_nodes(&mut lists, &base, &anchors, first_new, k, similarity);
            }
            let mut all = base.clone();
            all.append(&anchors);
            let anew = find_exact(&all, k, similarity);
            assert_eq!(as_pairs(&lists), as_pairs(&anew), "{similarity:?}, k {k}");
        }
    }
}

#[test]
fn a_stopped_search_says_so() {
    struct Stop;
    impl crate::Observer for Stop {
        fn progress(&self, _: crate::Stage, _: u64, _: u64) -> std::ops::ControlFlow<()> {
            std::ops::ControlFlow::Break(())
        }
    }
    let stopped = find_neighbours(
        &features(100, 4, 1),
        Wanted::Nearest(3),
        Similarity::Cosine,
        GraphMethod::Exact,
        0,
        &Stop,
    );
    assert_eq!(stopped.unwrap_err(), crate::Error::Cancelled);
}

#[test]
fn screening_finds_nearly_all_and_scores_them_exactly() {
    for (signed, similarity) in [
        (true, Similarity::Cosine),
        (false, Similarity::Cosine),
        (true, Similarity::Dot3),
        (true, Similarity::Gaussian { sigma2: 1.0 }),
    ] {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        // Clusters, as features have them.
        let centres: Vec<Vec<f32>> =
            (0..20).map(|_| (0..96).map(|_| rng.random_range(-1.0f32..1.0)).collect()).collect();
        let mut matrix = FeatureMatrix::default();
        for row in 0..3000 {
            let mut values: Vec<f32> =
                centres[row % 20].iter().map(|c| c + rng.random_range(-0.7f32..0.7)).collect();
            if !signed {
                values.iter_mut().for_each(|v| *v = v.max(0.0));
            }
            matrix.append_row(&values);
        }
        if similarity == Similarity::Cosine {
            matrix.normalise_rows();
        }
        let exact = find_exact(&matrix, 20, similarity);
        let (screened, report) =
            find_neighbours(&matrix, Wanted::Nearest(20), similarity, GraphMethod::Screened, 0, &()).unwrap();
        let found: usize =
            (0..3000).map(|i| exact.of(i).iter().filter(|r| screened.of(i).contains(r)).count()).sum();
        assert!(found as f64 >= 0.999 * 60_000.0, "{similarity:?}: {found} of 60000");
        assert!(report.recall >= 0.999 && report.sampled_rows == 128);
        // Whatever was proved exact is, and the rest is in the right order with true scores.
        let equal = (0..3000).filter(|&i| exact.of(i) == screened.of(i)).count();
        assert!(equal as f64 / 3000.0 >= report.certified);
    }
}

#[test]
fn screening_few_rows_is_exact() {
    let matrix = features(40, 12, 8);
    for similarity in SIMILARITIES {
        let (lists, report) =
            find_neighbours(&matrix, Wanted::Nearest(30), similarity, GraphMethod::Screened, 0, &()).unwrap();
        assert_eq!(as_pairs(&lists), naive(&matrix, 30, similarity));
        assert_eq!((report.recall, report.certified), (1.0, 1.0));
    }
}

/// Clusters, as features have them, with duplicates and zero rows among them.
fn clusters(rows: usize, columns: usize, clusters: usize, width: f32) -> FeatureMatrix {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let centres: Vec<Vec<f32>> =
        (0..clusters).map(|_| (0..columns).map(|_| rng.random_range(-1.0f32..1.0)).collect()).collect();
    let mut matrix = FeatureMatrix::default();
    for row in 0..rows {
        let values: Vec<f32> = match row % 50 {
            17 => matrix.row(row / 2).to_vec(),
            31 => vec![0.0; columns],
            _ => centres[row % clusters].iter().map(|c| c + rng.random_range(-width..width)).collect(),
        };
        matrix.append_row(&values);
    }
    matrix
}

/// Share of the exact lists' entries that the others have; these must be well formed.
fn recall(exact: &NeighbourLists, lists: &NeighbourLists) -> f64 {
    let (mut found, mut all) = (0, 0);
    for node in 0..exact.nodes() {
        let list = lists.of(node);
        found += exact.of(node).iter().filter(|r| list.contains(r)).count();
        all += exact.of(node).len();
        assert!(list.iter().all(|r| r.node() as usize != node), "node {node} lists itself");
        assert!(list.windows(2).all(|pair| pair[0] > pair[1]), "node {node}: order");
    }
    found as f64 / all as f64
}

#[test]
fn inexact_searches_find_most_and_do_not_depend_on_threads() {
    let matrix = clusters(6000, 40, 60, 0.5);
    for (method, least) in
        [(GraphMethod::Screened, 0.9999), (GraphMethod::Pruned, 0.98), (GraphMethod::Nndescent, 0.98)]
    {
        for similarity in SIMILARITIES {
            let mut matrix = matrix.clone();
            if similarity == Similarity::Cosine {
                matrix.normalise_rows();
            }
            let exact = find_exact(&matrix, 10, similarity);
            let runs: Vec<(NeighbourLists, GraphReport)> = [1, 2, 3, 8]
                .map(|threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| find_neighbours(&matrix, Wanted::Nearest(10), similarity, method, 5, &()))
                        .unwrap()
                })
                .into();
            assert!(runs.windows(2).all(|pair| pair[0] == pair[1]), "{method:?} {similarity:?}");
            let (lists, report) = &runs[0];
            let recall = recall(&exact, lists);
            assert!(recall >= least, "{method:?} {similarity:?}: {recall}");
            assert!((report.recall - recall).abs() < 0.02, "{method:?}: {} reported", report.recall);
        }
    }
}

#[test]
fn nn_descent_on_easy_and_hard_sets() {
    // Easy: few true dimensions. Hard: as many as columns, where no neighbour says much about another.
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let easy: Vec<[f32; 4]> =
        (0..5000).map(|_| std::array::from_fn(|_| rng.random_range(-1.0..1.0))).collect();
    let easy = FeatureMatrix::from_rows(&easy).unwrap();
    let hard: Vec<[f32; 24]> =
        (0..5000).map(|_| std::array::from_fn(|_| rng.random_range(-1.0..1.0))).collect();
    let hard = FeatureMatrix::from_rows(&hard).unwrap();
    for (matrix, k, least) in [(&easy, 15, 0.995), (&hard, 15, 0.8), (&hard, 40, 0.97)] {
        let similarity = Similarity::Gaussian { sigma2: 1.0 };
        let (lists, _) =
            find_neighbours(matrix, Wanted::Nearest(k), similarity, GraphMethod::Nndescent, 0, &()).unwrap();
        let recall = recall(&find_exact(matrix, k, similarity), &lists);
        assert!(recall >= least, "{} columns, k {k}: {recall}", matrix.columns());
    }
}

#[test]
fn nearly_equal_rows_are_told_apart() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut bundles = FeatureMatrix::default();
    let directions: Vec<Vec<f32>> =
        (0..8).map(|_| (0..30).map(|_| rng.random_range(-1.0f32..1.0)).collect()).collect();
    for row in 0..2400 {
        // 300 rows to a bundle, far more than are proposed, closer together than six bits can tell.
        let jitter = |c: &f32| c + rng.random_range(-2e-3f32..2e-3);
        bundles.append_row(&directions[row % 8].iter().map(jitter).collect::<Vec<f32>>());
    }
    let mut few = FeatureMatrix::default();
    for row in 0..40 {
        few.append_row(&[1.0, row as f32 * 1e-4, 0.5]);
    }
    for (mut matrix, k) in [(bundles, 10), (few, 5)] {
        for similarity in SIMILARITIES {
            if similarity == Similarity::Cosine {
                matrix.normalise_rows();
            }
            let exact = find_exact(&matrix, k, similarity);
            for method in [GraphMethod::Screened, GraphMethod::Pruned, GraphMethod::Nndescent] {
                let (lists, _) =
                    find_neighbours(&matrix, Wanted::Nearest(k), similarity, method, 0, &()).unwrap();
                let recall = recall(&exact, &lists);
                assert!(recall >= 0.98, "{method:?} {similarity:?} {} rows: {recall}", matrix.rows());
            }
        }
    }
}

#[test]
fn lists_are_as_long_as_they_can_be() {
    // Equal rows pile up in one group; some rows stand alone.
    let mut matrix = FeatureMatrix::default();
    for row in 0..900 {
        let values = if row % 100 == 3 { [row as f32, -1.0, 5.0] } else { [1.0, 2.0, 3.0] };
        matrix.append_row(&values);
    }
    for k in [1, 30, 450, 899, 2000] {
        for method in [GraphMethod::Screened, GraphMethod::Pruned, GraphMethod::Nndescent] {
            let similarity = Similarity::Gaussian { sigma2: 1.0 };
            let (lists, _) =
                find_neighbours(&matrix, Wanted::Nearest(k), similarity, method, 0, &()).unwrap();
            assert!((0..900).all(|node| lists.of(node).len() == k.min(899)), "{method:?}, k {k}");
        }
    }
    // One row, two rows, only zero rows.
    for rows in [1, 2, 30] {
        let matrix = FeatureMatrix::new(rows, 4, vec![0.0; 4 * rows]).unwrap();
        for method in [GraphMethod::Screened, GraphMethod::Pruned, GraphMethod::Nndescent] {
            for (similarity, length) in
                [(Similarity::Cosine, 0), (Similarity::Gaussian { sigma2: 1.0 }, 3.min(rows - 1))]
            {
                let (lists, _) =
                    find_neighbours(&matrix, Wanted::Nearest(3), similarity, method, 0, &()).unwrap();
                assert!((0..rows).all(|node| lists.of(node).len() == length), "{method:?} {similarity:?}");
            }
        }
    }
}

#[test]
fn large_graphs_do_not_depend_on_threads_either() {
    // Enough rows that every search has many blocks, groups and tasks.
    let mut matrix = clusters(20_000, 24, 90, 0.6);
    matrix.normalise_rows();
    for method in [GraphMethod::Exact, GraphMethod::Screened, GraphMethod::Pruned, GraphMethod::Nndescent] {
        let runs: Vec<NeighbourLists> = [1, 2, 3, 8]
            .map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    find_neighbours(&matrix, Wanted::Nearest(12), Similarity::Cosine, method, 1, &())
                })
                .unwrap()
                .0
            })
            .into();
        assert!(runs.windows(2).all(|pair| pair[0] == pair[1]), "{method:?}");
    }
}

#[test]
fn some_of_each_domain_are_the_best_of_each_domain() {
    for (rows, first_target) in [(300, 120), (300, 299), (40, 1), (700, 350)] {
        let matrix = features(rows, 12, rows as u64);
        for similarity in SIMILARITIES {
            let all = naive(&matrix, rows, similarity);
            let wanted = Wanted::OfEach { first_target, source: 4, target: 7 };
            let truth: Vec<Vec<(u32, u32)>> = all
                .iter()
                .map(|list| {
                    let of = |target: bool, k: usize| {
                        list.iter().filter(move |r| (r.0 as usize >= first_target) == target).take(k)
                    };
                    let kept: Vec<_> = of(false, 4).chain(of(true, 7)).collect();
                    list.iter().filter(|r| kept.contains(r)).copied().collect()
                })
                .collect();
            for method in [GraphMethod::Exact, GraphMethod::Screened, GraphMethod::Pruned] {
                let (lists, report) = find_neighbours(&matrix, wanted, similarity, method, 0, &()).unwrap();
                assert_eq!(report.method, method);
                if method == GraphMethod::Exact {
                    assert_eq!(as_pairs(&lists), truth, "{rows} {first_target} {similarity:?}");
                } else {
                    assert!(report.recall > 0.99, "{rows} {first_target} {similarity:?}: {report}");
                }
            }
        }
    }
}

/// Runs with 1, 2, 3 and 8 threads, which must agree.
fn on_any_threads<T: PartialEq + Send>(run: impl Fn() -> T + Sync) -> T {
    let mut runs: Vec<T> = [1, 2, 3, 8]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(&run))
        .into();
    assert!(runs.windows(2).all(|pair| pair[0] == pair[1]));
    runs.swap_remove(0)
}

#[test]
fn groups_are_searched_for_some_of_each_domain() {
    let mut matrix = clusters(9000, 40, 60, 0.5);
    matrix.normalise_rows();
    // Few of the source, many of it, and more wanted than it has.
    for (first_target, source, target) in [(900, 5, 5), (6000, 3, 9), (4, 6, 6)] {
        let wanted = Wanted::OfEach { first_target, source, target };
        let find = |method| find_neighbours(&matrix, wanted, Similarity::Cosine, method, 5, &()).unwrap();
        let (lists, report) = on_any_threads(|| find(GraphMethod::Pruned));
        let recall = recall(&find(GraphMethod::Exact).0, &lists);
        assert!(recall >= 0.98, "{wanted:?}: {recall}");
        assert!((report.recall - recall).abs() < 0.02, "{wanted:?}: {report}");
    }
}

#[test]
fn rows_that_have_moved_a_little_are_found_from_the_lists_of_before() {
    let before = clusters(6000, 40, 60, 0.5);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut now = FeatureMatrix::default();
    for row in 0..before.rows() {
        // Rows of zeros stay so: of those that point elsewhere than before, the lists of before know nothing.
        let width = if before.row(row).iter().all(|&v| v == 0.0) { 0.0 } else { 0.03 };
        let moved = before.row(row).iter().map(|v| v + width * rng.random_range(-1.0f32..1.0));
        now.append_row(&moved.collect::<Vec<f32>>());
    }
    let (similarity, k) = (Similarity::Dot3, 10);
    // Lists with an order of their own, and lists without.
    for method in [GraphMethod::Pruned, GraphMethod::Exact] {
        let lists = find_neighbours(&before, Wanted::Nearest(k), similarity, method, 0, &()).unwrap().0;
        let found = on_any_threads(|| moved::find(&now, k, similarity, &lists, &()).unwrap()).unwrap();
        let recall = recall(&find_exact(&now, k, similarity), &found);
        assert!(recall >= 0.98, "{method:?}: {recall}");
        assert_eq!(found.order(), lists.order());
    }
    // Lists of other rows are no start.
    let others = find_exact(&features(6000, 40, 1), k, similarity);
    assert!(moved::find(&now, k, similarity, &others, &()).unwrap().is_none());
}

#[test]
fn neighbours_of_before_do_not_show_in_those_of_now() {
    let (before, now) = (features(500, 9, 1), features(500, 9, 2));
    for similarity in SIMILARITIES {
        let lists = find_exact(&before, 15, similarity);
        let found = exact::find(&now, Wanted::Nearest(15), similarity, Some(&lists), &()).unwrap();
        assert_eq!(as_pairs(&found), naive(&now, 15, similarity));
    }
}

/// One pass finds what searches of their own find among centred rows. Scores may differ in the last bits, so only neighbours that
/// others nearly tie with may be exchanged.
#[test]
fn centred_rows_are_ranked_by_the_products_of_the_others() {
    let (rows, columns) = (360, 10);
    for first_target in [1usize, 150, 359] {
        let mut unit = features(rows, columns, 8);
        // Rows without a length have no cosine, and lie nowhere near another point.
        unit.remove_rows(&(0..rows).filter(|row| row % 33 == 18).collect::<Vec<_>>());
        unit.normalise_rows();
        let count = unit.rows();
        let first_target = first_target.min(count - 1);
        let points = [[0.1; 10], [-0.2; 10]];
        let centring = Centring::new(&unit, first_target, [&points[0], &points[1]]).unwrap();
        let halves = Wanted::OfEach { first_target, source: 6, target: 5 };
        let searches =
            [(Wanted::Nearest(9), None), (halves, Some(&centring)), (Wanted::Nearest(7), Some(&centring))];
        let found = find_together(&unit, &searches, Similarity::Cosine, &()).unwrap();
        assert_eq!(as_pairs(&found[0].0), naive(&unit, 9, Similarity::Cosine));

        let mut centred = unit.clone();
        centred.subtract(0..first_target, &points[0]);
        centred.subtract(first_target..count, &points[1]);
        centred.normalise_rows();
        for ((lists, _), (wanted, _)) in found[1..].iter().zip(&searches[1..]) {
            let own = exact::find(&centred, *wanted, Similarity::Cosine, None, &()).unwrap();
            for row in 0..count {
                assert_eq!(lists.of(row).len(), own.of(row).len(), "row {row}");
                for (a, b) in lists.of(row).iter().zip(own.of(row)) {
                    assert!((a.score() - b.score()).abs() < 2e-6, "row {row}: {a:?} {b:?}");
                }
            }
        }
    }
    // A row at its point has no direction from there.
    let unit = FeatureMatrix::from_rows(&[[1.0, 0.0], [0.0, 1.0]]).unwrap();
    assert!(Centring::new(&unit, 1, [&[1.0, 0.0], &[0.0, 0.0]]).is_none());
}
