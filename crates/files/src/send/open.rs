//! Files are opened when they are offered.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};

use bytes::Bytes;
use polypath_node::Hashed;
use polypath_node::bulk::Source;

use crate::content::{Input, read_all};
use crate::digest::{Digest, Hasher, digest, hash_front, hashed};
use crate::message::Offer;
use crate::source::{Entry, Opened};

/// A file that is not longer goes unasked, bytes: asking takes longer than sending it twice. It is not resumed.
pub const SMALL: u64 = 64 << 10;

/// What is sent of a file.
pub(super) enum Content {
    Small(Bytes),
    Large(File),
    /// What has no known length.
    Endless(Input),
}

/// Opens an entry; a small file is read at once. A directory has no content.
pub(super) fn open(entry: &Entry) -> io::Result<(Option<Content>, Offer)> {
    let (opened, mut offer) = entry.open()?;
    let content = match (opened, offer.size) {
        (Opened::Directory, _) => None,
        (Opened::Input, _) => Some(Content::Endless(Input::Stdin(io::stdin()))),
        (Opened::File(mut file), Some(size)) if size <= SMALL => {
            Some(match read_all(&mut file, size, SMALL)? {
                Some(bytes) => {
                    offer.size = Some(bytes.len() as u64);
                    Content::Small(bytes)
                }
                None => {
                    offer.size = None;
                    file.seek(SeekFrom::Start(0))?;
                    Content::Endless(Input::File(file))
                }
            })
        }
        (Opened::File(file), _) => {
            offer.asks = true;
            Some(Content::Large(file))
        }
    };
    Ok((content, offer))
}

/// Reads on behind what the peer has, if that is the beginning of this file.
pub(super) fn resume(
    mut file: File,
    size: u64,
    want: Option<(u64, Digest)>,
) -> io::Result<(u64, Source<Hashed<Input, Hasher>>)> {
    let mut hash = Hasher::default();
    if let Some((have, theirs)) = want
        && have > 0
        && have <= size
        && hash_front(&mut file, have, &mut hash)? == have
        && digest(&hash) == theirs
    {
        return Ok((have, Source::start(Hashed { file: Input::File(file), hash }, size - have)));
    }
    file.seek(SeekFrom::Start(0))?;
    Ok((0, Source::start(hashed(Input::File(file)), size)))
}
