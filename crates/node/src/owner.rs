//! Whose files are trusted.

use std::env;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use nix::unistd::geteuid;

/// Whether a file is root's, ours, or of the user who became root by sudo(8) to run this: nobody else decides what we do.
pub fn is_trusted(file: &Metadata) -> bool {
    trusts(file.uid(), geteuid().as_raw(), env::var("SUDO_UID").ok().as_deref())
}

fn trusts(owner: u32, ours: u32, sudo: Option<&str>) -> bool {
    let invoker = sudo.and_then(|uid| uid.parse().ok());
    owner == 0 || owner == ours || Some(owner) == invoker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_than_root_us_and_who_runs_us_by_sudo_are_not_trusted() {
        for (owner, ours, sudo, trusted) in [
            (0, 0, None, true),
            (0, 1000, None, true),
            (1000, 1000, None, true),
            (1000, 0, None, false),
            (1000, 0, Some("1000"), true),
            (1000, 0, Some("1001"), false),
            (1000, 0, Some(""), false),
            (1000, 0, Some("-1"), false),
            (u32::MAX, 0, Some("4294967296"), false),
        ] {
            assert_eq!(trusts(owner, ours, sudo), trusted, "{owner} {ours} {sudo:?}");
        }
    }
}
