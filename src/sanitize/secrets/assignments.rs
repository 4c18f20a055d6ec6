//! Values that a name says are secret: `DB_PASSWORD=…`, `"apiKey": "…"`, `api key
//! is …`, `| token | … |`. The name is found by its last word; this file reads
//! what joins it to its value, and where the value ends.

use std::ops::Range;

use super::judge;
use super::keys::{self, Named};

/// How much the way of writing says that this is the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Quoted, or all of the line or of the string: nothing else can be meant.
    Tight,
    /// In running text or a table: the value must look like a secret.
    Loose,
}

/// Longest value that is read.
const LONG: usize = 1024;

/// Words between a name and its value: `password for the vendor portal: …`.
const MAX_WORDS: usize = 6;

/// A value and how it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) range: Range<usize>,
    pub(super) form: Form,
}

/// What joins a name to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    /// `=`, `:`, `=>`
    Assignment { spaced: bool },
    /// `|`, `</td><td>`
    Table,
    /// `>` of an element named so.
    Element,
    /// Words, `is`, or only a space.
    Words,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, most: usize, of: impl Fn(u8) -> bool) -> usize {
        let len = self
            .rest()
            .iter()
            .take(most)
            .take_while(|b| of(**b))
            .count();
        self.at += len;
        len
    }

    fn eat(&mut self, literal: &str) -> bool {
        let found = self.rest().starts_with(literal.as_bytes());
        if found {
            self.at += literal.len();
        }
        found
    }

    fn blanks(&mut self) -> usize {
        self.skip(16, |b| b == b' ' || b == b'\t')
    }

    /// Reads from behind a name to before its value.
    fn joint(&mut self, name: &Range<usize>) -> Option<Joint> {
        let closed = self.skip(4, |b| {
            matches!(b, b'"' | b'\'' | b'`' | b'\\' | b']' | b')' | b'*' | b'}')
        });
        if closed > 0 && self.is_value_member() {
            return Some(Joint::Assignment { spaced: false });
        }
        let before = self.blanks();
        let joint = self.assignment(before).or_else(|| self.table(name));
        if joint.is_some() || closed > 0 {
            return joint;
        }
        self.words(name, before)
    }

    /// `"name": "DB_PASSWORD", "value": "…"`
    fn is_value_member(&mut self) -> bool {
        let start = self.at;
        self.blanks();
        if !self.eat(",") {
            self.at = start;
            return false;
        }
        self.skip(24, |b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\\'));
        let value = self.eat("value");
        self.skip(3, |b| matches!(b, b'"' | b'\\'));
        self.blanks();
        if value && self.eat(":") {
            self.blanks();
            return true;
        }
        self.at = start;
        false
    }

    fn assignment(&mut self, before: usize) -> Option<Joint> {
        match self.rest() {
            [b'=', b'=' | b'~', ..] | [b':', b':', ..] => return None,
            [b'=', b'>', ..] | [b':', b'=', ..] => self.at += 2,
            [b'=' | b':', ..] => self.at += 1,
            [b'%', b'3', b'D' | b'd' | b'A' | b'a', ..] => self.at += 3,
            _ => return None,
        }
        self.skip(2, |b| b == b'*');
        let after = self.blanks();
        Some(Joint::Assignment {
            spaced: before + after > 0,
        })
    }

    fn table(&mut self, name: &Range<usize>) -> Option<Joint> {
        if self.eat("|") {
            self.blanks();
            self.skip(1, |b| b == b'`');
            return Some(Joint::Table);
        }
        for cell in ["</td>", "</th>"] {
            if self.eat(cell) {
                self.skip(16, |b| b.is_ascii_whitespace());
                let opened = self.eat("<td") || self.eat("<th");
                self.skip(64, |b| b != b'>' && b != b'\n');
                return (opened && self.eat(">")).then_some(Joint::Table);
            }
        }
        let opener = name
            .start
            .checked_sub(1)
            .and_then(|at| self.text.as_bytes().get(at));
        (opener == Some(&b'<') && self.eat(">")).then_some(Joint::Element)
    }

    /// `is`, words and a colon, or nothing after `--flag`, `ENV`.
    fn words(&mut self, name: &Range<usize>, before: usize) -> Option<Joint> {
        let start = self.at;
        if before > 0 && is_flag(self.text, name.start) {
            return Some(Joint::Words);
        }
        for _ in 0..MAX_WORDS {
            let from = self.at;
            let len = self.skip(20, |b| b.is_ascii_alphabetic() || b == b'\'');
            if len == 0 {
                break;
            }
            let word = self.text.get(from..self.at).unwrap_or_default();
            let blank = self.blanks() > 0;
            if self.eat(":") || self.eat("=") {
                self.blanks();
                return Some(Joint::Words);
            }
            if blank && matches!(word, "is" | "was" | "are" | "be") {
                self.eat(": ");
                return Some(Joint::Words);
            }
            if !blank {
                break;
            }
        }
        self.at = start;
        None
    }

    /// The value that begins here.
    fn value(&mut self, joint: Joint, name: &Range<usize>) -> Option<Value> {
        let start = self.at;
        self.skip(2, |b| {
            matches!(b, b'b' | b'f' | b'r' | b'u' | b'B' | b'F' | b'R')
        });
        if !matches!(self.rest(), [b'"' | b'\'', ..]) {
            self.at = start;
        }
        match self.rest() {
            [b'\\', quote @ (b'"' | b'\''), ..] => {
                let quote = *quote;
                self.at += 2;
                self.quoted(quote, true)
            }
            [quote @ (b'"' | b'\'' | b'`'), ..] => {
                let quote = *quote;
                self.at += 1;
                self.quoted(quote, false)
            }
            _ => self.bare(joint, name),
        }
    }

    fn quoted(&mut self, quote: u8, escaped: bool) -> Option<Value> {
        let mut len = 0;
        let rest = self.rest();
        while let Some(byte) = rest.get(len).filter(|_| len < LONG) {
            match (*byte, escaped) {
                (b'\n', _) => return None,
                (b'\\', true) => break,
                (b'\\', false) => len += 2,
                (b, _) if b == quote => break,
                _ => len += 1,
            }
        }
        (len < rest.len()).then(|| Value {
            range: self.at..self.at + len,
            form: Form::Tight,
        })
    }

    fn bare(&mut self, joint: Joint, name: &Range<usize>) -> Option<Value> {
        let rest = self.rest();
        let hard =
            |b: u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>');
        let mut len = 0;
        while let Some(byte) = rest.get(len).filter(|_| len < LONG) {
            let literal_escape = matches!(
                rest.get(len..),
                Some([b'\\', b'n' | b'r' | b't' | b'"', ..])
            );
            if hard(*byte) || literal_escape || (joint == Joint::Table && *byte == b'|') {
                break;
            }
            len += 1;
        }
        let token = rest.get(..len)?;
        // The beginning of a value, as documents show it.
        if token.ends_with(b"...") || token.ends_with("…".as_bytes()) {
            return None;
        }
        let ends_line = matches!(rest.get(len), None | Some(b'\n' | b'\r' | b'\\'));
        let kept = soft_end(token, rest.get(len).copied());
        let whole_line = ends_line && starts_line(self.text, name.start);
        // `password: Type,` is code; nothing of the kind ends a line of settings.
        let is_type = kept < token.len() && is_type_like(token.get(..kept)?);
        let tight = match joint {
            Joint::Assignment { spaced } => !spaced || (whole_line && !is_type),
            Joint::Element => true,
            Joint::Table | Joint::Words => false,
        };
        Some(Value {
            range: self.at..self.at + kept,
            form: if tight { Form::Tight } else { Form::Loose },
        })
    }
}

