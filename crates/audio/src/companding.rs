//! The two logarithmic telephone codes of ITU-T G.711.
//!
//! ```
//! use srf_audio::companding::{decode_alaw, decode_ulaw};
//!
//! assert_eq!((decode_ulaw(0xff), decode_alaw(0xd5)), (0, 8));
//! ```

/// The u-law byte's sample: complemented sign, 3-bit exponent and 4-bit mantissa over a bias of 33, times 4.
pub fn decode_ulaw(byte: u8) -> i16 {
    let code = !byte;
    let magnitude = (((code as i16 & 0x0f) << 3) + 0x84) << ((code >> 4) & 7);
    if code & 0x80 == 0 { magnitude - 0x84 } else { 0x84 - magnitude }
}

/// The u-law byte nearest below in magnitude: the inverse of [`decode_ulaw`] up to the code's own coarseness.
pub(crate) fn encode_ulaw(sample: i16) -> u8 {
    let biased = (i32::from(sample).abs().min(32635) + 0x84) as u32;
    let exponent = biased.ilog2() - 7;
    let mantissa = (biased >> (exponent + 3)) & 0x0f;
    let sign = if sample < 0 { 0x80 } else { 0 };
    !(sign | (exponent << 4) as u8 | mantissa as u8)
}

/// The A-law byte's sample: every other bit inverted, then sign, 3-bit exponent and 4-bit mantissa, times 8.
pub fn decode_alaw(byte: u8) -> i16 {
    let code = byte ^ 0x55;
    let mantissa = (code as i16 & 0x0f) << 4;
    let magnitude = match (code >> 4) & 7 {
        0 => mantissa + 8,
        exponent => (mantissa + 0x108) << (exponent - 1),
    };
    if code & 0x80 == 0 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_codes_give_the_published_extremes_and_are_odd() {
        assert_eq!([0x00, 0x7f, 0x80, 0xff].map(decode_ulaw), [-32124, 0, 32124, 0]);
        assert_eq!([0x55, 0xd5, 0x2a, 0xaa].map(decode_alaw), [-8, 8, -32256, 32256]);
        for byte in 0..=127u8 {
            assert_eq!(decode_ulaw(byte), -decode_ulaw(byte | 0x80));
            assert_eq!(decode_alaw(byte), -decode_alaw(byte | 0x80));
        }
    }

    #[test]
    fn encoding_a_decoded_ulaw_byte_gives_it_back() {
        // Negative zero has no sample of its own.
        for byte in (0..=255u8).filter(|b| *b != 0x7f) {
            assert_eq!(encode_ulaw(decode_ulaw(byte)), byte);
        }
    }
}
