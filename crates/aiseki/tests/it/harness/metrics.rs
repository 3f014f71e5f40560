//! Metrics as a collector reads them.

use std::collections::BTreeMap;

use super::Client;

/// Values by name and labels, just as they are written.
pub(crate) struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    pub(crate) async fn of(client: &Client) -> Self {
        let answer = client.get("/metrics").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let content_type = answer.header("content-type").unwrap();
        assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"));
        Self::parse(&answer.body)
    }

    fn parse(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("the end is marked");
        let mut values = BTreeMap::new();
        let mut described = Vec::new();
        for line in body.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let mut words = comment.splitn(3, ' ');
                let (kind, name) = (words.next().unwrap(), words.next().unwrap());
                assert!(["HELP", "TYPE", "UNIT"].contains(&kind), "{line}");
                if kind == "HELP" {
                    described.push(name.to_owned());
                }
                continue;
            }
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert!(described.iter().any(|known| name.starts_with(known)), "no HELP: {line}");
            let before = values.insert(name.to_owned(), value.parse().expect("a number"));
            assert!(before.is_none(), "twice: {line}");
        }
        Self(values)
    }

    /// The value of a series; 0 when it has not been counted yet.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or(0.0)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
