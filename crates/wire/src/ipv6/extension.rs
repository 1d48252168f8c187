//! Extension headers (RFC 8200 §4): gone through as far as the payload.

use super::WHAT;
use crate::error::{WireError, u16_at, u32_at};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// What the chain of extension headers leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upper {
    /// Protocol of the payload.
    pub protocol: u8,
    /// Length of the extension headers, bytes.
    pub offset: usize,
    /// The packet is a part of a larger one.
    pub fragment: Option<Fragment>,
}

/// The fragment header (RFC 8200 §4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Where this fragment begins, in units of 8 bytes.
    pub offset: u16,
    /// This is not the last fragment.
    pub more: bool,
    /// Identification, for reassembly.
    pub id: u32,
}

impl Upper {
    /// Goes through the extension headers at the start of `bytes`, the first of kind
    /// `next_header`. What stands behind the header of a later fragment is not looked at.
    ///
    /// Fails if one is cut short, if hop-by-hop options do not come first, if a routing header
    /// leads elsewhere (§4.4), or on an option that we do not know and must not skip (§4.2).
    pub(super) fn find(next_header: u8, bytes: &[u8]) -> Result<Self, WireError> {
        let mut upper = Self { protocol: next_header, offset: 0, fragment: None };
        while is_extension(upper.protocol) && upper.has_start() {
            let rest = &bytes[upper.offset..];
            let header = cut(upper.protocol, rest)?;
            match upper.protocol {
                HOP_BY_HOP if upper.offset > 0 => {
                    return Err(WireError::new(WHAT, "hop-by-hop header offset", 0, upper.offset));
                }
                HOP_BY_HOP | DESTINATION => check_options(&header[2..])?,
                ROUTING if header[3] != 0 => {
                    return Err(WireError::new(WHAT, "segments left", 0, header[3].into()));
                }
                FRAGMENT => upper.fragment = Some(Fragment::read(header)),
                _ => {}
            }
            upper.protocol = header[0];
            upper.offset += header.len();
        }
        Ok(upper)
    }

    /// Whether the payload begins here: this is no fragment but the first.
    pub fn has_start(&self) -> bool {
        self.fragment.is_none_or(|f| f.offset == 0)
    }
}

impl Fragment {
    fn read(header: &[u8]) -> Self {
        let field = u16_at(header, 2);
        Self { offset: field >> 3, more: field & 1 != 0, id: u32_at(header, 4) }
    }
}

fn is_extension(kind: u8) -> bool {
    matches!(kind, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION)
}

/// The extension header of `kind` at the start of `bytes`.
fn cut(kind: u8, bytes: &[u8]) -> Result<&[u8], WireError> {
    let units = if kind == FRAGMENT { 0 } else { usize::from(*bytes.get(1).unwrap_or(&0)) };
    let len = (units + 1) * 8;
    bytes.get(..len).ok_or_else(|| WireError::new(WHAT, "extension header length", len, bytes.len()))
}

/// Whether all options may be passed over.
fn check_options(mut options: &[u8]) -> Result<(), WireError> {
    const PAD_1: u8 = 0;
    while let [kind, rest @ ..] = options {
        if *kind == PAD_1 {
            options = rest;
            continue;
        }
        if kind >> 6 != 0 {
            return Err(WireError::new(WHAT, "option to skip", 0x3f, (*kind).into()));
        }
        let need = usize::from(*rest.first().unwrap_or(&0)) + 1;
        options = rest.get(need..).ok_or_else(|| WireError::new(WHAT, "option length", need, rest.len()))?;
    }
    Ok(())
}
