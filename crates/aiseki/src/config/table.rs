//! The settings as a table for people.

use std::fmt::Write as _;

use super::{Role, SETTINGS, Setting};

/// The settings as a Markdown table, for the README.
pub fn markdown_table() -> String {
    let mut table =
        String::from("| variable | flag | default | what it is |\n| --- | --- | --- | --- |\n");
    for setting in SETTINGS {
        let Setting { default, help, .. } = setting;
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        let file = if setting.role == Role::Secret { "; also as `…_FILE`" } else { "" };
        let (variable, flag) = (setting.variable(), setting.flag());
        let help = help.replace('|', "\\|");
        let _ = writeln!(table, "| `{variable}` | `{flag}` | {default} | {help}{file} |");
    }
    table
}
