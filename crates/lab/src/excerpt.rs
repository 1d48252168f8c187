//! What an error shows of a file: the line, and marks under the part of it that is meant.

use std::ops::Range;

/// Most characters of a line that are shown.
const SHOWN: usize = 120;

/// Where something stands in a text, and what is shown of its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excerpt {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    shown: String,
    /// The characters that are meant of `shown`, from 0.
    meant: Range<usize>,
}

impl Excerpt {
    /// Of `text`, in which bytes `span` are meant.
    pub fn of(text: &str, span: Range<usize>) -> Self {
        let start = if text.is_char_boundary(span.start) { span.start } else { 0 };
        let line_start = text[..start].rfind('\n').map_or(0, |n| n + 1);
        let column = text[line_start..start].chars().count();
        let width = text.get(start..span.end).map_or(1, |meant| meant.chars().count());
        let (shown, first) = around(column, text[line_start..].lines().next().unwrap_or(""));
        let end = (first + width).min(shown.chars().count());
        Self {
            line: text[..line_start].matches('\n').count() + 1,
            column: column + 1,
            shown,
            meant: first..end.max(first + 1),
        }
    }

    /// The lines below a message about `file`; the last is not ended.
    pub fn below(&self, file: &str) -> String {
        let Self { line, column, shown, meant } = self;
        let pad = " ".repeat(line.to_string().len());
        let marks = " ".repeat(meant.start) + &"^".repeat(meant.len());
        format!("{pad}--> {file}:{line}:{column}\n{pad} |\n{line} | {shown}\n{pad} | {marks}")
    }
}

/// A line as it is, or what is around `column` of a long one; and the column in that.
fn around(column: usize, line: &str) -> (String, usize) {
    let len = line.chars().count();
    if len <= SHOWN {
        return (line.to_owned(), column);
    }
    let from = column.saturating_sub(SHOWN / 4).min(len - SHOWN);
    let part: String = line.chars().skip(from).take(SHOWN).collect();
    let (before, after) = (if from > 0 { "… " } else { "" }, if from + SHOWN < len { " …" } else { "" });
    (format!("{before}{part}{after}"), column - from + before.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_is_marked_in_its_line() {
        let text = "a = 1\nbé = [2,\n  3]\n";
        let list = Excerpt::of(text, 12..20);
        assert_eq!((list.line, list.column), (2, 6));
        assert_eq!(list.below("f"), " --> f:2:6\n  |\n2 | bé = [2,\n  |      ^^^");
        let end = Excerpt::of(text, text.len()..text.len());
        assert_eq!(end.below("f"), " --> f:4:1\n  |\n4 | \n  | ^");
        assert_eq!(Excerpt::of("é", 1..2).column, 1, "no character begins there");
    }

    #[test]
    fn of_a_long_line_the_part_around_it_is_shown() {
        let text = format!("{}x = 1{}", "-".repeat(500), "-".repeat(500));
        let excerpt = Excerpt::of(&text, 500..501);
        assert_eq!(excerpt.column, 501);
        let below = excerpt.below("f");
        let lines: Vec<&str> = below.lines().collect();
        assert!(lines[2].starts_with("1 | … -") && lines[2].ends_with("- …"), "{below}");
        assert!(lines[2].chars().count() < SHOWN + 10, "{below}");
        let mark = lines[3].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[2].chars().nth(mark), Some('x'), "{below}");
    }
}