fn is_type_like(token: &[u8]) -> bool {
    token.iter().all(|b| b.is_ascii_alphabetic() || *b == b'_')
}

/// Bytes of a bare token without what only separates it from the next thing: a
/// separator counts where the token or the line ends, or another pair follows.
fn soft_end(token: &[u8], follower: Option<u8>) -> usize {
    let mut len = token.len();
    for (at, byte) in token.iter().enumerate() {
        let pair = || {
            let tail = token.get(at + 1..).unwrap_or_default();
            let name = tail.iter().take_while(|b| keys::is_name_byte(**b)).count();
            name > 0 && matches!(tail.get(name), Some(b'=' | b':'))
        };
        if matches!(byte, b'&' | b';' | b',') && pair() {
            len = at;
            break;
        }
    }
    // A lone `.` or `,` before a space is punctuation.
    while let Some(last) = len.checked_sub(1).and_then(|at| token.get(at)) {
        let head = token.get(..len - 1).unwrap_or_default();
        let unopened = match last {
            b')' => !head.contains(&b'('),
            b']' => !head.contains(&b'['),
            b'}' => !head.contains(&b'{'),
            b',' | b';' => true,
            b'.' => follower.is_none_or(|b| b.is_ascii_whitespace()),
            _ => false,
        };
        if !unopened {
            break;
        }
        len -= 1;
    }
    len
}

/// Whether only indent, a list mark or `export` stands before the name.
fn starts_line(text: &str, at: usize) -> bool {
    let from = at.saturating_sub(64);
    let head = text.as_bytes().get(from..at).unwrap_or_default();
    let line = head
        .iter()
        .rposition(|b| matches!(b, b'\n' | b'\r'))
        .map_or((head, from == 0), |end| {
            (head.get(end + 1..).unwrap_or_default(), true)
        });
    let (head, whole) = line;
    let mut words = head
        .split(|b| matches!(b, b' ' | b'\t'))
        .filter(|word| !word.is_empty());
    whole
        && words.all(|word| {
            matches!(
                word,
                b"-" | b"*"
                    | b"export"
                    | b"set"
                    | b"\""
                    | b"'"
                    | b"+"
                    | b"#"
                    | b"//"
                    | b"ENV"
                    | b"ARG"
            )
        })
}

