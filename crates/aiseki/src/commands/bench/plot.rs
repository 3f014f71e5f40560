//! Distributions of latency as a picture: how long it takes, by the share of requests that take no
//! longer. Both axes are logarithmic, so that the slow few can be seen.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 230.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// Four nines: 99.99 %.
const NINES: f64 = 4.0;
const COLOURS: [&str; 8] =
    ["#0b6e99", "#d1495b", "#66a182", "#edae49", "#5b3758", "#8d96a3", "#2e4057", "#b3622b"];

/// One line of the picture.
pub(super) struct Line<'a> {
    pub(super) name: String,
    pub(super) histogram: &'a Histogram<u64>,
}

/// An SVG of these lines.
pub(super) fn svg(title: &str, lines: &[Line<'_>]) -> String {
    let longest = lines.iter().map(|line| line.histogram.max()).max().unwrap_or(1).max(1_000);
    // From 10 microseconds to the power of ten above the longest.
    let (low, high) = (1.0, micros(longest).log10().ceil());
    let x = |share: f64| LEFT + (-(1.0 - share).log10()).min(NINES) / NINES * inner_width();
    let y = |latency: f64| {
        let part = (latency.max(10.0).log10() - low) / (high - low);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{}</text>\n",
        escaped(title)
    );
    for (share, label) in
        [(0.0, "0"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")]
    {
        let (at, bottom) = (x(share), HEIGHT - BOTTOM);
        let _ = writeln!(
            svg,
            "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 18.0
        );
    }
    let mut power = low;
    while power <= high {
        let at = y(10_f64.powf(power));
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT + inner_width(),
            LEFT - 8.0,
            at + 4.0,
            shown(10_f64.powf(power))
        );
        power += 1.0;
    }
    for (i, line) in lines.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let mut path = String::new();
        for step in 0..=200 {
            let share = 1.0 - 10_f64.powf(-NINES * f64::from(step) / 200.0);
            let latency = micros(line.histogram.value_at_quantile(share));
            let command = if step == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", x(share), y(latency));
        }
        let legend = TOP + 16.0 * f64::from(u8::try_from(i).unwrap_or(u8::MAX));
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{}\" y=\"{legend}\" fill=\"{colour}\">{}</text>",
            WIDTH - RIGHT + 14.0,
            escaped(&line.name)
        );
    }
    svg + "</svg>\n"
}

fn inner_width() -> f64 {
    WIDTH - LEFT - RIGHT
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn micros(value: u64) -> f64 {
    value as f64
}

fn shown(micros: f64) -> String {
    if micros < 1_000.0 {
        format!("{micros:.0} µs")
    } else if micros < 1_000_000.0 {
        format!("{:.0} ms", micros / 1_000.0)
    } else {
        format!("{:.0} s", micros / 1_000_000.0)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_line_for_each_distribution_and_nothing_that_breaks_it() {
        let mut histogram = Histogram::new(3).unwrap();
        for micros in 1..10_000_u64 {
            histogram.record(micros).unwrap();
        }
        let line = |name: &str| Line { name: name.into(), histogram: &histogram };
        let svg = svg("a < b", &[line("one & two"), line("three")]);
        assert_eq!(svg.matches("stroke-width").count(), 2);
        assert!(svg.contains("a &lt; b") && svg.contains("one &amp; two"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.contains("10 ms"));
    }
}
