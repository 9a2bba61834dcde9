//! Posts that a worker of the crash test sends as one batch.

use std::io::{self, BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use super::worker::Draft;
use crate::support::http::{Chunked, Client, connect, number, read_head};

/// Sends the drafts, which must be posts. Returns the ids of the acknowledged ones, which are fewer if the server
/// ended.
pub(super) fn send(client: &Client, drafts: &[Draft]) -> Vec<u64> {
    let mut ids = Vec::new();
    // After an error, the outcome of the remaining posts is unknown.
    let _error = try_send(client, drafts, &mut ids);
    ids
}

fn try_send(client: &Client, drafts: &[Draft], ids: &mut Vec<u64>) -> io::Result<()> {
    let line = |draft: &Draft| {
        let user = draft.author.to_string();
        format!("{}\n", json!({"op": "post", "user": user, "text": draft.text}))
    };
    let lines: String = drafts.iter().map(line).collect();
    let head = format!(
        "POST /v1/batch HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
         Content-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
        client.address,
        lines.len()
    );
    let mut connection = connect(client.address)?;
    connection.get_mut().write_all(&[head.as_bytes(), lines.as_bytes()].concat())?;
    let (status, _) = read_head(&mut connection)?;
    assert_eq!(status, 200);
    for line in BufReader::new(Chunked::new(connection)).lines() {
        let line = line?;
        // The last line of a killed server may be incomplete.
        let Ok(result) = serde_json::from_str::<Value>(&line) else { break };
        assert_eq!(result["ok"], true, "{result}");
        ids.push(number(&result["id"]));
    }
    Ok(())
}
