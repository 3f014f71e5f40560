//! What was asked: the text of each setting, from the strongest layer that has it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::file;
use super::urls::database_url;
use super::values::admin_token;
use super::{
    CONFIG_VARIABLE, ConfigError, Environment, Flags, Role, SERVER_VARIABLE, SETTINGS, Secret,
    Setting,
};

/// The largest file that is read, for a configuration or a secret.
const LARGEST_FILE: u64 = 1 << 20;
/// How much of a bad value an error repeats.
const LONGEST_QUOTE: usize = 80;
/// The configuration file when none is named; it need not exist.
const DEFAULT_FILE: &str = "./aiseki.toml";

/// The texts of one layer by key; the key of a file that holds a secret ends in `_file`.
pub(super) type Layer = BTreeMap<String, Given>;

/// A text and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// As it was written, or read from the file that holds it.
    pub text: String,
    /// Where.
    pub source: Source,
}

/// Where a text stands. Its `Display` names it as the operator wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A flag, with its dashes.
    Flag(String),
    /// A variable of the environment.
    Variable(String),
    /// A key of the configuration file.
    File {
        /// The file, as it was named.
        path: PathBuf,
        /// The key.
        key: String,
        /// Its line, from 1.
        line: usize,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File { path, key, line } => {
                write!(f, "{key} in {} (line {line})", path.display())
            }
        }
    }
}

/// Everything that was asked. Nothing has been checked but names.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    given: BTreeMap<&'static str, Given>,
    file: Option<PathBuf>,
    warnings: Vec<String>,
}

impl Asked {
    /// Collects the layers: a flag beats the environment, which beats the file.
    ///
    /// # Errors
    /// When a file cannot be read or is no TOML, has an unknown key, or when a layer gives a secret
    /// both as text and as a file.
    pub fn gather(flags: &Flags, environment: &Environment) -> Result<Self, ConfigError> {
        let (variables, warnings) = variables(environment)?;
        let file = configuration_file(flags, environment)?;
        let (file, keys) = file.map_or((None, Layer::new()), |(path, keys)| (Some(path), keys));
        let mut given = BTreeMap::new();
        for setting in SETTINGS {
            for layer in [flags.layer(), &variables, &keys] {
                if let Some(found) = of_layer(layer, setting)? {
                    given.insert(setting.name, found);
                    break;
                }
            }
        }
        Ok(Self { given, file, warnings })
    }

    /// What one file says, with nothing before it. A secret that stands in a file of its own is left
    /// out: nothing else is read.
    pub(super) fn of_file(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let layer = file::read(path, text)?;
        let given =
            |setting: &'static Setting| Some((setting.name, layer.get(setting.name)?.clone()));
        let given = SETTINGS.iter().filter_map(given).collect();
        Ok(Self { given, file: Some(path.to_owned()), warnings: Vec::new() })
    }

    /// What was given for a setting, if anything.
    pub fn given(&self, setting: &Setting) -> Option<&Given> {
        self.given.get(setting.name)
    }

    /// The configuration file that was read.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Variables that look like settings and are none: one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The admin token alone and where it stands, for commands that need no other setting.
    pub fn admin_token(&self) -> Result<Option<(Secret, &Source)>, ConfigError> {
        let setting = SETTINGS.iter().find(|setting| setting.name == "admin_token");
        let Some((setting, given)) = setting.and_then(|s| Some((s, self.given(s)?))) else {
            return Ok(None);
        };
        let token = admin_token(&given.text).map_err(|reason| self.refuse(setting, &reason))?;
        Ok(Some((token, &given.source)))
    }

    /// The database alone, for commands that need no other setting.
    pub fn database_url(&self) -> Result<Option<Secret>, ConfigError> {
        let setting = SETTINGS.iter().find(|setting| setting.name == "database_url");
        let Some((setting, given)) = setting.and_then(|s| Some((s, self.given(s)?))) else {
            return Ok(None);
        };
        database_url(&given.text).map(Some).map_err(|reason| self.refuse(setting, &reason))
    }

    /// How to name a setting to the operator.
    pub(super) fn name_of(&self, name: &str) -> String {
        let given = self.given.get(name);
        given.map_or(format!("the default of {name}"), |given| given.source.to_string())
    }

