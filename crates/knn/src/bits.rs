//! Vector of 1,024 bits, which can also be a drawing of 32 rows of 32 pixels.
//!
//! Bit 0 is the first pixel of the first row, and the most significant bit of the first byte and of the first word. So
//! a string of 0 and 1, the hexadecimal digits, and the bytes of a vector all have the same order.

use std::fmt;
use std::str::FromStr;

/// Number of bits in a vector.
pub const BITS: usize = 1024;
/// Number of pixels along each side of a drawing.
pub const SIDE: usize = 32;
/// Number of bytes in a vector.
pub const BYTES: usize = BITS / 8;
/// Number of words in a vector.
pub(crate) const WORDS: usize = BITS / WORD_BITS;
const WORD_BITS: usize = 64;
const HEX_DIGITS: usize = BITS / 4;

const _: () = assert!(SIDE * SIDE == BITS);

/// A vector of [`BITS`] bits.
///
/// A vector can be parsed from 1,024 digits 0 and 1, or from 256 hexadecimal digits; white space between digits is
/// ignored. `{:x}` writes the hexadecimal digits, and `{}` the drawing: [`SIDE`] lines of `#` and `.`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub struct Bits([u64; WORDS]);

/// Error of parsing a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BitsError {
    /// The text has neither 1,024 nor 256 digits.
    #[error(
        "{found} digits; a vector is {BITS} digits 0 and 1, or {HEX_DIGITS} hexadecimal digits"
    )]
    Length {
        /// Number of characters that are not white space.
        found: usize,
    },
    /// The text has the right length, but contains a character that is not a digit.
    #[error("{found:?} is not a digit; {BITS} digits are 0 or 1, and {HEX_DIGITS} hexadecimal")]
    Digit {
        /// The first such character.
        found: char,
    },
}

impl Bits {
    /// The vector whose bits are all 0.
    pub const ZERO: Self = Self([0; WORDS]);

    /// The vector whose bit `index` is `bit(index)`, for 0 to [`BITS`] - 1.
    #[must_use]
    pub fn from_fn(mut bit: impl FnMut(usize) -> bool) -> Self {
        let mut indices = 0..BITS;
        let mut next_word = || {
            let bits = indices.by_ref().take(WORD_BITS);
            bits.fold(0, |word, index| word << 1 | u64::from(bit(index)))
        };
        Self([(); WORDS].map(|()| next_word()))
    }

    /// The vector of these bytes. Its first bit is the most significant bit of the first byte.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        let mut bits = Self::ZERO;
        for (word, bytes) in bits.0.iter_mut().zip(words) {
            *word = u64::from_be_bytes(*bytes);
        }
        bits
    }

    /// The bytes of the vector; [`Bits::from_bytes`] reverses this.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let (words, _) = bytes.as_chunks_mut();
        for (bytes, word) in words.iter_mut().zip(self.0) {
            *bytes = word.to_be_bytes();
        }
        bytes
    }

    /// Whether bit `index` is 1; false from [`BITS`] on.
    #[must_use]
    pub fn bit(&self, index: usize) -> bool {
        let word = self.0.get(index / WORD_BITS);
        word.is_some_and(|word| word >> (WORD_BITS - 1 - index % WORD_BITS) & 1 == 1)
    }

    /// Number of bits that are 1.
    #[must_use]
    pub fn ones(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Number of bits that differ: the Hamming distance, 0 to [`BITS`].
    #[must_use]
    pub fn distance(&self, other: &Self) -> u32 {
        self.0.iter().zip(&other.0).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    pub(crate) const fn from_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    pub(crate) const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }
}

impl FromStr for Bits {
    type Err = BitsError;

    fn from_str(text: &str) -> Result<Self, BitsError> {
        if let Some(bits) = plain_hex(text) {
            return Ok(bits);
        }
        let mut digits = text.chars().filter(|digit| !digit.is_whitespace());
        let digit_bits = match digits.clone().count() {
            BITS => 1,
            HEX_DIGITS => 4,
            found => return Err(BitsError::Length { found }),
        };
        let mut bits = Self::ZERO;
        for word in &mut bits.0 {
            for found in digits.by_ref().take(WORD_BITS / digit_bits) {
                let digit = found.to_digit(1 << digit_bits).ok_or(BitsError::Digit { found })?;
                *word = *word << digit_bits | u64::from(digit);
            }
        }
        Ok(bits)
    }
}

/// Parses exactly 256 hexadecimal digits without white space, the form that is fastest to parse.
fn plain_hex(text: &str) -> Option<Bits> {
    let digits: &[u8; HEX_DIGITS] = text.as_bytes().try_into().ok()?;
    // Check for invalid digits only at the end, so that there is no branch to mispredict.
    let (words, _) = digits.as_chunks::<{ WORD_BITS / 4 }>();
    let mut seen = 0;
    let mut bits = Bits::ZERO;
    for (word, digits) in bits.0.iter_mut().zip(words) {
        for digit in digits {
            let (decimal, letter) = (digit.wrapping_sub(b'0'), (digit | 0x20).wrapping_sub(b'a'));
            let letter = if letter < 6 { letter + 10 } else { 16 };
            let value = if decimal < 10 { decimal } else { letter };
            seen |= value;
            *word = *word << 4 | u64::from(value & 15);
        }
    }
    (seen < 16).then_some(bits)
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in 0..SIDE {
            for column in 0..SIDE {
                f.write_str(if self.bit(row * SIDE + column) { "#" } else { "." })?;
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl fmt::LowerHex for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|word| write!(f, "{word:016x}"))
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bits({self:x})")
    }
}
