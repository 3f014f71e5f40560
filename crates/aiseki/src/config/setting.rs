//! What a row of the table of settings says.

use super::Config;

/// One setting.
pub struct Setting {
    /// The key in the file; the flag and the variable are written from it.
    pub name: &'static str,
    /// Under which heading it stands in the help.
    pub group: Group,
    /// How its value is written.
    pub form: Form,
    /// What applies when nobody asks, in the form that is read. Empty: nothing.
    pub default: &'static str,
    /// One line for people, without a full stop.
    pub help: &'static str,
    /// Whether it may be shown.
    pub role: Role,
    /// Reads a text into the configuration, or says in one clause what is expected.
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
    /// The value that was decided, in the form that is read. Never called for secrets.
    pub(super) show: fn(&Config) -> String,
}

/// Under which heading a setting stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Where the server stands and who may reach it.
    Serving,
    /// What is kept, and where.
    Storing,
    /// Who is seated when.
    Matching,
    /// What happens in rooms.
    Talking,
    /// What nobody may exceed.
    Limits,
    /// What is written about the server's work.
    Logging,
}

impl Group {
    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Serving => "Serving",
            Self::Storing => "Storing",
            Self::Matching => "Matching",
            Self::Talking => "Talking",
            Self::Limits => "Limits",
            Self::Logging => "Logging",
        }
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One text; what it is called in the help.
    Text(&'static str),
    /// A whole number and a unit.
    Duration,
    /// A whole number.
    Number,
    /// `on` or `off`; has a second flag `--no-…`.
    OnOff,
    /// Texts with commas between, an array in the file, a flag that may be repeated.
    List(&'static str),
}

impl Form {
    /// What the value is called in the help.
    pub fn value_name(self) -> &'static str {
        match self {
            Self::Text(name) | Self::List(name) => name,
            Self::Duration => "DURATION",
            Self::Number => "NUMBER",
            Self::OnOff => "on|off",
        }
    }
}

/// Whether a setting may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Shown everywhere.
    Open,
    /// Never shown, and may be given as the name of a file that holds it.
    Secret,
}

impl Setting {
    /// `--wait-timeout`
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// `AISEKI_WAIT_TIMEOUT`
    pub fn variable(&self) -> String {
        format!("AISEKI_{}", self.name.to_ascii_uppercase())
    }

    /// The key under which the file that holds it is named; only secrets have one.
    pub fn file_name(&self) -> Option<String> {
        (self.role != Role::Open).then(|| format!("{}_file", self.name))
    }

    /// The value that was decided, as `aiseki config` shows it; none for what is hidden.
    pub fn shown(&self, config: &Config) -> Option<String> {
        (self.role == Role::Open).then(|| (self.show)(config))
    }
}
