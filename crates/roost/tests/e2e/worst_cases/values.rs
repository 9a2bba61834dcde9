//! Tests of Redis commands whose values are much longer than the command, or that change a long value.

use super::Small;
use crate::support::redis::{Redis, Reply, command, line};

/// Maximum length of a value, in bytes.
const LONGEST: i64 = 16 << 20;

/// Whether each reply acknowledges its change. A reply that does not must give a reason.
fn acknowledged(replies: &[Reply]) -> Vec<bool> {
    let made = |reply: &Reply| {
        assert!(reply.error().is_empty() || reply.is_busy(), "{reply:?}");
        reply.error().is_empty()
    };
    let made: Vec<bool> = replies.iter().map(made).collect();
    assert!(made.iter().any(|made| *made), "nothing was done: {replies:?}");
    made
}

/// Sends these lines together; the n-th extends the key `k<n>` to `length`. Checks that acknowledged keys have this
/// length, also after a kill.
fn check_lengths(small: Small, lines: Vec<String>, length: i64) {
    let made = acknowledged(&small.redis().pipeline(lines));
    small.check(800, |redis| {
        let lengths = redis.pipeline((0..made.len()).map(|number| format!("STRLEN k{number}")));
        for (number, found) in lengths.into_iter().enumerate() {
            let expect = if made[number] { length } else { 0 };
            assert_eq!(found.integer(), expect, "k{number}");
        }
    });
}

#[test]
fn long_ranges_of_many_keys_by_setrange() {
    let lines = (0..60).map(|number| format!("SETRANGE k{number} 16777214 x")).collect();
    check_lengths(Small::start(), lines, LONGEST - 1);
}

#[test]
fn far_bits_of_many_keys_by_setbit() {
    let lines = (0..60).map(|number| format!("SETBIT k{number} 134217727 1")).collect();
    check_lengths(Small::start(), lines, LONGEST);
}

#[test]
fn copies_of_a_long_value() {
    let small = Small::start();
    assert_eq!(small.redis().line("SETRANGE long 16777215 x").integer(), LONGEST);
    let lines = (0..40).map(|number| format!("COPY long k{number}")).collect();
    check_lengths(small, lines, LONGEST);
}

#[test]
fn appends_that_make_long_values() {
    let small = Small::start();
    let mut redis = small.redis();
    let piece = vec![b'x'; 1 << 20];
    let mut lengths = [0; 4];
    for _ in 0..10 {
        for (number, length) in lengths.iter_mut().enumerate() {
            let reply = redis.run(&[b"APPEND", format!("k{number}").as_bytes(), &piece]);
            assert!(reply.error().is_empty() || reply.is_busy(), "{reply:?}");
            *length += if reply.is_busy() { 0 } else { piece.len() as i64 };
        }
    }
    assert!(lengths.iter().all(|length| *length > 0), "{lengths:?}");
    small.check(800, |redis| {
        for (number, length) in lengths.iter().enumerate() {
            assert_eq!(redis.line(&format!("STRLEN k{number}")).integer(), *length);
        }
    });
}

#[test]
fn a_small_payload_of_restore_that_unpacks_to_a_long_value() {
    // The payload is a literal byte, followed by references that each repeat the byte 264 times.
    let times = (LONGEST as usize - 1) / 264;
    let unpacked = 1 + 264 * times;
    let packed = [b"\0a".to_vec(), b"\xe0\xff\0".repeat(times)].concat();
    let mut payload = b"\0\xc3\x80".to_vec();
    payload.extend_from_slice(&(packed.len() as u32).to_be_bytes());
    payload.push(0x80);
    payload.extend_from_slice(&(unpacked as u32).to_be_bytes());
    payload.extend_from_slice(&packed);
    payload.extend_from_slice(&10_u16.to_le_bytes());
    payload.extend_from_slice(&crc64(&payload).to_le_bytes());
    let small = Small::start();
    let mut redis = small.redis();
    let mut replies = Vec::new();
    for number in 0..30 {
        replies.push(redis.run(&[b"RESTORE", format!("k{number}").as_bytes(), b"0", &payload]));
    }
    let made = acknowledged(&replies);
    small.check(800, |redis| {
        for (number, made) in made.iter().enumerate() {
            let length = redis.line(&format!("STRLEN k{number}")).integer();
            assert_eq!(length, if *made { unpacked as i64 } else { 0 });
        }
    });
}

