//! Tables.

use comfy_table::{Attribute, Color, ContentArrangement, presets};

use super::text::{Tone, plain};

/// One field of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A word of the API, in its tone.
    #[must_use]
    pub fn word(word: &str) -> Self {
        Self {
            text: plain(word),
            tone: Tone::of(word),
        }
    }

    /// Adds text in the tone of the cell.
    #[must_use]
    pub fn with(mut self, text: impl AsRef<str>) -> Self {
        self.text.push_str(&plain(text.as_ref()));
        self
    }

    /// Text, or a dash.
    #[must_use]
    pub fn maybe(text: Option<impl Into<String>>) -> Self {
        text.map_or_else(|| Self::word("-"), |text| text.into().into())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self {
            text: plain(text),
            tone: Tone::Plain,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// Rows under headings.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<&'static str>,
    /// How many columns, from the first, are shown without `wide`.
    narrow: usize,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            narrow: headings.len(),
            rows: Vec::new(),
        }
    }

    /// Adds columns at the end, which are shown with `wide` only.
    #[must_use]
    pub fn and_wide(mut self, headings: &[&'static str]) -> Self {
        self.headings.extend(headings);
        self
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.headings.len());
        self.rows.push(cells.into());
    }

    /// The text. `width` is the terminal's: without it no line is broken. `colour` adds ANSI codes.
    #[must_use]
    pub fn render(&self, width: Option<u16>, colour: bool, is_wide: bool) -> String {
        let columns = if is_wide { self.headings.len() } else { self.narrow };
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        match width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        if colour {
            table.enforce_styling()
        } else {
            table.force_no_tty()
        };
        table.set_header(self.headings.iter().take(columns).map(|text| heading(text)));
        for row in &self.rows {
            table.add_row(row.iter().take(columns).map(cell));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table
            .lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }
}

fn heading(text: &str) -> comfy_table::Cell {
    comfy_table::Cell::new(text).add_attribute(Attribute::Bold)
}

fn cell(cell: &Cell) -> comfy_table::Cell {
    let shown = comfy_table::Cell::new(&cell.text);
    match cell.tone {
        Tone::Plain => shown,
        Tone::Good => shown.fg(Color::DarkGreen),
        Tone::Busy => shown.fg(Color::DarkYellow),
        Tone::Bad => shown.fg(Color::DarkRed),
        Tone::Faint => shown.add_attribute(Attribute::Dim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "STATE"]);
        table.row(["compute1".into(), Cell::word("UP")]);
        table.row(["c2\x1b[2J".into(), Cell::word("UNREACHABLE")]);
        table
    }

    #[test]
    fn columns_line_up_and_nothing_commands_the_terminal() {
        let text = table().render(None, false, false);
        assert_eq!(text, "NAME      STATE\ncompute1  UP\nc2 [2J    UNREACHABLE\n");
    }

    #[test]
    fn more_columns_come_only_where_they_were_asked_for() {
        let mut table = Table::new(&["NAME"]).and_wide(&["ZONE"]);
        table.row(["c1".into(), "north".into()]);
        assert_eq!(table.render(None, false, false), "NAME\nc1\n");
        assert_eq!(table.render(None, false, true), "NAME  ZONE\nc1    north\n");
    }

    #[test]
    fn colour_comes_only_where_it_was_asked_for() {
        assert!(table().render(Some(80), true, false).contains('\x1b'));
        assert!(!table().render(Some(80), false, false).contains('\x1b'));
    }
}
