//! What serde and the parser of TOML say, in our words, with a remedy.

mod written;

#[cfg(test)]
pub(super) use written::RANGES;
pub(super) use written::takes;

/// How to learn a peer's tag. Without a file, `polypath hit` prints the tag of the user who runs it.
pub const TAG_SOURCE: &str = "`polypath hit /etc/polypath/identity.pem` on that host prints its tag, if its [identity] key is that file";

/// Errors of TOML: the parser's message contains the first, and the second is shown.
const SYNTAX: [(&str, &str); 11] = [
    ("duplicate key", "leave one of the two out; all keys of a table stand under one [table]"),
    ("comma between key-value", "write , between the keys of the table, and } at its end"),
    ("unclosed inline table", "write , between the keys of the table, and } at its end"),
    ("comma between array", "write , between the values of the list, and ] at its end"),
    ("unclosed array, ", "write , between the values of the list, and ] at its end"),
    ("unclosed", "write brackets on both sides: [tunnel], or [[peer]]"),
    ("must be quoted", "write a value after =: text in quotes, numbers and true or false without"),
    ("string", "write the second quote in the same line; in \"…\" a \\ is written \\\\"),
    ("boolean", "write true or false, in small letters"),
    ("unexpected key or value", "write one key = value in a line, and a [table] in a line of its own"),
    ("float", "write an address in quotes, and a number without a unit"),
];

/// The message and the help for what the parser says.
pub(super) fn of_syntax(said: &str) -> (String, String) {
    let what = said.split(", expected").next().unwrap_or(said).trim_end();
    let known = SYNTAX.iter().find(|(part, _)| said.contains(part));
    let help = known.map_or("write key = value, with text in quotes", |(_, help)| help);
    (format!("not TOML: {what}"), help.to_owned())
}

/// The message and the help for what serde says of `written`, the value of `key`, which is without the numbers of list items.
pub(super) fn of(said: &str, key: &str, written: &str) -> (String, Option<String>) {
    let said = said.trim_end();
    let quoted: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((field, known)) if said.starts_with("unknown field") => {
            (format!("unknown key `{field}`"), Some(nearest(field, known)))
        }
        Some((variant, known)) if said.starts_with("unknown variant") => {
            (format!("\"{variant}\" is not a choice here"), Some(nearest(variant, known)))
        }
        Some((field, _)) if said.starts_with("missing field") => {
            let help = example(field).map(|example| format!("write for example {field} = {example}"));
            (format!("the key `{field}` is missing"), help)
        }
        _ if said.contains("socket address") => {
            (said.to_owned(), Some("write an address and a port, for example \"127.0.0.1:9510\"".to_owned()))
        }
        _ if said.contains("internally tagged enum") => {
            let cc = said.split('"').nth(1).unwrap_or("polypath");
            let message = "a table is needed here, which names the algorithm".to_owned();
            (message, Some(format!("write {{ algorithm = \"{cc}\" }}")))
        }
        _ if said.ends_with("expected a boolean") => {
            (said.to_owned(), Some("write true or false, without quotes".to_owned()))
        }
        _ if said.ends_with("map, expected a sequence") => (
            said.to_owned(),
            Some("there may be several: write two brackets, [[peer]], or a list, [{ … }]".to_owned()),
        ),
        _ if said.ends_with("expected a sequence") => {
            (said.to_owned(), Some(format!("write a list, for example [{}]", written::example(key))))
        }
        _ if said.contains(", expected struct ") => {
            let found = said.split(", expected").next().unwrap_or(said);
            let help = match key {
                "peers" => "each peer has a table [[peer]]; [peers] has the directory of their files",
                _ => "write a table, as in { key = value }",
            };
            (format!("{found}, expected a table"), Some(help.to_owned()))
        }
        _ if said.ends_with("expected a string") || said.ends_with("expected path string") => {
            (said.to_owned(), Some("write it in quotes".to_owned()))
        }
        _ if said.ends_with("expected f64") => {
            (said.to_owned(), Some("write a number, without quotes and without a unit".to_owned()))
        }
        _ if number(said, key).is_some() => {
            let (message, help) = number(said, key).unwrap_or_default();
            (message, Some(help))
        }
        _ if said.contains("no HIT") => (said.to_owned(), Some(TAG_SOURCE.to_owned())),
        _ if said.contains("IP address") || said.contains("invalid IP") => {
            let (message, help) = written::network(key, written);
            (message, Some(help))
        }
        _ => (said.to_owned(), None),
    }
}

/// The same where a number is expected, of the type that ends what is said: `invalid value: integer `70000`, expected u16`.
fn number(said: &str, key: &str) -> Option<(String, String)> {
    let (found, kind) = said.rsplit_once(", expected ")?;
    let most = match kind {
        "u8" => u8::MAX.into(),
        "u16" => u16::MAX.into(),
        "u32" => u32::MAX.into(),
        "u64" | "usize" => u64::MAX,
        _ => return None,
    };
    let found = found.rsplit_once(": ")?.1;
    let range = written::range(key).unwrap_or_else(|| match most {
        u64::MAX => "a whole number, not below 0".to_owned(),
        most => format!("a whole number from 0 to {most}"),
    });
    let is_quoted = |text: &str| text.trim_matches('"').parse::<u64>().is_ok();
    let help = match found.strip_prefix("string ").is_some_and(is_quoted) {
        true => format!("write it without quotes, {range}"),
        false => format!("write {range}"),
    };
    Some((format!("{} is not valid here", found.replace('`', "")), help))
}

/// The known name that is most like `name`, if one is.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |other: &str| strsim::normalized_damerau_levenshtein(name, other);
    let best = known.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.filter(|best| likeness(best) > 0.5)
}

/// The known name that is most like `name`, and all of them.
fn nearest(name: &str, known: &[&str]) -> String {
    let all = known.join(", ");
    match similar(name, known.iter().copied()) {
        Some(best) => format!("did you mean `{best}`? It is one of: {all}"),
        None => format!("one of: {all}"),
    }
}

fn example(field: &str) -> Option<&'static str> {
    Some(match field {
        "hit" => "\"2001:22:…\", as `polypath hit /etc/polypath/identity.pem` on that host prints it",
        "tunnel" => "{ addresses = [\"10.99.0.1/24\"] }",
        _ => return None,
    })
}
