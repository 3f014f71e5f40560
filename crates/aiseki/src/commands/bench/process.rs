//! What the kernel says of a process.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;

/// Ticks in a second of `/proc/PID/stat`: a constant of the kernel's interface.
const TICKS: u64 = 100;

/// The memory that a process holds, in bytes.
pub(super) fn memory(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    Ok(kib.with_context(|| path)? * 1024)
}

/// The time that a process has spent on the cores.
pub(super) fn cpu(pid: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name before may hold anything, also spaces and brackets.
    let (_, rest) = stat.rsplit_once(") ").with_context(|| path.clone())?;
    let mut fields = rest.split(' ').skip(11).map(str::parse::<u64>);
    let (Some(Ok(user)), Some(Ok(system))) = (fields.next(), fields.next()) else {
        anyhow::bail!("{path} cannot be read");
    };
    Ok(Duration::from_millis((user + system) * 1_000 / TICKS))
}

/// That of several processes together; nothing when there are none, or one has ended.
pub(super) fn cpu_of(pids: &[u32]) -> Option<Duration> {
    let times: Option<Vec<Duration>> = pids.iter().map(|pid| cpu(*pid).ok()).collect();
    times.filter(|times| !times.is_empty()).map(|times| times.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_this_process() {
        let pid = std::process::id();
        assert!(memory(pid).unwrap() > 1 << 20);
        assert!(cpu(pid).unwrap() < Duration::from_hours(24));
    }
}
