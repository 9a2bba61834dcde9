//! Fuzz target of the parser of the Redis protocol: its result does not depend on how a stream is divided into pieces.

use resp::{Limits, Parser};

/// Small limits, so that inputs reach them.
const LIMITS: Limits =
    Limits { arguments_max: 12, bulk_bytes_max: 12, line_bytes_max: 24, command_bytes_max: 60 };

/// The commands of a stream, and the error at its end or the remaining bytes.
type Found = (Vec<Vec<Vec<u8>>>, Result<Vec<u8>, String>);

/// Input: a byte that gives the size of the pieces and whether the client has authenticated, then the stream.
pub fn resp(data: &[u8]) {
    let Some((first, stream)) = data.split_first() else { return };
    let size = usize::from(first >> 1) + 1;
    let authenticated = first & 1 == 1;
    let whole = read(&[stream], authenticated);
    let parts: Vec<&[u8]> = stream.chunks(size).collect();
    assert_eq!(read(&parts, authenticated), whole);
}

fn read(parts: &[&[u8]], authenticated: bool) -> Found {
    let mut parser = Parser::new(LIMITS);
    parser.set_authenticated(authenticated);
    let (mut commands, mut buffer) = (Vec::new(), Vec::new());
    for part in parts {
        buffer.extend_from_slice(part);
        let mut rest = buffer.as_slice();
        loop {
            match parser.next(&mut rest) {
                Ok(Some(command)) => {
                    let words = std::iter::once(command.name()).chain(command.arguments());
                    let words: Vec<Vec<u8>> = words.map(<[u8]>::to_vec).collect();
                    assert!(words.len() <= LIMITS.arguments_max.max(LIMITS.line_bytes_max));
                    commands.push(words);
                }
                Ok(None) => break,
                Err(error) => return (commands, Err(error.to_string())),
            }
        }
        buffer = rest.to_vec();
    }
    (commands, Ok(buffer))
}
