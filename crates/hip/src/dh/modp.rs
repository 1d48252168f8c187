//! The MODP groups of RFC 3526 §2 and §4. The generator is 2; the exponentiation is in constant time.

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Encoding, Odd, U1536, U3072, Uint};

use super::DhGroup;

/// `base` (the generator, if none) to the power of `exponent`, as long as the modulus. `None` if the
/// base is not in 2..p-1 (RFC 2631 §2.1.5; 0, 1 and p-1 make the secret predictable), if it or the
/// exponent is longer than the modulus, or for a curve.
pub(crate) fn power(group: DhGroup, base: Option<&[u8]>, exponent: &[u8]) -> Option<Vec<u8>> {
    match group {
        DhGroup::Modp1536 => power_in(&U1536::from_be_hex(P_1536), base, exponent),
        DhGroup::Modp3072 => power_in(&U3072::from_be_hex(P_3072), base, exponent),
        DhGroup::P256 | DhGroup::P384 | DhGroup::P521 => None,
    }
}

fn power_in<const L: usize>(p: &Uint<L>, base: Option<&[u8]>, exponent: &[u8]) -> Option<Vec<u8>>
where
    Uint<L>: Encoding,
{
    let base = base.map_or(Some(Uint::from_u8(2)), number)?;
    let lowest = Uint::from_u8(2);
    if base < lowest || base > p.wrapping_sub(&lowest) {
        return None;
    }
    let params = FixedMontyParams::new_vartime(Odd::new(*p).expect("a prime above 2 is odd"));
    let (bits, exponent) = (exponent.len() as u32 * 8, number::<L>(exponent)?);
    let result = FixedMontyForm::new(&base, &params).pow_bounded_exp(&exponent, bits).retrieve();
    Some(Encoding::to_be_bytes(&result).as_ref().to_vec())
}

/// The big-endian number; `None` if it has more bytes than the modulus.
fn number<const L: usize>(bytes: &[u8]) -> Option<Uint<L>> {
    let mut padded = vec![0; Uint::<L>::BYTES];
    let start = padded.len().checked_sub(bytes.len())?;
    padded[start..].copy_from_slice(bytes);
    Some(Uint::from_be_slice(&padded))
}

const P_1536: &str = concat!(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD",
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED",
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F",
    "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA237327FFFFFFFFFFFFFFFF",
);
const P_3072: &str = concat!(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD",
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED",
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F",
    "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B",
    "E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510",
    "15728E5A8AAAC42DAD33170D04507A33A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7DB3970F85A6E1E4C7",
    "ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864D87602733EC86A64521F2B18177B200C",
    "BBE117577A615D6C770988C0BAD946E208E24FA074E5AB3143DB5BFCE0FD108E4B82D120A93AD2CAFFFFFFFFFFFFFFFF",
);
