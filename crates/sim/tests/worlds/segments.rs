//! Segments as text, and as bytes that change on the way.

use polypath_transport::Segment;
use polypath_wire::Checksum;
use polypath_wire::tcp::TcpHeader;

pub fn describe(segment: &Segment) -> String {
    let h = &segment.header;
    let sack: Vec<_> = h.options.sack.iter().map(|b| (b.start.0, b.end.0)).collect();
    format!(
        "{:?} seq {} +{} ack {} win {} sack {sack:?}",
        h.flags,
        h.seq.0,
        segment.payload.len(),
        h.ack.0,
        h.window
    )
}

/// Changes within one byte never escape the checksum.
pub fn check_corrupted(segment: &Segment, word: u64) -> Result<(), String> {
    let at = segment.header.len();
    let mut bytes = vec![0; at + segment.payload.len() as usize];
    segment.payload.copy_to(&mut bytes[at..]);
    let checksum = Checksum::ZeroPseudoHeader;
    segment.header.emit(&mut bytes, checksum).map_err(|e| format!("not a segment: {e}: {segment:?}"))?;
    let index = (word >> 8) as usize % bytes.len();
    bytes[index] ^= (word as u8).max(1);
    match TcpHeader::parse(&bytes, checksum) {
        Err(_) => Ok(()),
        Ok(_) => Err(format!("byte {index} changed unnoticed: {segment:?}")),
    }
}
