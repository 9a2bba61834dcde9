//! Tests of the text, bytes and drawing of a vector.

use knn::{BITS, BYTES, Bits, BitsError, SIDE};
use proptest::prelude::*;

#[test]
fn the_first_bit_comes_first_in_every_form() {
    let first = Bits::from_fn(|at| at == 0);
    let mut bytes = [0; BYTES];
    bytes[0] = 0x80;
    assert_eq!(Bits::from_bytes(&bytes), first);
    assert_eq!(format!("{first:x}"), format!("8{}", "0".repeat(255)));
    assert_eq!(format!("1{}", "0".repeat(1023)).parse(), Ok(first));
    assert!(format!("{first}").starts_with("#..............................."));
    assert!(first.bit(0) && !first.bit(1) && !first.bit(BITS) && !first.bit(usize::MAX));
}

#[track_caller]
fn check_refused(text: &str, expected: BitsError) {
    assert_eq!(text.parse::<Bits>(), Err(expected));
}

#[test]
fn what_is_no_vector_is_refused_with_its_fault() {
    for found in [0, 1, 255, 257, 1_023, 1_025] {
        check_refused(&"0".repeat(found), BitsError::Length { found });
    }
    check_refused(&format!("{}2", "0".repeat(1_023)), BitsError::Digit { found: '2' });
    check_refused(&format!("{}f", "0".repeat(1_023)), BitsError::Digit { found: 'f' });
    check_refused(&format!("{}g", "0".repeat(255)), BitsError::Digit { found: 'g' });
    check_refused(&"\u{0661}".repeat(256), BitsError::Digit { found: '\u{0661}' });
    let fault = "10".parse::<Bits>().unwrap_err().to_string();
    assert_eq!(fault, "2 digits; a vector is 1024 digits 0 and 1, or 256 hexadecimal digits");
}

proptest! {
    #[test]
    fn every_form_of_a_vector_is_read_as_that_vector(
        bytes in prop::collection::vec(any::<u8>(), BYTES),
        spaces in prop::collection::vec((0..=BITS, prop::sample::select(vec![" ", "\n", "\t", "\r\n"])), 0..9),
    ) {
        let bits = Bits::from_bytes(bytes.as_slice().try_into().unwrap());
        prop_assert_eq!(bits.to_bytes().to_vec(), bytes.clone());
        prop_assert_eq!(Bits::from_fn(|at| bytes[at / 8] >> (7 - at % 8) & 1 == 1), bits);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        prop_assert_eq!(format!("{bits:x}"), hex.to_lowercase());
        let binary: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
        prop_assert_eq!(format!("{bits}").replace('#', "1").replace('.', "0").replace('\n', ""), binary.clone());
        prop_assert_eq!(format!("{bits}").lines().map(str::len).collect::<Vec<_>>(), vec![SIDE; SIDE]);
        for mut text in [hex, binary] {
            for (at, space) in &spaces {
                text.insert_str((*at).min(text.len()), space);
            }
            prop_assert_eq!(text.parse(), Ok(bits));
        }
    }

    #[test]
    fn the_distance_is_the_number_of_bits_that_differ(a in prop::collection::vec(any::<u8>(), BYTES), flips in prop::collection::btree_set(0..BITS, 0..40)) {
        let a = Bits::from_bytes(a.as_slice().try_into().unwrap());
        let b = Bits::from_fn(|at| a.bit(at) != flips.contains(&at));
        prop_assert_eq!(a.distance(&b) as usize, flips.len());
        prop_assert_eq!(a.distance(&Bits::ZERO), a.ones());
    }
}
