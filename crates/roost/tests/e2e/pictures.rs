//! Tests that the operating system limits the process that converts pictures: the memory of a decoder can exceed what
//! the declared size of a picture needs.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Writer of bits. It fills each byte from the lowest bit.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn put(&mut self, value: u32, count: usize) {
        for bit in (0..count).map(|at| (value >> at & 1) as u8) {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= bit << (self.count % 8);
            self.count += 1;
        }
    }

    /// Appends a code with only one symbol, whose occurrence takes no bits.
    fn put_symbol(&mut self, symbol: u8) {
        self.put(0b101, 3);
        self.put(symbol.into(), 8);
    }

    /// Appends a code with 11 symbols, whose lengths are 1 to 10, and 10 again.
    fn put_long_code(&mut self) {
        // First write a code for lengths: 16 of its symbols have four bits. The symbols are in the order of the format.
        self.put(0, 1);
        self.put(19 - 4, 4);
        for length in [0, 0, 4, 4, 4, 4, 4, 4, 0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4] {
            self.put(length, 3);
        }
        // Then write the number of lengths: 11, as 9 more than the minimum of 2.
        self.put(1, 1);
        self.put(1, 3);
        self.put(9, 4);
        for length in (1..=10).chain([10_u32]) {
            self.put(length.reverse_bits() >> 28, 4);
        }
    }
}

/// WebP file of one pixel, with this many groups of codes.
fn webp(groups: u16) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put(0x2f, 8);
    bits.put(0, 14 + 14 + 1 + 3);
    // Write no transform and no color cache. The image of groups has one pixel, which selects the last group.
    bits.put(0, 2);
    bits.put(1, 1);
    bits.put(0, 3);
    bits.put(0, 1);
    let [high, low] = (groups - 1).to_be_bytes();
    for symbol in [low, high, 0, 0, 0] {
        bits.put_symbol(symbol);
    }
    for _ in 0..groups {
        (0..5).for_each(|_| bits.put_long_code());
    }
    (0..2).for_each(|_| bits.put(0, 32));
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    let mut data = bits.bytes;
    let chunk = length(data.len());
    data.resize(data.len().next_multiple_of(2), 0);
    let whole = length(4 + 8 + data.len());
    [b"RIFF", &whole[..], b"WEBPVP8L", &chunk, &data].concat()
}

/// Output of the process, and whether it ended without a signal.
fn convert(file: &[u8]) -> (Vec<u8>, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roost"));
    command.args([node::CONVERT, "attachment"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.envs(node::CONVERTER_ENVIRONMENT);
    let mut process = command.stderr(Stdio::null()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(file).unwrap();
    let output = process.wait_with_output().unwrap();
    (output.stdout, output.status.success())
}

#[test]
fn a_picture_that_would_take_too_much_memory_ends_only_its_process() {
    let (picture, ended) = convert(&webp(1));
    assert!(ended && media::from_bytes(&picture).is_ok(), "{} bytes", picture.len());
    // The tables of 65,535 groups, five of 4 KiB each, need 1.3 GB.
    let file = webp(u16::MAX);
    assert!(file.len() < media::FILE_BYTES_MAX, "{}", file.len());
    assert!(media::head(&file).is_ok(), "it says that it has one pixel");
    let (answer, ended) = convert(&file);
    assert!(!ended && answer.is_empty(), "{} bytes", answer.len());
    assert!(media::from_bytes(&answer).is_err());
}
