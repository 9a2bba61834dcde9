//! Tests of HTTP requests and streams with the largest effect.

use std::io::{BufReader, Cursor, Read as _, Write as _};
use std::net::TcpStream;

use flate2::{Compress, Compression, FlushCompress};
use image::{DynamicImage, GrayImage, ImageFormat, Luma};
use serde_json::{Value, json};

use super::Small;
use crate::support::events::Events;
use crate::support::http::{Client, connect};
use crate::support::process::{Process, serve};

const FOLLOWING_MAX: u32 = 7_500;

/// Sends a request, and returns before the response is read.
fn begin(small: &Small, request: &str) -> BufReader<TcpStream> {
    let mut stream = connect(small.server().address).unwrap();
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    stream
}

#[test]
fn bodies_that_are_announced_and_never_sent() {
    let small = Small::start();
    let request = |number| {
        format!(
            "PUT /v1/buckets/0/keys/{number} HTTP/1.1\r\nHost: localhost\r\n\
             Content-Length: {}\r\n\r\n",
            16 << 20
        )
    };
    let open: Vec<_> = (0..300).map(|number| begin(&small, &request(number))).collect();
    let mut client = small.client();
    let value = vec![7; 1 << 20];
    client.send("PUT", "/v1/buckets/0/keys/k", &[], &value).unwrap().expect(204);
    drop(open);
    small.check(400, |redis| {
        assert_eq!(redis.line("STRLEN k").integer(), 1 << 20);
        assert_eq!(redis.line("DBSIZE").integer(), 1);
    });
}

fn png(image: GrayImage) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    DynamicImage::from(image).write_to(&mut file, ImageFormat::Png).unwrap();
    file.into_inner()
}

/// This number of MiB of zeros, in the format of zlib. Every 16 MiB have the same bytes.
fn zeros(mib: usize) -> Vec<u8> {
    const PART: usize = 16 << 20;
    let part = vec![0; PART];
    let mut packed = Vec::with_capacity(1 << 20);
    let mut compress = Compress::new(Compression::best(), false);
    compress.compress_vec(&part, &mut packed, FlushCompress::Full).unwrap();
    assert_eq!(compress.total_in(), PART as u64);
    let bytes = u32::try_from(mib << 20).unwrap();
    // The last block is empty. The checksum of zeros depends only on their number.
    let end = [&[0x03, 0x00][..], &((bytes % 65_521) << 16 | 1).to_be_bytes()].concat();
    [b"\x78\xda".to_vec(), packed.repeat((mib << 20) / PART), end].concat()
}

/// Checksum of PNG files.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(u32::MAX, byte)
}

/// Recognizes drawings with the maximum number of concurrent clients. Each response must have one of these statuses.
fn check_recognition(small: &Small, file: &[u8], statuses: &[u16]) {
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let media = [("Content-Type", "image/png")];
                let answer = small.client().send("POST", "/v1/recognitions", &media, file).unwrap();
                let status = answer.status;
                assert!(statuses.contains(&status) || status == 503, "{status} {}", answer.text());
            });
        }
    });
}

#[test]
fn hostile_drawings() {
    let small = Small::start();
    let corner = |x: u32, y: u32| (x == 0 || x == 2_499) && (y == 0 || y == 2_499);
    let corners = GrayImage::from_fn(2_500, 2_500, |x, y| Luma([u8::from(!corner(x, y)) * 255]));
    check_recognition(&small, &png(corners), &[200, 400, 422]);

    let drawn =
        png(GrayImage::from_fn(100, 100, |x, _| Luma([u8::from(!(40..50).contains(&x)) * 255])));
    let profile = [&b"iCCPbomb\0\0"[..], &zeros(1_024)].concat();
    let (head, rest) = drawn.split_at(33);
    let length = (profile.len() as u32 - 4).to_be_bytes();
    let file = [head, &length, &profile, &crc32(&profile).to_be_bytes(), rest].concat();
    assert!(file.len() < 2 << 20, "{}", file.len());
    check_recognition(&small, &file, &[200, 400, 422]);
    small.check(400, |_| ());
}

#[test]
fn readers_of_the_documentation_who_read_nothing() {
    let small = Small::start();
    let file = "/docs/swagger-ui-bundle.js";
    let length = small.client().get(file).expect(200).text().len();
    assert!(length > 1 << 20);
    let request = format!("GET {file} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(10);
    let mut open: Vec<_> = (0..200).map(|_| begin(&small, &request)).collect();
    for stream in &mut open {
        stream.read_exact(&mut [0; 15]).unwrap();
    }
    small.check(200, |_| ());
}

#[test]
fn posts_that_mention_as_many_as_fit() {
    let small = Small::start();
    let mut client = small.client();
    let letters = "abcdefghijklmnopqrstuvwxyz0123456789";
    let handles: Vec<String> =
        letters.chars().flat_map(|a| "abcd".chars().map(move |b| format!("{a}{b}"))).collect();
    let register = |handle: &String| json!({"op": "register", "handle": handle});
    client.batch(&handles.iter().map(register).collect::<Vec<_>>());
    let text: String = handles.iter().take(125).map(|handle| format!("@{handle} ")).collect();
    let post = json!({"op": "post", "user": 1, "text": text.trim()});
    let posts = client.batch(&vec![post; 1_000]);
    let last = posts.last().unwrap().unwrap().to_string();
    for user in [2, 100, 125] {
        let page = client.get(&format!("/v1/users/{user}/mentions?limit=1")).expect(200).json();
        assert_eq!(page["items"][0]["id"], json!(last), "{user}");
    }
    drop(client);
    small.check(400, |_| ());
}

/// Adds samples until their memory is full. Returns their ids.
fn fill_samples(client: &mut Client, sample: &Value) -> Vec<String> {
    let mut command = sample.clone();
    command["op"] = json!("add_sample");
    let lines = format!("{command}\n").repeat(2_000);
    let mut ids = Vec::new();
    loop {
        let headers = [("Content-Type", "application/x-ndjson")];
        let answer = client.send("POST", "/v1/batch", &headers, lines.as_bytes()).unwrap();
        let results = answer.expect(200).text();
        let before = ids.len();
        for result in results.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            match result["id"].as_str() {
                Some(id) => ids.push(id.to_owned()),
                None => assert_eq!(result["error"], "samples_full", "{result}"),
            }
        }
        if ids.len() < before + 2_000 {
            return ids;
        }
    }
}