    /// The line that says why a value cannot be used. It shows the value unless that is a secret.
    pub(super) fn refuse(&self, setting: &Setting, reason: &str) -> ConfigError {
        let name = self.name_of(setting.name);
        match self.given(setting) {
            Some(Given { text, .. }) if setting.role == Role::Open => {
                ConfigError(format!("{name} is {}: {reason}", quote(text)))
            }
            _ => ConfigError(format!("{name}: {reason}")),
        }
    }
}

/// The value on one line, and not without end.
fn quote(text: &str) -> String {
    match text.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// What a layer gives for a setting, read from the file that holds it if it names one.
fn of_layer(layer: &Layer, setting: &Setting) -> Result<Option<Given>, ConfigError> {
    let direct = layer.get(setting.name);
    let held = setting.file_name().and_then(|key| layer.get(&key));
    match (direct, held) {
        (Some(direct), Some(held)) => {
            let (direct, held) = (&direct.source, &held.source);
            Err(ConfigError(format!("{direct} and {held} are both given: use one of them")))
        }
        (_, Some(held)) if setting.role == Role::Secret => {
            let text = read_text(Path::new(&held.text)).map_err(|error| {
                ConfigError(format!("{}: {}: {error}", held.source, quote(&held.text)))
            })?;
            let text = text.strip_suffix('\n').unwrap_or(&text);
            let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
            Ok(Some(Given { text, source: held.source.clone() }))
        }
        (direct, held) => Ok(direct.or(held).cloned()),
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // One byte more than allowed shows that there is more.
    File::open(path)?.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_FILE {
        return Err(io::Error::other("too large"));
    }
    Ok(text)
}

/// The file that is named, or the one that lies there.
fn configuration_file(
    flags: &Flags,
    environment: &Environment,
) -> Result<Option<(PathBuf, Layer)>, ConfigError> {
    let named = match flags.config() {
        Some(path) => Some(("--config", path)),
        None => environment.get(CONFIG_VARIABLE)?.map(|path| (CONFIG_VARIABLE, path)),
    };
    let path = PathBuf::from(named.map_or(DEFAULT_FILE, |(_, path)| path));
    let text = match (read_text(&path), named) {
        (Ok(text), _) => text,
        (Err(error), None) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        (Err(error), None) => return Err(ConfigError(format!("{}: {error}", path.display()))),
        (Err(error), Some((name, text))) => {
            return Err(ConfigError(format!("{name} is {}: {error}", quote(text))));
        }
    };
    let layer = file::read(&path, &text)?;
    Ok(Some((path, layer)))
}

/// The environment as a layer, and a warning for each variable that is none of ours although it has
/// our prefix. It is no error: platforms set variables of their own making after a service's name.
fn variables(environment: &Environment) -> Result<(Layer, Vec<String>), ConfigError> {
    let mut known: BTreeMap<String, Option<String>> =
        [CONFIG_VARIABLE, SERVER_VARIABLE].map(|name| (name.to_owned(), None)).into();
    if cfg!(debug_assertions) {
        // Read where it is used: it is for tests and no setting.
        known.insert("AISEKI_FAILPOINT".to_owned(), None);
    }
    for setting in SETTINGS {
        known.insert(setting.variable(), Some(setting.name.to_owned()));
        if let Some(key) = setting.file_name() {
            known.insert(format!("{}_FILE", setting.variable()), Some(key));
        }
    }
    let (mut layer, mut warnings) = (Layer::new(), Vec::new());
    for name in environment.names() {
        match known.get(name) {
            Some(Some(key)) => {
                let text = environment.get(name)?.unwrap_or_default().to_owned();
                let source = Source::Variable(name.to_owned());
                layer.insert(key.clone(), Given { text, source });
            }
            Some(None) => {}
            None => {
                let hint = did_you_mean(name, known.keys().map(String::as_str));
                warnings.push(format!("{name} is not a setting and is ignored{hint}"));
            }
        }
    }
    Ok((layer, warnings))
}

/// `: did you mean X?` with the nearest of the names, or nothing when none is near.
pub(super) fn did_you_mean<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let distance = |other: &str| strsim::damerau_levenshtein(name, other);
    let nearest = names.map(|other| (distance(other), other)).min();
    match nearest {
        Some((distance, other)) if distance <= (name.len() / 4).max(2) => {
            format!(": did you mean {other}?")
        }
        _ => String::new(),
    }
}
