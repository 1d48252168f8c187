//! Any bytes are a message of a file transfer that survives the round trip, the beginning of one, or an error; and any
//! path stays below its directory or is refused.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use polypath_files::message::{Answer, Frame, Message, NotYet, Reply, Role, Said};
use polypath_files::name::SafePath;

fn parse<M: Message>(bytes: &[u8]) -> Option<M> {
    match M::parse(bytes) {
        Ok((message, len)) => {
            let mut again = BytesMut::new();
            message.emit(&mut again);
            assert!(M::parse(&again).is_ok_and(|(_, whole)| whole == again.len()));
            assert!(matches!(M::parse(&bytes[..len - 1]), Err(NotYet::Short)));
            Some(message)
        }
        Err(_) => None,
    }
}

fuzz_target!(|bytes: &[u8]| {
    parse::<Role>(bytes);
    parse::<Answer>(bytes);
    parse::<Frame>(bytes);
    parse::<Reply>(bytes);
    let Some(Said::Offer(offer)) = parse::<Said>(bytes) else { return };
    if let Ok(path) = SafePath::new(&offer.path, true) {
        let names = path.directories().chain([path.name()]);
        names.for_each(|name| assert!(!["", ".", ".."].contains(&name) && !name.contains('/')));
    }
});
