//! Incremental decoder of the chunked transfer coding. The only state is the position within the chunk.

use super::ClientError;

/// The position of the next byte in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Inside the size of a chunk; `size` is the value of the `digits` read so far.
    Size { size: u64, digits: u8 },
    /// Inside the chunk extensions, which follow the size.
    SizeRest { size: u64 },
    /// Inside the data of a chunk, with this many bytes left.
    Data { left: u64 },
    /// Inside the line end after the data.
    DataEnd,
    /// Inside the trailer; `empty` is whether the current line is still empty.
    Trailer { empty: bool },
    /// End of the body.
    Over,
}

/// A chunked body that is being received.
#[derive(Debug)]
pub(crate) struct Chunked(Place);

impl Chunked {
    pub(crate) fn new() -> Chunked {
        Chunked(Place::Size { size: 0, digits: 0 })
    }

    /// Whether the whole body has been taken.
    pub(crate) fn is_over(&self) -> bool {
        self.0 == Place::Over
    }

    /// Consumes bytes from the front of `input` until a piece of data is found, the body ends or no byte is left.
    /// Returns the number of bytes consumed, and the piece.
    pub(crate) fn take<'a>(&mut self, input: &'a [u8]) -> Result<(usize, &'a [u8]), ClientError> {
        for (at, &byte) in input.iter().enumerate() {
            if let Place::Data { left } = &mut self.0 {
                let (_, rest) = input.split_at(at);
                let size = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                *left -= size as u64;
                if *left == 0 {
                    self.0 = Place::DataEnd;
                }
                return Ok((at + size, rest.split_at(size).0));
            }
            if self.is_over() {
                return Ok((at, &[]));
            }
            self.0 = self.after(byte)?;
        }
        Ok((input.len(), &[]))
    }

    /// The position of the byte after this one. Line ends without carriage return are accepted.
    fn after(&self, byte: u8) -> Result<Place, ClientError> {
        const DIGITS_MAX: u8 = 15;
        let malformed = Err(ClientError::Malformed("bad chunk"));
        Ok(match (self.0, byte) {
            (Place::Size { size, digits: 1.. } | Place::SizeRest { size }, b'\n') => match size {
                0 => Place::Trailer { empty: true },
                left => Place::Data { left },
            },
            (Place::Size { size, digits: 1.. }, b'\r' | b';' | b' ') => Place::SizeRest { size },
            (Place::Size { size, digits }, _) => match char::from(byte).to_digit(16) {
                Some(digit) if digits < DIGITS_MAX => {
                    Place::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
                }
                _ => return malformed,
            },
            (place @ (Place::SizeRest { .. } | Place::Data { .. } | Place::Over), _) => place,
            (Place::DataEnd, b'\r') => Place::DataEnd,
            (Place::DataEnd, b'\n') => Place::Size { size: 0, digits: 0 },
            (Place::DataEnd, _) => return malformed,
            (Place::Trailer { empty: true }, b'\n') => Place::Over,
            (Place::Trailer { .. }, b'\n') => Place::Trailer { empty: true },
            (place @ Place::Trailer { .. }, b'\r') => place,
            (Place::Trailer { .. }, _) => Place::Trailer { empty: false },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The decoded body, and how many bytes of the input were left.
    fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool), ClientError> {
        let mut chunked = Chunked::new();
        let mut body = Vec::new();
        for mut input in pieces.iter().copied() {
            while !input.is_empty() && !chunked.is_over() {
                let (taken, data) = chunked.take(input)?;
                body.extend_from_slice(data);
                input = &input[taken..];
            }
        }
        Ok((body, chunked.is_over()))
    }

    #[test]
    fn chunks_are_joined() {
        let check = |input: &str, expect: &str, over: bool| {
            let decoded = decode(&[input.as_bytes()]).unwrap();
            assert_eq!(decoded, (expect.as_bytes().to_vec(), over), "{input:?}");
        };
        check("0\r\n\r\n", "", true);
        check("5\r\nhello\r\n0\r\n\r\n", "hello", true);
        check(
            "5;a=b\r\nhello\r\n0000A \r\n, my world\r\n0\r\nX: y\r\n\r\n",
            "hello, my world",
            true,
        );
        check("5\r\nhel", "hel", false);
        check("", "", false);
    }

    #[test]
    fn bad_chunks_are_refused() {
        for input in ["x\r\n", "\r\n", "5\r\nhello!!", "1234567890abcdef\r\n", "-1\r\n"] {
            assert!(decode(&[input.as_bytes()]).is_err(), "{input:?}");
        }
    }

    proptest! {
        #[test]
        fn a_body_is_the_same_however_its_bytes_arrive(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            size in 1_usize..20,
        ) {
            let mut coded = Vec::new();
            for chunk in &chunks {
                coded.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                coded.extend_from_slice(chunk);
                coded.extend_from_slice(b"\r\n");
            }
            coded.extend_from_slice(b"0\r\n\r\n");
            let pieces: Vec<&[u8]> = coded.chunks(size).collect();
            prop_assert_eq!(decode(&pieces).unwrap(), (chunks.concat(), true));
        }

        #[test]
        fn random_bytes_do_not_cause_a_panic(input in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[&input]);
        }
    }
}
