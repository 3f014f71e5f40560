//! What was measured: tables for people, JSON for programs, a picture.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::idle::{Idle, Waiting};
use super::open::{Latencies, Scenario};
use super::plot::{Line, svg};
use super::{Rates, Series};
use crate::commands::output;

/// Everything of one run.
pub(super) struct Report {
    rate: u32,
    seconds: f64,
    rounds: u32,
    connections: u16,
    rates: Vec<Rates>,
    series: Vec<Series>,
    pub(super) idle: Vec<Idle>,
    pub(super) waiting: Vec<Waiting>,
}

/// A ratio of two targets: the median of the rounds, and the extremes.
struct Ratio {
    of: String,
    to: String,
    median: f64,
    least: f64,
    most: f64,
}

impl Report {
    pub(super) fn new(rate: u32, time: Duration, rounds: u32, connections: u16) -> Self {
        Self {
            rate,
            seconds: time.as_secs_f64(),
            rounds,
            connections,
            rates: Vec::new(),
            series: Vec::new(),
            idle: Vec::new(),
            waiting: Vec::new(),
        }
    }

    pub(super) fn add_rate(&mut self, target: &str, what: &'static str, per_second: f64) {
        match self.rates.iter_mut().find(|rates| rates.target == target) {
            Some(rates) => rates.per_second.push(per_second),
            None => {
                self.rates.push(Rates {
                    target: target.into(),
                    what,
                    per_second: vec![per_second],
                });
            }
        }
    }

    pub(super) fn add_latencies(
        &mut self,
        target: &str,
        scenario: Scenario,
        latencies: Latencies,
    ) -> anyhow::Result<()> {
        let same = |series: &&mut Series| series.target == target && series.scenario == scenario;
        if let Some(series) = self.series.iter_mut().find(same) {
            series.histogram.add(&latencies.histogram)?;
            series.failed += latencies.failed;
            return Ok(());
        }
        let Latencies { histogram, failed } = latencies;
        self.series.push(Series { target: target.into(), scenario, histogram, failed });
        Ok(())
    }

    /// Each target against the first, which is the empty handler, and two servers with each other.
    fn ratios(&self) -> Vec<Ratio> {
        let Some((empty, targets)) = self.rates.split_first() else { return Vec::new() };
        let against = |of: &Rates, to: &Rates| {
            let pairs = of.per_second.iter().zip(&to.per_second);
            let mut ratios: Vec<f64> = pairs.map(|(of, to)| of / to).collect();
            ratios.sort_by(f64::total_cmp);
            Ratio {
                of: of.target.clone(),
                to: to.target.clone(),
                median: median(&ratios),
                least: ratios.first().copied().unwrap_or(0.0),
                most: ratios.last().copied().unwrap_or(0.0),
            }
        };
        let mut ratios: Vec<Ratio> = targets.iter().map(|target| against(target, empty)).collect();
        if let [first, rest @ ..] = targets {
            ratios.extend(rest.iter().map(|other| against(other, first)));
        }
        ratios
    }

    pub(super) fn as_json(&self) -> anyhow::Result<String> {
        let rates = self.rates.iter().map(|rates| {
            json!({ "target": rates.target, "what": rates.what, "per_second": rates.per_second })
        });
        let ratios = self.ratios().into_iter().map(|ratio| {
            let Ratio { of, to, median, least, most } = ratio;
            json!({ "of": of, "to": to, "median": median, "least": least, "most": most })
        });
        let series = self.series.iter().map(|series| {
            let at = |quantile| series.histogram.value_at_quantile(quantile);
            json!({
                "target": series.target, "scenario": series.scenario.name(),
                "count": series.histogram.len(), "failed": series.failed,
                "p50_us": at(0.5), "p90_us": at(0.9), "p99_us": at(0.99), "p999_us": at(0.999),
                "max_us": series.histogram.max(),
            })
        });
        let report = json!({
            "rate": self.rate, "seconds": self.seconds, "rounds": self.rounds,
            "connections": self.connections,
            "throughput": rates.collect::<Vec<Value>>(),
            "ratios": ratios.collect::<Vec<Value>>(),
            "latencies": series.collect::<Vec<Value>>(),
            "idle": self.idle, "waiting": self.waiting,
        });
        Ok(serde_json::to_string_pretty(&report)? + "\n")
    }

    pub(super) fn as_svg(&self) -> String {
        let lines: Vec<Line<'_>> = self
            .series
            .iter()
            .map(|series| Line { name: self.name(series), histogram: &series.histogram })
            .collect();
        svg(&format!("Latency at {} joins or polls a second", self.rate), &lines)
    }

    fn name(&self, series: &Series) -> String {
        // With one server there is nothing to tell apart.
        if self.rates.len() > 2 && series.scenario != Scenario::Empty {
            format!("{}: {}", series.scenario.name(), series.target)
        } else {
            series.scenario.name().into()
        }
    }

