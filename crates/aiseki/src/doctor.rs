//! The words of an examination: what was found, what it means, and what to do about it, a line each.

pub use aiseki_mq::doctor::{Finding, Level};

/// How many names a line shows.
const NAMED: usize = 3;
/// Clocks that differ by less than the first are alike; by more than the second, times are wrong for
/// people to see.
const CLOCKS_MS: (u64, u64) = (1_000, 10_000);

/// As it should be.
pub fn good(subject: &'static str, text: impl Into<String>) -> Finding {
    Finding { level: Level::Good, subject, text: text.into() }
}

/// Something to know.
pub fn note(subject: &'static str, text: impl Into<String>) -> Finding {
    Finding { level: Level::Note, subject, text: text.into() }
}

/// Something is wrong.
pub fn wrong(subject: &'static str, text: impl Into<String>) -> Finding {
    Finding { level: Level::Wrong, subject, text: text.into() }
}

/// The first of many names.
pub fn some_of(names: &[impl ToString]) -> String {
    let mut text: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    if names.len() > NAMED {
        text.push(format!("{} more", names.len() - NAMED));
    }
    text.join(", ")
}

/// How long a round trip takes.
pub fn latency(store: &str, fastest_ms: f64, slow_ms: f64) -> Finding {
    let text = format!("a round trip to {store} takes {fastest_ms:.1} ms");
    if fastest_ms > slow_ms {
        return note("latency", format!("{text}: every join waits for some; bring it nearer"));
    }
    good("latency", text)
}

/// Clocks beside this machine's, each with how many milliseconds it is ahead.
pub fn clocks(clocks: &[(&'static str, i64)]) -> Finding {
    let readings = || clocks.iter().map(|(_, ahead)| *ahead).chain([0]);
    let apart = readings().max().unwrap_or(0).abs_diff(readings().min().unwrap_or(0));
    let each: Vec<String> = clocks
        .iter()
        .map(|(name, ahead)| match *ahead < 0 {
            true => format!("{name} {} ms behind", ahead.unsigned_abs()),
            false => format!("{name} {ahead} ms ahead"),
        })
        .collect();
    let text = format!("beside this machine: {}", each.join(", "));
    if apart <= CLOCKS_MS.0 {
        good("clocks", text)
    } else if apart <= CLOCKS_MS.1 {
        note("clocks", format!("{text}: let all of them follow the same time (NTP)"))
    } else {
        let means = "people see times that cannot be; let all of them follow the same time (NTP)";
        wrong("clocks", format!("{text}: {means}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_with_each_other_and_with_this_machine() {
        let level = |a, b| clocks(&[("Redis", a), ("PostgreSQL", b)]).level;
        assert_eq!(level(300, -300), Level::Good);
        assert_eq!(level(1_500, 1_500), Level::Note);
        assert_eq!(level(6_000, -6_000), Level::Wrong);
        let text = clocks(&[("Redis", -20), ("PostgreSQL", 3)]).text;
        assert_eq!(text, "beside this machine: Redis 20 ms behind, PostgreSQL 3 ms ahead");
    }

    #[test]
    fn of_many_names_a_line_shows_some() {
        assert_eq!(some_of(&[1, 2]), "1, 2");
        assert_eq!(some_of(&[1, 2, 3, 4, 5]), "1, 2, 3, 2 more");
    }
}
