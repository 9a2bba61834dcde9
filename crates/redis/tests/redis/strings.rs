//! Commands on string values.

use crate::client::TestServer;

#[test]
fn values_are_set_and_read() {
    TestServer::open().client().check(&[
        ("GET a", "nil"),
        ("SET a 1", "OK"),
        ("get A", "nil"),
        ("gEt a", "\"1\""),
        ("SET a 2 NX", "nil"),
        ("SET b 2 XX", "nil"),
        ("SET a 2 XX GET", "\"1\""),
        ("SET c 3 NX GET", "nil"),
        ("SET c 4 NX GET", "\"3\""),
        ("SET a", "-ERR wrong number of arguments for 'set' command"),
        ("SET a 1 PX", "-ERR syntax error"),
        ("SETNX a 9", "0"),
        ("SETNX d 9", "1"),
        ("GETSET a 5", "\"2\""),
        ("GETSET new 5", "nil"),
        ("GETDEL a", "\"5\""),
        ("GETDEL a", "nil"),
        ("SET \"\" x", "-ERR a key must not be empty"),
        ("GET \"\"", "nil"),
        ("SET \"a\\x00\\r\\n\" \"\\xff\\n\"", "OK"),
        ("GET \"a\\x00\\r\\n\"", "\"\\xff\\n\""),
    ]);
}

#[test]
fn several_values_at_a_time() {
    TestServer::open().client().check(&[
        ("MSET a 1 b 2 a 3", "OK"),
        ("MGET a b c a", "[\"3\", \"2\", nil, \"3\"]"),
        ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command"),
        ("MSETNX x 1 a 2", "0"),
        ("MSETNX x 1 x 2", "1"),
        ("MGET x a", "[\"2\", \"3\"]"),
        ("EXISTS a b c a", "3"),
    ]);
}

#[test]
fn parts_of_values() {
    TestServer::open().client().check(&[
        ("APPEND a Hello", "5"),
        ("APPEND a \" World\"", "11"),
        ("STRLEN a", "11"),
        ("STRLEN none", "0"),
        ("GETRANGE a -5 -1", "\"World\""),
        ("SUBSTR a 0 1", "\"He\""),
        ("GETRANGE none 0 -1", "\"\""),
        ("GETRANGE a x 1", "-ERR value is not an integer or out of range"),
        ("SETRANGE a 6 Redis", "11"),
        ("SETRANGE pad 2 x", "3"),
        ("GET pad", "\"\\x00\\x00x\""),
        ("SETRANGE a -1 x", "-ERR offset is out of range"),
        ("SETRANGE a 16777216 x", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
        ("SETRANGE none 5 \"\"", "0"),
        ("SETBIT bits 7 1", "0"),
        ("SETBIT bits 7 1", "1"),
        ("GET bits", "\"\\x01\""),
        ("GETBIT bits 7", "1"),
        ("GETBIT bits 700", "0"),
        ("SETBIT bits 1 2", "-ERR bit is not an integer or out of range"),
        ("SETBIT bits -1 1", "-ERR bit offset is not an integer or out of range"),
        ("SETBIT bits 134217728 1", "-ERR bit offset is not an integer or out of range"),
    ]);
}

#[test]
fn numbers_add_up() {
    TestServer::open().client().check(&[
        ("INCR n", "1"),
        ("INCRBY n 41", "42"),
        ("DECR n", "41"),
        ("DECRBY n 40", "1"),
        ("INCRBYFLOAT n 0.1", "\"1.1\""),
        ("INCRBYFLOAT n 0.2", "\"1.3\""),
        ("INCRBYFLOAT n 0x10", "\"17.3\""),
        ("INCRBYFLOAT n -0X1.8P+3", "\"5.3\""),
        ("INCRBYFLOAT n 0x", "-ERR value is not a valid float"),
        ("SET hex 0xff", "OK"),
        ("INCRBYFLOAT hex 1", "\"256\""),
        ("INCR n", "-ERR value is not an integer or out of range"),
        ("INCRBYFLOAT n x", "-ERR value is not a valid float"),
        ("INCRBYFLOAT n inf", "-ERR increment would produce NaN or Infinity"),
        ("SET n 9223372036854775807", "OK"),
        ("INCR n", "-ERR increment or decrement would overflow"),
        ("DECRBY n -9223372036854775808", "-ERR decrement would overflow"),
        ("SET n \" 1\"", "OK"),
        ("INCR n", "-ERR value is not an integer or out of range"),
    ]);
}

#[test]
fn longest_common_subsequences() {
    let server = TestServer::open();
    let mut client = server.client();
    client.check(&[
        ("MSET a ohmytext b mynewtext", "OK"),
        ("LCS a b", "\"mytext\""),
        ("LCS a b LEN", "6"),
        (
            "LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN",
            "[\"matches\", [[[4, 7], [5, 8], 4]], \"len\", 6]",
        ),
        ("LCS a none", "\"\""),
        ("LCS a b LEN IDX", "-ERR If you want both the length and indexes..."),
        ("LCS a b MINMATCHLEN", "-ERR syntax error"),
        ("HELLO 3", "{..."),
        ("LCS a b IDX", "{\"matches\": [[[4, 7], [5, 8]], [[2, 3], [0, 1]]], \"len\": 6}"),
    ]);
    let long = vec![b'x'; 3_000];
    client.run(&[b"SET", b"a", &long]);
    client.run(&[b"SET", b"b", &long]);
    let reply = client.line("LCS a b LEN");
    assert!(reply.starts_with("-ERR Insufficient memory"), "{reply}");
    client.run(&[b"SET", b"b", &long[..1_000]]);
    assert_eq!(client.line("LCS a b LEN"), "1000");
}

#[test]
fn the_longest_value_comes_back_and_a_longer_one_is_refused() {
    let server = TestServer::open();
    let mut client = server.client();
    let longest = vec![b'v'; 16 << 20];
    assert_eq!(client.run(&[b"SET", b"long", &longest]), "OK");
    let reply = client.line("GET long");
    assert!(reply.len() == longest.len() + 2 && reply.ends_with("vv\""));
    assert!(client.line("APPEND long x").starts_with("-ERR string exceeds maximum"));
    let many = [&b"MGET"[..], b"long", b"long", b"long", b"long", b"long"];
    assert!(client.run(&many).starts_with("-ERR the reply would be longer than 64 MiB"));
    client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16777217\r\n");
    assert_eq!(client.receive().unwrap(), "-ERR Protocol error: invalid bulk length");
    assert_eq!(client.receive(), None);
}
