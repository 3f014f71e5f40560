//! Writing to standard output.

use std::io::{self, Write as _};

use comfy_table::{Table, presets};

use super::{Exit, Failure};

/// Writes a text and flushes it. A reader that has gone (`aiseki topics list | head -1`) has what it
/// wanted: that is no failure.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Failed, format_args!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Columns under their headings, aligned by the width that a terminal gives each character. The same
/// for terminals and pipes: no lines, no colours, a row a line.
pub(super) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for row in rows {
        table.add_row(row.map(|cell| visible(&cell)));
    }
    let lines = table.lines();
    lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned() + "\n").collect()
}

/// Text from elsewhere with its control characters spelled out, so that it can neither break a row nor
/// command the terminal.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_bidi_control(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Characters that turn the direction of the text around them.
fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_display_width() {
        let rows = [["1", "猫と暮らす", "on"], ["12", "cats", ""], ["", "x", "off"]];
        let shown = table(["ID", "TITLE", "ACTIVE"], rows.map(|row| row.map(str::to_owned)));
        let expected = "\
ID  TITLE       ACTIVE
1   猫と暮らす  on
12  cats
    x           off
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}"), r"a\u{1b}[2J\u{a}b\u{202e}");
    }
}
