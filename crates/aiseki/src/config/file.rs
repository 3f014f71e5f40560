//! The optional configuration file, as a layer.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::asked::{Given, Layer, Source, did_you_mean};
use super::{ConfigError, Form, SETTINGS};

/// Reads the text of a file: one flat table of settings.
///
/// # Errors
/// When it is no TOML (with line and column), or has a key that is no setting or a value that no
/// setting could have.
pub(super) fn read(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    let shown = path.display();
    let table = DeTable::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span().unwrap_or_default());
        let message = error.message().trim().replace('\n', ", ");
        ConfigError(format!("{shown}: line {line}, column {column}: {message}"))
    })?;
    let mut layer = Layer::new();
    for (key, value) in table.get_ref() {
        let (line, _) = position(text, key.span());
        let key = key.get_ref().as_ref();
        let form = form(key).ok_or_else(|| {
            let names = SETTINGS.iter().map(|setting| setting.name);
            let hint = did_you_mean(&key.replace('-', "_"), names);
            ConfigError(format!("{shown}: line {line}: {key:?} is not a setting{hint}"))
        })?;
        let source = Source::File { path: path.to_owned(), key: key.to_owned(), line };
        let text = value_text(value, form)
            .map_err(|expected| ConfigError(format!("{source}: {expected}")))?;
        layer.insert(key.to_owned(), Given { text, source });
    }
    Ok(layer)
}

/// The form of the value under a key; none for an unknown key.
fn form(key: &str) -> Option<Form> {
    SETTINGS.iter().find_map(|setting| {
        if setting.name == key {
            Some(setting.form)
        } else if setting.file_name().as_deref() == Some(key) {
            Some(Form::Text("FILE"))
        } else {
            None
        }
    })
}

/// The text that the same value would have in the environment.
fn value_text(value: &Spanned<DeValue<'_>>, form: Form) -> Result<String, String> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(integer) => Ok(i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or_else(|_| integer.as_str().to_owned(), |number| number.to_string())),
        DeValue::Boolean(on) => Ok(on.to_string()),
        DeValue::Array(items) if matches!(form, Form::List(_)) => {
            let texts: Option<Vec<&str>> = items
                .iter()
                .map(|item| item.get_ref().as_str().filter(|text| !text.contains(',')))
                .collect();
            texts
                .map(|texts| texts.join(","))
                .ok_or("expected an array of strings, one item each".into())
        }
        other => {
            let array = if matches!(form, Form::List(_)) { ", or an array of strings" } else { "" };
            let kind = other.type_str();
            Err(format!("expected a string, a whole number or a boolean{array}, not a {kind}"))
        }
    }
}

/// Line and column of a place in a text, both from 1; the column counts characters.
fn position(text: &str, span: Range<usize>) -> (usize, usize) {
    let before = text.get(..span.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<(String, String)>, String> {
        let layer = read(Path::new("a.toml"), text).map_err(|error| error.to_string())?;
        Ok(layer.into_iter().map(|(key, given)| (key, given.text)).collect())
    }

    #[test]
    fn values_may_be_strings_whole_numbers_booleans_and_arrays_for_lists() {
        let text = "# here\nwait_timeout = '5m'\nmax_connections = 1_000\ndemo = false\n\
                    allowed_origins = ['https://a.example', \"https://b.example\"]\n\
                    admin_token_file = '/run/token'\n";
        let pairs = [
            ("admin_token_file", "/run/token"),
            ("allowed_origins", "https://a.example,https://b.example"),
            ("demo", "false"),
            ("max_connections", "1000"),
            ("wait_timeout", "5m"),
        ];
        assert_eq!(read_text(text).unwrap(), pairs.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }

    #[test]
    fn a_fault_is_one_line_with_its_place() {
        for (text, line) in [
            (
                "\nwait_timout = '5m'",
                "a.toml: line 2: \"wait_timout\" is not a setting: did you mean wait_timeout?",
            ),
            (
                "wait-timeout = '5m'",
                "a.toml: line 1: \"wait-timeout\" is not a setting: did you mean wait_timeout?",
            ),
            ("colour = 1", "a.toml: line 1: \"colour\" is not a setting"),
            ("[matching]\nwait_timeout = '5m'", "a.toml: line 1: \"matching\" is not a setting"),
            ("wait_timeout_file = 'x'", "a.toml: line 1: \"wait_timeout_file\" is not a setting"),
            (
                "\n\nmax_wait = 1.5",
                "max_wait in a.toml (line 3): expected a string, a whole number or a boolean, not a float",
            ),
            (
                "listen = ['a']",
                "listen in a.toml (line 1): expected a string, a whole number or a boolean, not a array",
            ),
            (
                "room_types = [2, 3]",
                "room_types in a.toml (line 1): expected an array of strings, one item each",
            ),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.starts_with(line), "{error}");
        }
    }

    #[test]
    fn what_is_no_toml_is_refused_with_line_and_column() {
        for (text, place) in [
            ("demo = true\nlisten = \n", "a.toml: line 2, column "),
            ("あ = ", "a.toml: line 1, column "),
            ("demo = true\ndemo = false", "a.toml: line 2, column 1: "),
            ("listen = \"open", "a.toml: line 1, column "),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.starts_with(place) && !error.contains('\n'), "{error}");
        }
    }
}
