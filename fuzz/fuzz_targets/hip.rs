//! Any bytes are a HIP packet that survives the round trip, unknown parameters included, or an error;
//! and what MACs and signatures cover can be computed for any packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use polypath_wire::Checksum;
use polypath_wire::hip::{Packet, PacketView, coverage, udp};

fuzz_target!(|bytes: &[u8]| {
    let _ = udp::classify(bytes);
    let Ok(view) = PacketView::new(bytes) else { return };
    assert_eq!(view.params().map(|p| p.span.len()).sum::<usize>() + 40, view.bytes().len());
    let _ = (coverage::mac(&view), coverage::mac_2(&view, &[0; 8]));
    let _ = (coverage::signature(&view), coverage::signature_2(&view));
    let Ok(packet) = Packet::parse(&view) else { return };
    let again = packet.emit(Checksum::Unused).expect("no longer than it was, and in order");
    let view = PacketView::new(&again).expect("we wrote it");
    assert_eq!(view.verify(Checksum::Unused), Ok(()));
    assert_eq!(Packet::parse(&view).expect("we wrote it"), packet);
});
