use super::*;

fn numbers(count: usize, mut state: u64) -> Vec<f32> {
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.3
        })
        .collect()
}

#[test]
fn every_instruction_set_gives_the_bits_of_the_plain_chain() {
    for kernel in available() {
        for (m, n, d) in [(1, 1, 1), (5, 33, 7), (13, 40, 255), (25, 31, 256), (7, 70, 600), (3, 2, 513)] {
            let (a, b) = (numbers(m * d, 1), numbers(n * d, 2));
            let mut packed = PackedRows::for_kernel(kernel);
            packed.pack(&b, d);
            for chain in [Chain::Product, Chain::SquaredDistance] {
                let mut tile = ScoreTile::new();
                // Twice, so that a buffer with something in it is met as well.
                tile.score(chain, &b, &packed);
                tile.score(chain, &a, &packed);
                let mut seen = 0;
                for (i, first, scores) in tile.segments() {
                    seen += scores.len();
                    for (j, &got) in (first..).zip(scores) {
                        let want = chain.of(&a[i * d..][..d], &b[j * d..][..d]);
                        assert_eq!(
                            got.to_bits(),
                            want.to_bits(),
                            "width {} {chain:?} {m}x{n}x{d} ({i},{j})",
                            kernel.width
                        );
                    }
                }
                assert_eq!(seen, m * n);

                // Thresholds as they come: each pair is a hit exactly if it reaches one of its two.
                let sign = if chain == Chain::Product { 1.0 } else { -1.0 };
                let of =
                    |count: usize, seed| numbers(count, seed).iter().map(|v| v * sign * d as f32).collect();
                let (row_least, packed_least): (Vec<f32>, Vec<f32>) = (of(m, 3), of(n, 4));
                let mut hits = Vec::new();
                tile.collect_hits(sign, &row_least, &packed_least, &mut hits);
                let mut want = Vec::new();
                for (i, first, scores) in tile.segments() {
                    for (j, &accumulated) in (first..).zip(scores) {
                        let score = sign * accumulated;
                        if score >= row_least[i] || score >= packed_least[j] {
                            want.push(Hit { row: i as u32, packed_row: j as u32, score });
                        }
                    }
                }
                assert_eq!(hits, want);
            }
        }
    }
}
