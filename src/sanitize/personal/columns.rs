//! Tables in text: what the heading of a value's column says.

use super::cues::{self, Cue};

/// A line longer than this is no line of a table.
const LONGEST_LINE: usize = 4096;

/// The table that the search stands in. Offsets asked for must grow.
#[derive(Debug, Default)]
pub(super) struct Columns<'a> {
    /// How far lines have been read.
    read_to: usize,
    heading: Option<&'a str>,
    /// The last line that was looked at, and whether it has the heading's columns.
    line: (usize, usize),
    delimiter: Option<char>,
}

fn delimiter_of(line: &str) -> Option<char> {
    ['\t', '|', ';', ',']
        .into_iter()
        .find(|delimiter| line.contains(*delimiter))
}

fn columns(line: &str, delimiter: char) -> usize {
    let mut quoted = false;
    line.chars()
        .filter(|c| {
            quoted ^= *c == '"';
            *c == delimiter && !quoted
        })
        .count()
}

impl<'a> Columns<'a> {
    /// What the heading above `at` stands for; `None` where it stands in no table or
    /// in the heading.
    pub(super) fn heading(&mut self, text: &'a str, at: usize) -> Option<&'static Cue> {
        self.read(text, at);
        let delimiter = self.delimiter?;
        let before = text.get(self.line.0..at)?;
        let nth = columns(before, delimiter);
        let mut cells = self.heading?.split(delimiter);
        let cell = cells.nth(nth)?.trim().trim_matches(['"', '*', '`']);
        // A line of values is no heading.
        let is_name = cell.len() <= 48 && !cell.contains(['=', ':', '@', '.']);
        is_name.then(|| cues::of_name(cell))?
    }

    /// Reads on to the line of `at`.
    fn read(&mut self, text: &'a str, at: usize) {
        if at < self.line.1 {
            return;
        }
        while self.read_to <= at && self.read_to <= text.len() {
            let rest = text.get(self.read_to..).unwrap_or_default();
            let len = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            let line = rest.get(..len).unwrap_or_default();
            self.line = (self.read_to, self.read_to + len + 1);
            self.read_to += len + 1;
            if line.trim().is_empty() || len > LONGEST_LINE {
                self.heading = None;
                self.delimiter = None;
                continue;
            }
            let Some(heading) = self.heading else {
                self.heading = Some(line);
                self.delimiter = None;
                continue;
            };
            self.delimiter = delimiter_of(heading)
                .filter(|delimiter| columns(heading, *delimiter) == columns(line, *delimiter));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label_at(text: &str, value: &str) -> bool {
        let at = text.find(value).unwrap();
        Columns::default()
            .heading(text, at)
            .is_some_and(|cue| cue.is("us_ssn"))
    }

    #[test]
    fn a_value_is_what_its_column_is() {
        assert!(label_at("name,ssn,plan\nA,1,pro\nB,22,pro\n", "22"));
        assert!(label_at(" id | ssn\n----+----\n 1 | 22\n", "22"));
        assert!(label_at("| id | SSN |\n|---|---|\n| 1 | 22 |\n", "22"));
        assert!(label_at("\"name\",\"ssn\"\n\"B, C\",22\n", "22"));
        assert!(!label_at("name,ssn\nA,1\n\nfree text, 22\n", "22"));
        assert!(!label_at("name,plan,ssn\n22,1,2\n", "22"));
    }
}
