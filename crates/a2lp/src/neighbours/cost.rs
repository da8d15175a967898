//! The estimated cost of each search, and the search that `auto` takes.
//!
//! The constants are thread-seconds of one machine, fitted to runs of 16,000 to 1,000,000 rows of 16 to 4096 columns on another, with
//! AVX-512 and without, which they met within a factor of 1.4 once the machine was measured; `benches/compare.py widths` and
//! `scaling` print predicted beside measured. The choice uses these constants and nothing of the machine, so that the same
//! data get the same graph everywhere, whatever the number of threads.

use super::partition::usual_groups;
use super::screened::candidates;
use crate::machine::Work;
use crate::parameters::GraphMethod;

/// The exact search is taken up to this many thread-seconds, then the screened one up to as many, then the pruned one.
const PATIENCE: f64 = 40.0;

/// The search that `auto` stands for.
pub(crate) fn choose(rows: usize, columns: usize, k: usize) -> GraphMethod {
    let affordable = |&method: &GraphMethod| work(method, rows, columns, k).secs() <= PATIENCE;
    [GraphMethod::Exact, GraphMethod::Screened].into_iter().find(affordable).unwrap_or(GraphMethod::Pruned)
}

/// What a search takes on one thread.
pub(crate) fn work(method: GraphMethod, rows: usize, columns: usize, k: usize) -> Work {
    let (n, d, k) = (rows as f64, columns as f64, k.min(rows) as f64);
    // A pair in full and in six bits: the arithmetic, and what comes with every score.
    let full = d * 2.0e-11 + 9e-10;
    let cheap = |pairs: f64| {
        let padded = columns.next_multiple_of(64) as f64;
        Work::cheap(pairs * padded * 5.5e-12) + Work::full(pairs * 6e-10)
    };
    let groups = usual_groups(rows) as f64;
    match method {
        GraphMethod::Auto => work(choose(rows, columns, k as usize), rows, columns, k as usize),
        GraphMethod::Exact => Work::full(n * n / 2.0 * full + n * k * 2e-7),
        GraphMethod::Screened => cheap(n * n / 2.0) + closer_looks(rows, columns, k as usize, 1.0),
        GraphMethod::Pruned => {
            // Centres that a row is compared with when it looks for its own group, and for those near it.
            let own = if groups >= 1024.0 { 9.0 * groups.sqrt() } else { groups };
            let near = groups.min(400.0);
            let grouping = (n + 128.0 * groups) * own * full + n * near * full;
            let sampled = n * (n / 128.0).clamp(256.0, 1024.0) * full;
            let apart = 1.0 + 0.5 * caches_filled(rows, columns);
            Work::full(2.7 * (grouping + sampled))
                + cheap(n * VISITED * n / groups)
                + closer_looks(rows, columns, k as usize, apart) * 0.56
        }
        GraphMethod::Nndescent => {
            let introduced = (2.0 * k).min(100.0);
            Work::memory(n * ROUNDS * introduced * (introduced * d * 3e-11 + d * 1.2e-9 + 1e-6))
        }
    }
}

/// The full scores of every row's candidates, which lie anywhere in memory; finding one takes so many times as long if they are
/// far apart.
fn closer_looks(rows: usize, columns: usize, k: usize, apart: f64) -> Work {
    Work::memory((rows * candidates(k, columns)) as f64 * (columns as f64 * 3.6e-10 + 5.6e-7 * apart))
}

/// How many times the features would have to be halved to fit into a cache: the more, the farther apart rows lie.
fn caches_filled(rows: usize, columns: usize) -> f64 {
    (rows as f64 * columns as f64 * 4.0 / 32e6).log2().max(0.0)
}

/// What the neighbours of rows that have moved take on one thread, from the lists of before.
pub(crate) fn moved_work(rows: usize, columns: usize, k: usize) -> Work {
    let (n, d, k) = (rows as f64, columns as f64, k.min(rows));
    let offered = Work::memory(n * 15.0 * k as f64 * (d * 1e-10 + 5e-8));
    (offered + closer_looks(rows, columns, k, 1.0) * 0.25) * (1.0 + caches_filled(rows, columns))
}

/// What one more ranking of all pairs takes on one thread; their products are there already.
pub(crate) fn ranking_work(rows: usize, k: usize) -> Work {
    let (n, k) = (rows as f64, k.min(rows) as f64);
    Work::full(n * n / 2.0 * 1.2e-9 + n * k * 2e-7)
}

/// Bytes that one more ranking holds during a search, its lists included.
pub(crate) fn ranking_bytes(rows: usize, k: usize) -> u64 {
    let (n, k) = (rows as u64, k.min(rows) as u64);
    // Two pools, and what small pieces of memory waste.
    n * (8 * k + 12) + n * (16 * k + 2 * 56 + 100)
}

/// Groups that the pruned search looks at, typically.
const VISITED: f64 = 17.0;
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