    pub(super) fn as_text(&self) -> String {
        let mut text = String::new();
        if !self.rates.is_empty() {
            self.write_rates(&mut text);
        }
        if !self.series.is_empty() {
            self.write_latencies(&mut text);
        }
        if !self.idle.is_empty() {
            let rows = self.idle.iter().map(|idle| {
                [
                    format!("{} {}", idle.connections, idle.kind),
                    mebibytes(idle.memory_bytes),
                    format!("{} bytes", idle.bytes_each),
                    format!("{:.1} % of a core", idle.cpu_percent),
                ]
            });
            text += &output::table(["OPEN", "MEMORY", "EACH", "WHILE NOTHING HAPPENS"], rows);
        }
        if let [nobody, others @ ..] = &self.waiting[..] {
            let rows = self.waiting.iter().map(|waiting| {
                let more = waiting.memory_bytes.saturating_sub(nobody.memory_bytes);
                [
                    waiting.people.to_string(),
                    format!("{} ms", waiting.ready_ms),
                    mebibytes(waiting.memory_bytes),
                    (more / waiting.people.max(1) as u64).to_string(),
                    format!("{:.0}", waiting.joins_per_second),
                    mebibytes(waiting.file_bytes),
                ]
            });
            let header = [
                "WAITING",
                "START TO READY",
                "MEMORY",
                "BYTES EACH",
                "JOINS/S BESIDE THEM",
                "FILE",
            ];
            text += &output::table(header, rows);
            if let [few, many] = others {
                let ratio = few.joins_per_second / many.joins_per_second;
                let _ = writeln!(
                    text,
                    "\na join costs {ratio:.2} times as much with {} waiting as with {}",
                    many.people, few.people
                );
            }
        }
        text
    }

    fn write_rates(&self, text: &mut String) {
        let rows = self.rates.iter().map(|rates| {
            let mut sorted = rates.per_second.clone();
            sorted.sort_by(f64::total_cmp);
            [
                rates.target.clone(),
                format!("{:.0} {}/s", median(&sorted), rates.what),
                format!("{:.0}", sorted.first().copied().unwrap_or(0.0)),
                format!("{:.0}", sorted.last().copied().unwrap_or(0.0)),
            ]
        });
        *text += &output::table(["THROUGHPUT", "MEDIAN", "LEAST", "MOST"], rows);
        text.push('\n');
        let rows = self.ratios().into_iter().map(|ratio| {
            let Ratio { of, to, median, least, most } = ratio;
            [format!("{of} to {to}"), format!("{median:.3}"), format!("{least:.3} to {most:.3}")]
        });
        *text += &output::table(["RATIO", "MEDIAN", "SPREAD"], rows);
        let _ = writeln!(
            text,
            "({} connections, {} rounds, load and servers on the same cores)\n",
            self.connections, self.rounds
        );
    }

    fn write_latencies(&self, text: &mut String) {
        let rows = self.series.iter().map(|series| {
            let at = |quantile| shown(series.histogram.value_at_quantile(quantile));
            [
                self.name(series),
                at(0.5),
                at(0.9),
                at(0.99),
                at(0.999),
                shown(series.histogram.max()),
                series.failed.to_string(),
            ]
        });
        let header = ["LATENCY", "P50", "P90", "P99", "P99.9", "MAX", "FAILED"];
        *text += &output::table(header, rows);
        let _ = writeln!(
            text,
            "(open loop, {} joins or polls due in a second, {} s; a pair is two joins, measured until \
             both people know)",
            self.rate, self.seconds
        );
    }
}

fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[expect(clippy::cast_precision_loss, reason = "only shown")]
fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[expect(clippy::cast_precision_loss, reason = "only shown")]
fn shown(micros: u64) -> String {
    format!("{:.2} ms", micros as f64 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    fn latencies(micros: u64) -> Latencies {
        let mut histogram: Histogram<u64> = Histogram::new_with_bounds(1, 60_000_000, 3).unwrap();
        histogram.record(micros).unwrap();
        Latencies { histogram, failed: 0 }
    }

    #[test]
    fn rounds_are_put_together_and_compared_turn_by_turn() {
        let mut report = Report::new(500, Duration::from_secs(3), 3, 64);
        for (empty, ours) in [(100.0, 50.0), (200.0, 50.0), (100.0, 40.0)] {
            report.add_rate("empty handler", "requests", empty);
            report.add_rate("aiseki", "joins", ours);
            report.add_latencies("aiseki", Scenario::Joins, latencies(2_000)).unwrap();
        }
        let ratios = report.ratios();
        assert_eq!(ratios.len(), 1);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(ratios[0].median, 0.4) && close(ratios[0].least, 0.25));
        let text = report.as_text();
        assert!(text.contains("aiseki to empty handler  0.400   0.250 to 0.500"), "{text}");
        assert!(text.contains("2.00 ms"), "{text}");
        let json: Value = serde_json::from_str(&report.as_json().unwrap()).unwrap();
        assert_eq!(json["latencies"][0]["count"], 3);
        assert!(report.as_svg().contains(">join<"));
    }
}
