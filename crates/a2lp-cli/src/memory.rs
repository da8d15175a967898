//! Sizes of memory: parsed from options, printed for people, and measured.

use a2lp::Plan;
pub(crate) use a2lp_shards::memory::{available, peak};
use anyhow::bail;

/// Reads `4G`, `500M`, `1.5GiB` or a number of bytes; K, M, G and T are powers of 1024.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no size; write 4G, 500M or a number of bytes");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let power = match text[digits..].trim().to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return Err(wrong()),
    };
    Ok((number * 1024f64.powi(power)) as u64)
}

/// A size in words.
pub(crate) fn describe(bytes: u64) -> String {
    let gib = bytes as f64 / (1u64 << 30) as f64;
    if gib >= 1.0 { format!("{gib:.1} GiB") } else { format!("{:.0} MiB", (gib * 1024.0).max(1.0)) }
}

/// Refuses a run that would need more than `limit`; warns when the machine has less than is needed.
pub(crate) fn check(plan: &Plan, limit: Option<u64>) -> anyhow::Result<()> {
    let needed = describe(plan.peak_bytes);
    if let Some(limit) = limit.filter(|&limit| limit < plan.peak_bytes) {
        bail!(
            "this run needs about {needed}, --max-memory allows {}; fewer --neighbours, --source-nodes centres or features of \
             fewer columns need less (--dry-run shows the plan)",
            describe(limit)
        );
    }
    if let Some(available) = available().filter(|&available| available < plan.peak_bytes) {
        eprintln!(
            "warning: this run needs about {needed}, but only {} of memory are free",
            describe(available)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("123", 123),
            ("2K", 2048),
            ("1.5M", 1_572_864),
            ("4G", 4 << 30),
            ("4 GiB", 4 << 30),
            ("1tb", 1 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "4X", "four", "-1", "1.2.3"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!((describe(3 << 29), describe(5 << 20)), ("1.5 GiB".into(), "5 MiB".into()));
    }
}