/// So far before a password its machine and login are looked for.
const NETRC: usize = 512;

/// Whether the name is a flag (`--password`) or stands behind `ENV`.
fn is_flag(text: &str, at: usize) -> bool {
    let name = text.get(at..).unwrap_or_default();
    let head = text.get(..at).unwrap_or_default().trim_end_matches(' ');
    let near = head.floor_char_boundary(head.len().saturating_sub(NETRC));
    let line = head.get(near..).unwrap_or_default();
    let line = line.rsplit('\n').next().unwrap_or_default();
    name.starts_with("--")
        // `machine … login … password …` of a netrc file.
        || (line.contains("login ") && (line.contains("machine ") || line.starts_with("login ")))
        || [" ENV", "\nENV", " ARG", "\nARG"]
            .iter()
            .any(|word| head.ends_with(word))
        || matches!(head, "ENV" | "ARG")
}

/// The value that belongs to the name at `name`, where there is one.
pub(super) fn value_of(text: &str, name: &Range<usize>) -> Option<Value> {
    let mut reader = Reader { text, at: name.end };
    let joint = reader.joint(name)?;
    reader
        .value(joint, name)
        .filter(|value| !value.range.is_empty())
}

/// Whether a value in this form is what its name says.
pub(super) fn is_secret(named: Named, form: Form, value: &str) -> bool {
    match (named, form) {
        (Named::Password, Form::Tight) => judge::is_password(value),
        (Named::Password, Form::Loose) => judge::is_password_like(value),
        (Named::Key | Named::Header, _) => judge::is_strong(value),
        (Named::Cookie, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, name: &str) -> Option<(String, Form)> {
        let at = text.find(name).unwrap();
        value_of(text, &(at..at + name.len()))
            .map(|value| (text[value.range].to_owned(), value.form))
    }

    #[test]
    fn values_are_read_in_every_way_of_writing() {
        let rows = [
            ("DB_PASSWORD=a1b2", "DB_PASSWORD", "a1b2", Form::Tight),
            ("password = 'x y'  # TODO", "password", "x y", Form::Tight),
            (
                "{\"password\": \"p\\\"q\"}",
                "password",
                "p\\\"q",
                Form::Tight,
            ),
            (
                "{\\\"password\\\": \\\"pq\\\"}",
                "password",
                "pq",
                Form::Tight,
            ),
            ("os.environ['TOKEN'] = 'abc'", "TOKEN", "abc", Form::Tight),
            ("password: abc\nnext", "password", "abc", Form::Tight),
            ("the password: abc def", "password", "abc", Form::Loose),
            ("| token | abc |", "token", "abc", Form::Loose),
            (
                "<td>token</td><td class=\"x\">abc</td>",
                "token",
                "abc",
                Form::Loose,
            ),
            ("<password>abc</password>", "password", "abc", Form::Tight),
            ("token is: abc.", "token", "abc", Form::Loose),
            (
                "password for the vendor portal: abc",
                "password",
                "abc",
                Form::Loose,
            ),
            (
                "Step 4/9 : ENV API_KEY abc\n",
                "API_KEY",
                "abc",
                Form::Loose,
            ),
            ("run --password abc", "--password", "abc", Form::Loose),
            ("?token=abc&x=1", "token", "abc", Form::Tight),
            ("Password=a&b;Server=x", "Password", "a&b", Form::Tight),
            ("password=b\"x\"", "password", "x", Form::Tight),
            (
                "\"name\": \"TOKEN\", \"value\": \"abc\"",
                "TOKEN",
                "abc",
                Form::Tight,
            ),
            ("token=abc, next", "token", "abc", Form::Tight),
            ("f(password=abc)", "password", "abc", Form::Tight),
            ("password=ab\\ncd", "password", "ab", Form::Tight),
            ("{token => 'abc'}", "token", "abc", Form::Tight),
        ];
        for (text, name, right, form) in rows {
            assert_eq!(value(text, name), Some((right.to_owned(), form)), "{text}");
        }
    }

    #[test]
    fn text_about_secrets_has_no_value() {
        for (text, name) in [
            ("The password policy requires 12 characters.", "password"),
            ("if password == other", "password"),
            ("token::new()", "token"),
            ("the token, which", "token"),
            ("password\nnext", "password"),
        ] {
            assert_eq!(value(text, name), None, "{text}");
        }
    }
}
