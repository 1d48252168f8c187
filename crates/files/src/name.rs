//! Names that a peer may give to what it stores here.

use thiserror::Error;

/// Longest name of one file or directory, bytes: what file systems take.
pub const MAX_NAME: usize = 255;
/// Most directories above a file.
pub const MAX_DEPTH: usize = 64;

/// A path below a directory that never leads out of it: names joined by `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SafePath(String);

/// Why a path is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum BadName {
    /// No name, or one that is not below the directory.
    #[error("leads out of the directory")]
    Outside,
    /// A name begins with a dot.
    #[error("a name begins with a dot (`receive --hidden` takes such)")]
    Hidden,
    /// A name looks like one of an unfinished file.
    #[error("a name is reserved for unfinished files")]
    Part,
    /// Characters that do not show, or that turn the direction of those that do.
    #[error("a name has invisible characters")]
    Invisible,
    /// Too long or too deep.
    #[error("too long")]
    Long,
}

impl SafePath {
    /// Checks what a peer said. `hidden` admits names that begin with a dot.
    pub fn new(path: &str, hidden: bool) -> Result<Self, BadName> {
        let depth = path.split('/').count() - 1;
        if depth > MAX_DEPTH || path.len() > crate::message::MAX_PATH {
            return Err(BadName::Long);
        }
        path.split('/').try_for_each(|name| check(name, hidden))?;
        Ok(Self(path.to_owned()))
    }

    /// The whole path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directories that lead to it, outermost first.
    pub fn directories(&self) -> impl Iterator<Item = &str> {
        let end = self.0.rfind('/');
        end.into_iter().flat_map(|end| self.0[..end].split('/'))
    }

    /// The last name.
    pub fn name(&self) -> &str {
        &self.0[self.0.rfind('/').map_or(0, |slash| slash + 1)..]
    }
}

fn check(name: &str, hidden: bool) -> Result<(), BadName> {
    match name {
        "" | "." | ".." => Err(BadName::Outside),
        _ if name.len() > MAX_NAME => Err(BadName::Long),
        _ if name.chars().any(is_invisible) => Err(BadName::Invisible),
        _ if name.starts_with('.') && name.ends_with(".part") => Err(BadName::Part),
        _ if name.starts_with('.') && !hidden => Err(BadName::Hidden),
        _ => Ok(()),
    }
}

/// Controls (Cc), separators of lines and paragraphs, a mark of byte order, and the characters that set the direction
/// of text (Unicode 16, `Bidi_Control`).
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || c == '\u{feff}'
}

/// `text` that somebody else chose for a terminal: invisible characters are replaced.
pub fn shown(text: &str) -> String {
    text.chars().map(|c| if is_invisible(c) { '\u{fffd}' } else { c }).collect()
}

/// `name` shortened so that `more` bytes fit behind it.
pub(crate) fn shortened(name: &str, more: usize) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME.saturating_sub(more))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_in_their_directory() {
        for bad in ["", ".", "..", "/", "/etc/passwd", "a/", "a//b", "a/../b", "../a", "a/.."] {
            assert_eq!(SafePath::new(bad, true), Err(BadName::Outside), "{bad:?}");
        }
        for good in ["über file.iso", "a/b/c", "a b", "a\\b", "...a", "نص.txt", "👩‍👩‍👧.png"] {
            assert!(SafePath::new(good, true).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn names_that_hide_or_lie_are_not_taken() {
        assert_eq!(SafePath::new(".bashrc", false), Err(BadName::Hidden));
        assert_eq!(SafePath::new("a/.git/config", false), Err(BadName::Hidden));
        assert!(SafePath::new("a/.git/config", true).is_ok());
        assert_eq!(SafePath::new(".x.0123.part", true), Err(BadName::Part));
        for bad in
            ["a\0b", "a\nb", "a\u{1b}[2Jb", "cod\u{202e}gpj.exe", "a\u{200f}", "a\u{2066}b", "\u{feff}a"]
        {
            assert_eq!(SafePath::new(bad, true), Err(BadName::Invisible), "{bad:?}");
        }
        assert_eq!(SafePath::new(&"ü".repeat(128), false), Err(BadName::Long));
        assert_eq!(SafePath::new(&"a/".repeat(65), false), Err(BadName::Long));
    }

    #[test]
    fn what_is_shown_has_no_controls() {
        assert_eq!(shown("a\u{1b}[31m\u{202e}b"), "a\u{fffd}[31m\u{fffd}b");
    }

    proptest! {
        #[test]
        fn a_safe_path_is_its_directories_and_its_name(path in "[a-c./]{0,12}|\\PC{0,8}") {
            if let Ok(safe) = SafePath::new(&path, true) {
                let mut all: Vec<&str> = safe.directories().collect();
                all.push(safe.name());
                prop_assert_eq!(all.join("/"), path);
                prop_assert!(all.iter().all(|name| !["", ".", ".."].contains(name)));
            }
        }
    }
}
