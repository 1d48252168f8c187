//! How messages are written and read.

use bytes::{BufMut, BytesMut};

use super::{
    Answer, Digest, Frame, MAGIC, MAX_PATH, MAX_REASON, Message, Modified, NotYet, Offer, Reply, Role, Said,
    Verdict, Work,
};

const OFFER: u8 = 1;
const WANT: u8 = 2;
const START: u8 = 3;
const VERDICT: u8 = 4;
const WORKING: u8 = 5;
const ASKS: u8 = 1;
const ENDLESS: u8 = 2;
const DIRECTORY: u8 = 4;
/// The length that stands for [`Frame::Abandoned`].
const ABANDONED: u32 = u32::MAX;
/// The length that stands for [`Frame::Working`].
const PAUSED: u32 = u32::MAX - 1;
const WORKS: [Work; 4] = [Work::Checking, Work::Storing, Work::Waiting, Work::Reading];
const VERDICTS: [Verdict; 6] = [
    Verdict::Stored,
    Verdict::Changed,
    Verdict::NoSpace,
    Verdict::Name,
    Verdict::Refused,
    Verdict::Abandoned,
];

impl Message for Role {
    fn parse(bytes: &[u8]) -> Result<(Self, usize), NotYet> {
        greeting(bytes, &[(1, Self::Send), (2, Self::Fetch)])
    }

    fn emit(&self, out: &mut BytesMut) {
        out.put_slice(MAGIC);
        out.put_u8(if *self == Self::Send { 1 } else { 2 });
    }
}

impl Message for Answer {
    fn parse(bytes: &[u8]) -> Result<(Self, usize), NotYet> {
        greeting(bytes, &[(0, Self::Yes), (1, Self::No)])
    }

    fn emit(&self, out: &mut BytesMut) {
        out.put_slice(MAGIC);
        out.put_u8(u8::from(*self == Self::No));
    }
}

fn greeting<T: Copy>(bytes: &[u8], known: &[(u8, T)]) -> Result<(T, usize), NotYet> {
    let shared = bytes.len().min(MAGIC.len());
    if bytes[..shared] != MAGIC[..shared] {
        return Err(other_version(bytes).map_or(NotYet::Malformed("no file transfer"), NotYet::Version));
    }
    let mut fields = Fields(bytes);
    fields.bytes(MAGIC.len())?;
    let said = fields.u8()?;
    let found = known.iter().find(|(byte, _)| *byte == said);
    let (_, value) = found.ok_or(NotYet::Malformed("an unknown role"))?;
    Ok((*value, MAGIC.len() + 1))
}

/// The version of a greeting: the digit before its last byte.
fn other_version(bytes: &[u8]) -> Option<u8> {
    let digit = bytes.strip_prefix(&MAGIC[..MAGIC.len() - 2])?.first()?;
    digit.is_ascii_digit().then(|| digit - b'0')
}

impl Message for Said {
    fn parse(bytes: &[u8]) -> Result<(Self, usize), NotYet> {
        let mut fields = Fields(bytes);
        let said = match fields.u8()? {
            OFFER => Self::Offer(offer(&mut fields)?),
            START => Self::Start(fields.u64()?),
            WORKING => Self::Working,
            _ => return Err(NotYet::Malformed("neither offer nor start")),
        };
        Ok((said, bytes.len() - fields.0.len()))
    }

    fn emit(&self, out: &mut BytesMut) {
        match self {
            Self::Offer(offer) => offer.emit(out),
            Self::Start(at) => {
                out.put_u8(START);
                out.put_u64(*at);
            }
            Self::Working => out.put_u8(WORKING),
        }
    }
}

fn offer(fields: &mut Fields<'_>) -> Result<Offer, NotYet> {
    let flags = fields.u8()?;
    if flags & !(ASKS | ENDLESS | DIRECTORY) != 0 {
        return Err(NotYet::Malformed("an unknown flag of an offer"));
    }
    let len = usize::from(fields.u16()?);
    if len == 0 || len > MAX_PATH {
        return Err(NotYet::Malformed("the length of a path"));
    }
    let path = std::str::from_utf8(fields.bytes(len)?);
    let path = path.map_err(|_| NotYet::Malformed("a path that is no UTF-8"))?.to_owned();
    let size = fields.u64()?;
    let size = (flags & ENDLESS == 0).then_some(size);
    let mode = fields.u16()?;
    let modified = Modified { seconds: fields.u64()? as i64, nanos: fields.u32()? };
    if modified.nanos >= 1_000_000_000 {
        return Err(NotYet::Malformed("a time"));
    }
    let directory = flags & DIRECTORY != 0;
    Ok(Offer { path, directory, size, asks: flags & ASKS != 0, mode, modified })
}