#[test]
fn samples_that_fill_their_memory_and_change_while_all_of_them_are_searched() {
    let settings = [
        "--memory",
        "900MiB",
        "--media-max",
        "0",
        "--durability",
        "never",
        "--sample-memory",
        "24MiB",
    ];
    let mut small = Small::with(&settings);
    let mut client = small.client();
    let bits = "0123456789abcdef".repeat(16);
    let sample = json!({"set": "full", "label": "x", "sample": bits});
    let mut ids = fill_samples(&mut client, &sample);
    assert!((17_500..18_000).contains(&ids.len()), "{}", ids.len());
    let queries = json!({"samples": vec![bits; 1_000]});
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (mut client, queries) = (small.client(), &queries);
            scope.spawn(move || {
                for _ in 0..4 {
                    let answer = client.post("/v1/recognitions?set=full&k=1", queries);
                    assert!([200, 503].contains(&answer.status), "{}", answer.text());
                }
            });
        }
        // Each command replaces a sample in another part, while searches still use the previous parts.
        for _ in 0..8 {
            let mut command = sample.clone();
            command["op"] = json!("add_sample");
            let changed = ids.extract_if(.., |id| id.ends_with('7')).take(50).collect::<Vec<_>>();
            let forget = |id| [json!({"op": "delete_sample", "id": id}), command.clone()];
            let results = client.batch(&changed.into_iter().flat_map(forget).collect::<Vec<_>>());
            ids.extend(results.into_iter().flatten().map(|id| id.to_string()));
        }
    });
    for _ in 0..2 {
        small.kill_and_start();
        client = small.client();
        let sets = client.get("/v1/recognitions").expect(200).json()["sets"].clone();
        assert_eq!(sets[1]["sample_count"], json!(ids.len()), "{sets}");
        let refused = client.post("/v1/samples", &sample);
        assert_eq!((refused.status, &refused.json()["error"]), (507, &json!("samples_full")));
        let path = format!("/v1/samples/{}", ids.pop().unwrap());
        client.send("DELETE", &path, &[], b"").unwrap().expect(204);
        let taught = client.post("/v1/samples", &sample).expect(201).json();
        ids.push(taught["id"].as_str().unwrap().to_owned());
    }
    small.server.take().unwrap().kill();
    let less = ["--sample-memory", "16MiB"];
    let ended = Process::start(serve(small.data.path(), &less).arg("--open")).ended();
    assert_eq!(ended.status.code(), Some(2), "{ended:#?}");
    assert!(ended.err.contains("--sample-memory 24MiB or more"), "{ended:#?}");
    small.serve();
    small.check(400, |_| ());
}

#[test]
fn no_user_follows_more_than_the_limit() {
    let mut small = Small::start();
    let mut client = small.client();
    let register = |number| json!({"op": "register", "handle": format!("user_{number}")});
    client.batch(&(0..=FOLLOWING_MAX).map(register).collect::<Vec<_>>());
    let follow = |other| json!({"op": "follow", "user": 0, "other": other});
    client.batch(&(1..=FOLLOWING_MAX).map(follow).collect::<Vec<_>>());
    for _ in 0..2 {
        let mut client = small.client();
        let path = format!("/v1/users/0/following/{}", FOLLOWING_MAX + 1);
        let refused = client.put(&path);
        assert_eq!(refused.status, 422, "{}", refused.text());
        let last = client.publish(FOLLOWING_MAX, "seen by who follows very many");
        let home = client.get("/v1/users/0/timeline?limit=1").expect(200).json();
        assert_eq!(home["items"][0]["id"], json!(last.to_string()));
        client.get("/v1/users/0").expect(200);
        small.kill_and_start();
    }
    small.check(400, |_| ());
}

#[test]
fn very_many_event_streams_of_one_author() {
    const LISTENERS: u32 = 300;
    let small = Small::start();
    let mut client = small.client();
    let author = client.register("author");
    let register = |number| json!({"op": "register", "handle": format!("user_{number}")});
    let users = client.batch(&(0..LISTENERS).map(register).collect::<Vec<_>>());
    let users: Vec<u32> = users.into_iter().map(|id| id.unwrap() as u32).collect();
    let follow = |user: &u32| json!({"op": "follow", "user": user, "other": author});
    client.batch(&users.iter().map(follow).collect::<Vec<_>>());
    let address = small.server().address;
    let mut listeners: Vec<Events> = users
        .iter()
        .map(|user| Events::open(address, &format!("/v1/users/{user}/events"), None))
        .collect();
    let mut posts = Vec::new();
    for (number, user) in users.iter().take(10).enumerate() {
        posts.push(client.publish(author, &format!("post {number}")));
        // Meanwhile, reads of other clients are never refused.
        client.get(&format!("/v1/users/{user}/timeline")).expect(200);
    }
    for listener in &mut listeners {
        let seen: Vec<u64> = listener.take(posts.len()).iter().map(|event| event.post).collect();
        assert_eq!(seen, posts);
    }
    small.check(400, |_| ());
}
