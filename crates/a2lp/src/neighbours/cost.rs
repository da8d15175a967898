//! The estimated cost of each search, and the search that `auto` takes.
//!
//! The constants are thread-seconds, set by hand after runs of 6,000 to 300,000 rows of 64 to 2048 columns on a CPU with
//! AVX-512, which they met within a factor of two; `benches/compare.py scaling` prints predicted beside measured. Other
//! CPUs differ by a factor of their own. The choice uses these constants and nothing of the machine,
//! so that the same data get the same graph everywhere, whatever the number of threads.

use super::partition::usual_groups;
use super::screened::candidates;
use crate::parameters::GraphMethod;

/// The exact search is taken up to this many thread-seconds, then the screened one up to as many, then the pruned one.
const PATIENCE: f64 = 40.0;

/// The search that `auto` stands for.
pub(crate) fn choose(rows: usize, columns: usize, k: usize) -> GraphMethod {
    let affordable = |&method: &GraphMethod| thread_secs(method, rows, columns, k) <= PATIENCE;
    [GraphMethod::Exact, GraphMethod::Screened].into_iter().find(affordable).unwrap_or(GraphMethod::Pruned)
}

/// Seconds on one thread.
pub(crate) fn thread_secs(method: GraphMethod, rows: usize, columns: usize, k: usize) -> f64 {
    let (n, d, k) = (rows as f64, columns as f64, k.min(rows) as f64);
    // A pair in full and in six bits: the arithmetic and what comes with every score.
    let full = d * 2.0e-11 + 4e-10;
    let cheap = d * 5.5e-12 + 1.5e-9;
    // Full scores of candidates that lie anywhere in memory.
    let proposed = candidates(k as usize, columns) as f64;
    let chosen = proposed * (d * 4e-10 + 8e-8);
    let groups = usual_groups(rows) as f64;
    match method {
        GraphMethod::Auto => thread_secs(choose(rows, columns, k as usize), rows, columns, k as usize),
        GraphMethod::Exact => n * n / 2.0 * full + n * k * 2e-7,
        GraphMethod::Screened => n * n / 2.0 * cheap + n * chosen,
        GraphMethod::Pruned => {
            // Centres that a row is compared with when it looks for its own group, and for those near it.
            let own = if groups >= 1024.0 { 9.0 * groups.sqrt() } else { groups };
            let near = groups.min(400.0);
            let grouping = (n + 128.0 * groups) * own * full + n * near * full;
            let sampled = n * (n / 128.0).clamp(256.0, 1024.0) * full;
            // Candidates lie the farther apart, the more memory the features take.
            let apart = 1.0 + (n * d * 4.0 / 32e6).log2().max(0.0);
            grouping + sampled + n * (VISITED * n / groups * cheap + chosen * apart)
        }
        GraphMethod::Nndescent => {
            let introduced = (2.0 * k).min(100.0);
            n * ROUNDS * introduced * (introduced * d * 3e-11 + d * 1.2e-9 + 1e-6)
        }
    }
}

/// Seconds on one thread for the neighbours of rows that have moved, from the lists of before.
pub(crate) fn moved_secs(rows: usize, columns: usize, k: usize) -> f64 {
    let (n, d, k) = (rows as f64, columns as f64, k.min(rows));
    n * (15.0 * k as f64 * (d * 1e-10 + 5e-8) + candidates(k, columns) as f64 * (d * 4e-10 + 8e-8))
}

/// Seconds on one thread for one more ranking of all pairs, whose products are there already.
pub(crate) fn ranking_secs(rows: usize, k: usize) -> f64 {
    let (n, k) = (rows as f64, k.min(rows) as f64);
    n * n / 2.0 * 1.2e-9 + n * k * 2e-7
}

/// Bytes that one more ranking holds during a search, its lists included.
pub(crate) fn ranking_bytes(rows: usize, k: usize) -> u64 {
    let (n, k) = (rows as u64, k.min(rows) as u64);
    // Two pools, and what small pieces of memory waste.
    n * (8 * k + 12) + n * (16 * k + 2 * 56 + 100)
}

/// Groups that the pruned search looks at, typically: 15 to 20 and as many again for what comes with each.
const VISITED: f64 = 40.0;
/// Rounds of NN-Descent, as if all were like the first: later ones introduce fewer.
const ROUNDS: f64 = 2.2;

/// Bytes that a search holds besides the features, the lists included.
pub(crate) fn search_bytes(
    method: GraphMethod,
    rows: usize,
    columns: usize,
    k: usize,
    threads: usize,
) -> u64 {
    let (n, k) = (rows as u64, k.min(rows) as u64);
    let proposed = candidates(k as usize, columns) as u64;
    let bytes = columns.next_multiple_of(64) as u64;
    let per_thread = 1152 * 4 * columns as u64;
    let lists = n * (8 * k + 12);
    let work = match method {
        GraphMethod::Auto => {
            return search_bytes(choose(rows, columns, k as usize), rows, columns, k as usize, threads);
        }
        GraphMethod::Exact => n * (16 * k + 56),
        GraphMethod::Screened => n * (bytes + 16 * proposed + 60),
        GraphMethod::Pruned => n * (3 * bytes + 8 * k + 1060),
        GraphMethod::Nndescent => n * (12 * k + 8 * (4 * k).min(120) + 550) + (28 << 20),
    };
    lists + work + threads as u64 * per_thread
}

/// The same for a search of k rows in all, half of them from each domain: each half has candidates of its own.
pub(crate) fn search_bytes_of_each(
    method: GraphMethod,
    rows: usize,
    columns: usize,
    k: usize,
    threads: usize,
) -> u64 {
    let more = match method {
        GraphMethod::Screened => 2 * candidates(k / 2, columns) - candidates(k, columns),
        _ => 0,
    };
    search_bytes(method, rows, columns, k, threads) + rows as u64 * (16 * more as u64 + 56)
}

/// Bytes that a search leaves in small pieces between the lists, which the system does not get back.
pub(crate) fn left_bytes(method: GraphMethod, rows: usize, columns: usize, k: usize) -> u64 {
    match method {
        GraphMethod::Screened => 6 * rows as u64 * candidates(k, columns) as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_approximated_before_it_pays() {
        assert_eq!(choose(1_000, 2048, 20), GraphMethod::Exact);
        assert_eq!(choose(24_000, 2048, 100), GraphMethod::Exact);
        assert_eq!(choose(100_000, 64, 20), GraphMethod::Exact);
        assert_eq!(choose(55_400, 2048, 20), GraphMethod::Screened);
        assert_eq!(choose(207_785, 2048, 20), GraphMethod::Pruned);
        assert_eq!(choose(1_000_000, 128, 20), GraphMethod::Pruned);
        // More rows never lead back to a costlier search.
        let order = [GraphMethod::Exact, GraphMethod::Screened, GraphMethod::Pruned];
        for columns in [16, 128, 1024, 4096] {
            let chosen: Vec<usize> = (10..22)
                .map(|power| order.iter().position(|&m| m == choose(1 << power, columns, 20)).unwrap())
                .collect();
            assert!(chosen.is_sorted(), "{columns} columns: {chosen:?}");
        }
    }
}