impl Offer {
    fn emit(&self, out: &mut BytesMut) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags =
            flag(self.asks, ASKS) | flag(self.size.is_none(), ENDLESS) | flag(self.directory, DIRECTORY);
        out.put_u8(OFFER);
        out.put_u8(flags);
        out.put_u16(self.path.len() as u16);
        out.put_slice(self.path.as_bytes());
        out.put_u64(self.size.unwrap_or_default());
        out.put_u16(self.mode);
        out.put_i64(self.modified.seconds);
        out.put_u32(self.modified.nanos);
    }
}

impl Message for Frame {
    fn parse(bytes: &[u8]) -> Result<(Self, usize), NotYet> {
        let mut fields = Fields(bytes);
        let frame = match fields.u32()? {
            0 => Self::End(fields.digest()?),
            ABANDONED => Self::Abandoned,
            PAUSED => Self::Working,
            len => Self::Data(len),
        };
        Ok((frame, bytes.len() - fields.0.len()))
    }

    fn emit(&self, out: &mut BytesMut) {
        match self {
            Self::Data(len) => out.put_u32(*len),
            Self::Abandoned => out.put_u32(ABANDONED),
            Self::Working => out.put_u32(PAUSED),
            Self::End(digest) => {
                out.put_u32(0);
                out.put_slice(digest);
            }
        }
    }
}

impl Message for Reply {
    fn parse(bytes: &[u8]) -> Result<(Self, usize), NotYet> {
        let mut fields = Fields(bytes);
        let reply = match fields.u8()? {
            WANT => Self::Want { index: fields.u32()?, have: fields.u64()?, digest: fields.digest()? },
            VERDICT => {
                let index = fields.u32()?;
                let code = usize::from(fields.u8()?);
                let verdict = *VERDICTS.get(code).ok_or(NotYet::Malformed("an unknown verdict"))?;
                let len = usize::from(fields.u8()?);
                let reason = String::from_utf8_lossy(fields.bytes(len)?).into_owned();
                Self::Verdict { index, verdict, reason }
            }
            WORKING => {
                let work = WORKS.get(usize::from(fields.u8()?));
                Self::Working(*work.ok_or(NotYet::Malformed("an unknown work"))?)
            }
            _ => return Err(NotYet::Malformed("neither wish nor verdict")),
        };
        Ok((reply, bytes.len() - fields.0.len()))
    }

    fn emit(&self, out: &mut BytesMut) {
        match self {
            Self::Want { index, have, digest } => {
                out.put_u8(WANT);
                out.put_u32(*index);
                out.put_u64(*have);
                out.put_slice(digest);
            }
            Self::Verdict { index, verdict, reason } => {
                let reason = &reason[..reason.floor_char_boundary(MAX_REASON)];
                out.put_u8(VERDICT);
                out.put_u32(*index);
                out.put_u8(VERDICTS.iter().position(|v| v == verdict).unwrap_or_default() as u8);
                out.put_u8(reason.len() as u8);
                out.put_slice(reason.as_bytes());
            }
            Self::Working(work) => {
                out.put_u8(WORKING);
                out.put_u8(WORKS.iter().position(|w| w == work).unwrap_or_default() as u8);
            }
        }
    }
}

/// The bytes that are not read yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], NotYet> {
        let (front, rest) = self.0.split_at_checked(len).ok_or(NotYet::Short)?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NotYet> {
        let (front, rest) = self.0.split_first_chunk().ok_or(NotYet::Short)?;
        self.0 = rest;
        Ok(*front)
    }

    fn u8(&mut self) -> Result<u8, NotYet> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, NotYet> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, NotYet> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, NotYet> {
        self.array().map(u64::from_be_bytes)
    }

    fn digest(&mut self) -> Result<Digest, NotYet> {
        self.array()
    }
}
