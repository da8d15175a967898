//! What processes hold, where the system tells.

/// Most bytes that this process has held so far.
pub fn peak() -> Option<u64> {
    kilobytes("/proc/self/status", "VmHWM:")
}

/// Bytes that programs can still have.
pub fn available() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemAvailable:")
}

/// The bytes on a line like `VmHWM:   1234 kB`.
fn kilobytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
