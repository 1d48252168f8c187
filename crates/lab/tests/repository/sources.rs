//! Where numbers of the pages may come from: what a spec sets, and payload as it is on the wire.

use std::path::Path;

/// What a page has from elsewhere: the page, what stands in the paragraph or sentence, why.
pub type Elsewhere = (&'static str, &'static str, &'static str);

/// An entry of which the page in `dir` says nothing.
pub fn unused<'a>(all: &'a [Elsewhere], dir: &Path) -> Option<&'a Elsewhere> {
    let read = |page: &str| std::fs::read_to_string(dir.join(page)).unwrap_or_default();
    all.iter().find(|(page, what, _)| !read(page).contains(what))
}

/// Factors by the beginnings of experiments' names, to Mbit/s and to packets/s on the wire: 940 of 1,000 bytes are payload with
/// R-M/TCP's options, 960 without; 1,000 of 1,040 with FAST.
pub const ON_THE_WIRE: [(&str, &[f64]); 3] =
    [("rmtcp/fig9_reno", &[1e-6 / 0.96]), ("rmtcp/", &[1e-6 / 0.94, 1.0 / 7520.0]), ("fast/", &[1.04e-6])];

/// Lines of a spec that set something: without comments, the description, and what else is said and not used.
pub fn parameters(spec: &str) -> String {
    let mut told = false;
    let mut set = String::new();
    for line in spec.lines() {
        let key = line.split('=').next().unwrap_or_default().trim();
        let says = ["title", "source", "unmet", "claim", "caption", "x_label", "y_label"].contains(&key);
        let begins = key == "description";
        if !told && !begins && !says {
            set.push_str(line.split(" # ").next().unwrap_or_default());
            set.push('\n');
        }
        told ^= line.matches("\"\"\"").count() == 1;
    }
    set
}
