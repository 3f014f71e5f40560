//! The environment of the process, as a value.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::ConfigError;

/// Variables by name. Only [`Environment::of_process`] reads the real ones; everything else takes
/// them as an argument, so that tests share no state.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// These variables and no others. Of two with the same name the later one counts.
    pub fn new<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        // A name that is no UTF-8 is none of ours.
        let named = |(name, value): (K, V)| Some((name.into().into_string().ok()?, value.into()));
        Self(variables.into_iter().filter_map(named).collect())
    }

    /// The variables that this process was started with.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn of_process() -> Self {
        Self::new(std::env::vars_os())
    }

    /// The value of a variable. An empty one is a value too.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn get(&self, name: &str) -> Result<Option<&str>, ConfigError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let text = value.to_str().ok_or_else(|| ConfigError(format!("{name}: not valid UTF-8")))?;
        Ok(Some(text))
    }

    /// Whether colours are unwanted (`NO_COLOR` set to anything but nothing).
    pub fn no_color(&self) -> bool {
        self.0.get("NO_COLOR").is_some_and(|value| !value.is_empty())
    }

    /// The names of this program's variables, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| name.starts_with("AISEKI_"))
    }
}