/// Checksum that Redis uses, computed bit by bit.
fn crc64(bytes: &[u8]) -> u64 {
    let step = |crc: u64| {
        let shifted = crc >> 1;
        if crc & 1 == 1 { shifted ^ 0xad93_d235_94c9_35a9_u64.reverse_bits() } else { shifted }
    };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ u64::from(*byte), |crc, _| step(crc)))
}

/// Sends the lines together. Meanwhile, changes of another client must be answered: at least `beside` of them before
/// the last reply to these lines.
fn check_beside(small: &Small, lines: &[&str], times: usize, beside: usize) {
    let flood: Vec<u8> = lines.iter().flat_map(|text| line(text)).collect();
    let (mut flooding, mut stranger) = (small.redis(), small.redis());
    flooding.send(&flood.repeat(times));
    // Wait until the flood has begun.
    flooding.receive();
    let answered = std::thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            for reply in flooding.receive_all(lines.len() * times - 1) {
                assert!(reply.error().is_empty() || reply.is_busy(), "{reply:?}");
            }
        });
        let mut answered = 0;
        while !flooding.is_finished() {
            assert_eq!(stranger.line("SET other value"), Reply::ok());
            answered += 1;
        }
        answered
    });
    assert!(answered >= beside, "{answered} changes beside {lines:?}");
}

#[test]
fn cheap_changes_of_a_long_value_do_not_delay_other_clients() {
    let small = Small::start();
    assert_eq!(small.redis().line("SETRANGE big 16000000 x").integer(), 16_000_001);
    check_beside(&small, &["SETBIT big 5 1"], 300, 100);
    check_beside(&small, &["EXPIRE big 1000", "PERSIST big"], 150, 100);
    check_beside(&small, &["RENAME big other-name", "RENAME other-name big"], 150, 100);
    check_beside(&small, &["APPEND big x", "SETRANGE big 5 y"], 150, 100);
    small.check(800, |redis| {
        assert_eq!(redis.line("STRLEN big").integer(), 16_000_001 + 150);
        assert_eq!(redis.line("TTL big").integer(), -1);
    });
}

#[test]
fn long_values_that_are_changed_and_returned_and_never_read() {
    let small = Small::start();
    let value = vec![b'x'; 4 << 20];
    assert_eq!(small.redis().run(&[b"SET", b"value", &value]), Reply::ok());
    let requests = line("GETEX value EX 1000").repeat(40);
    let mut slow: Vec<Redis> = (0..20).map(|_| small.redis()).collect();
    for redis in &mut slow {
        redis.push(&requests);
    }
    let kept = |redis: &mut Redis| {
        assert_eq!(redis.line("STRLEN value").integer(), 4 << 20);
    };
    kept(&mut small.redis());
    small.check(500, kept);
}

#[test]
fn transactions_that_read_much() {
    let small = Small::start();
    let mut redis = small.redis();
    let value = vec![b'x'; 15 << 20];
    assert_eq!(redis.run(&[b"SET", b"long", &value]), Reply::ok());
    assert_eq!(redis.run(&[b"SET", b"a", &value[..9_000]]), Reply::ok());
    for number in 0..1_000 {
        let key = format!("key-{number}-{}", "k".repeat(10_000));
        assert_eq!(redis.line(&format!("SET {key} 1")), Reply::ok());
    }
    let queued = Reply::Simple("QUEUED".into());
    let mut clients: Vec<Redis> = (0..10).map(|_| small.redis()).collect();
    for client in &mut clients {
        for text in ["GET long", "KEYS *", "LCS a a LEN", "MGET a long a", "DUMP long", "SET b 1"] {
            if text == "GET long" {
                assert_eq!(client.line("MULTI"), Reply::ok());
            }
            assert_eq!(client.line(text), queued);
        }
        client.send(&command(&[b"EXEC"]));
    }
    for client in &mut clients {
        match client.receive() {
            Reply::Array(replies) => assert_eq!(replies.len(), 6),
            refused => assert!(refused.is_busy() || refused.error().starts_with("EXECABORT")),
        }
    }
    drop(clients);
    small.check(800, |redis| {
        assert_eq!(redis.line("DBSIZE").integer(), 1_002 + redis.line("EXISTS b").integer());
    });
}
