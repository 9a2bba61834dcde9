//! Tests of streams without connections: their effect on other requests and their memory.

use edge::{Access, BlockingReads, RequestMemory, STREAM_READS_MAX, Turn};
use feed::{Bio, Command, Handle, Name, PostText, UserRef};
use http_body_util::BodyExt as _;
use node::{Durability, NodeOptions, Request};

use super::*;
use crate::ApiOptions;

#[test]
fn positions_are_read_as_they_are_written() {
    for (text, valid) in [
        ("0.p", true),
        ("9223372036854775807.m", true),
        ("9223372036854775808.m", false),
        ("1", false),
        ("1.", false),
        ("7.s", true),
        ("1.x", false),
        ("01.p", false),
        (".p", false),
        ("1.p.m", false),
    ] {
        let position = news::parse(text);
        assert_eq!(position.is_some(), valid, "{text}");
        let mut written = Vec::new();
        position.inspect(|position| news::write(*position, &mut written));
        assert!(!valid || written == text.as_bytes(), "{text}");
    }
}

/// Node, state of the handlers and data directory, with one blocking read at a time.
struct Subject {
    state: Arc<AppState>,
    _closing: watch::Sender<bool>,
    _data: tempfile::TempDir,
}

/// Waits until streams have dropped their clones of the node, before the data directory is removed.
impl Drop for Subject {
    fn drop(&mut self) {
        self.state.node.close();
    }
}

impl Subject {
    /// Creates users 0 to `users` - 1, who all follow user 0.
    async fn new(users: u32) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut options = NodeOptions::new(data.path());
        options.durability = Durability::Never;
        let node = Node::open(&options).unwrap();
        let mut options = ApiOptions::new(Access::Open);
        options.reads = BlockingReads::new(1);
        let (closing, closed) = watch::channel(false);
        let memory = RequestMemory::new(options.request_memory);
        let metrics = Arc::new(crate::metrics::HttpMetrics::default());
        let state = Arc::new(AppState::new(node, options, closed, memory, &metrics));
        let subject = Self { state, _closing: closing, _data: data };
        let register = |user| Command::Register {
            handle: Handle::parse(&format!("u{user}")).unwrap(),
            name: Name::default(),
            bio: Bio::default(),
        };
        subject.submit((0..users).map(register)).await;
        let follow = |user| Command::Follow { user: id(user), other: id(0) };
        subject.submit((1..users).map(follow)).await;
        subject
    }

    async fn submit(&self, commands: impl Iterator<Item = Command>) {
        let commands: Vec<Request> = commands.map(Request::from).collect();
        let replies = self.state.node.submit_all(commands).await.unwrap();
        assert!(replies.iter().all(|reply| reply.outcome.is_ok()));
    }

    async fn post(&self, text: &str) {
        let text = PostText::parse(text).unwrap();
        self.submit([Command::post(id(0), text)].into_iter()).await;
    }

    async fn listen(&self, user: u32, from: Option<&str>) -> Listener {
        let position = from.map(|from| news::parse(from).unwrap());
        let state = State(Arc::clone(&self.state));
        let headers = axum::http::HeaderMap::new();
        let caller = Caller::Key(self.state.share(&headers).unwrap());
        let response = events(state, caller, OneUser(id(user)), Resume(position)).await.unwrap();
        let mut listener = Listener(response.into_body());
        assert!(listener.chunk().await.starts_with(b"retry:"));
        listener
    }
}

/// Takes all reading turns of streams.
async fn all_turns(state: &AppState) -> Vec<Turn> {
    let mut turns = Vec::new();
    for _ in 0..STREAM_READS_MAX {
        turns.push(state.reads.streams().next().await);
    }
    turns
}

fn id(user: u32) -> UserRef {
    UserRef::Id(UserId(user))
}

struct Listener(Body);

impl Listener {
    async fn chunk(&mut self) -> Bytes {
        self.0.frame().await.unwrap().unwrap().into_data().unwrap()
    }

    /// Reads chunks until one contains `text`; returns their number and their bytes.
    async fn until(&mut self, text: &str) -> (usize, Vec<u8>) {
        let (mut chunks, mut bytes) = (0, Vec::new());
        loop {
            let chunk = self.chunk().await;
            chunks += 1;
            bytes.extend_from_slice(&chunk);
            if chunk.windows(text.len()).any(|part| part == text.as_bytes()) {
                return (chunks, bytes);
            }
        }
    }
}

/// Uses all permits of request reads, running and queued, until the returned sender is dropped.
async fn hold_reads(state: &Arc<AppState>) -> std::sync::mpsc::Sender<()> {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let shared = Arc::clone(state);
    tokio::spawn(async move { shared.read(move |_| held.recv().is_err()).await });
    loop {
        let state = Arc::clone(state);
        let mut another = tokio::spawn(async move { state.read(|_| ()).await });
        // Queued reads fill the queue; a refusal shows that it is full.
        let answer = tokio::time::timeout(Duration::from_millis(20), &mut another).await;
        if let Ok(Ok(Err(refused))) = answer {
            assert_eq!(refused.status, 503);
            return release;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_wakes_two_thousand_listeners_without_a_read_of_the_store() {
    const LISTENERS: u32 = 2_000;
    let subject = Subject::new(1 + LISTENERS).await;
    let state = &subject.state;
    let (received, mut texts) = tokio::sync::mpsc::unbounded_channel();
    for user in 1..=LISTENERS {
        let mut listener = subject.listen(user, None).await;
        let received = received.clone();
        tokio::spawn(async move {
            for text in ["nothing yet", "the first", "the second"] {
                listener.until(text).await;
                received.send(text).unwrap();
            }
        });
    }
    let all_get = async |texts: &mut tokio::sync::mpsc::UnboundedReceiver<&str>, text| {
        for n in 0..LISTENERS {
            let next = tokio::time::timeout(Duration::from_secs(60), texts.recv()).await;
            assert_eq!(next.ok().flatten(), Some(text), "after {n} listeners");
        }
    };
    // For the first post, the stream must read the author's name from the store.
    subject.post("nothing yet").await;
    all_get(&mut texts, "nothing yet").await;
    // From here on, no stream can read from the store.
    let turns = all_turns(state).await;
    let release = hold_reads(state).await;
    subject.post("the first").await;
    all_get(&mut texts, "the first").await;
    drop(release);
    while state.read(|_| ()).await.is_err() {
        tokio::task::yield_now().await;
    }
    // Other clients read during the second post, and none of them is refused.
    let strangers = async {
        for _ in 0..200 {
            assert!(state.read(|node| node.facts().exists(UserId(1))).await.unwrap());
        }
    };
    tokio::join!(subject.post("the second"), strangers, all_get(&mut texts, "the second"));
    drop(turns);
}

#[tokio::test]
async fn a_stream_sends_a_long_gap_in_chunks_and_holds_one() {
    let subject = Subject::new(2).await;
    // 490 letters with marks: 7,350 bytes.
    let text = format!("a{}", "\u{301}".repeat(7)).repeat(490);
    for n in 0..30 {
        subject.post(&format!("{n} {text}")).await;
    }
    subject.post("last").await;
    let mut listener = subject.listen(1, Some("0.s")).await;
    let (mut chunks, mut all) = (0, Vec::new());
    while !all.ends_with(b"last\"}\n\n") && chunks < 100 {
        let chunk = listener.chunk().await;
        assert!(chunk.len() <= EVENTS_BYTES + 30_000, "{} bytes", chunk.len());
        assert_eq!(subject.state.unsent.events.used(), chunk.len());
        all.extend_from_slice(&chunk);
        chunks += 1;
        if all.windows(7).any(|part| part == b"\"last\",") {
            break;
        }
    }
    assert!((6..20).contains(&chunks), "{chunks} chunks");
    let all = String::from_utf8(all).unwrap();
    let mut rest = all.as_str();
    for n in 0..30 {
        let at = rest.find(&format!("\"text\":\"{n} ")).unwrap();
        rest = &rest[at..];
    }
    assert_eq!(subject.state.unsent.events.used(), 0, "released with the last chunk");
}

#[tokio::test(start_paused = true)]
async fn a_stream_waits_for_memory_and_misses_nothing() {
    let subject = Subject::new(2).await;
    let mut listener = subject.listen(1, None).await;
    let bytes = &subject.state.unsent.events;
    let all = bytes.try_reserve(bytes.limit()).unwrap();
    subject.post("one").await;
    subject.post("two").await;
    let waits = tokio::time::timeout(Duration::from_secs(5), listener.until("one"));
    assert!(waits.await.is_err());
    drop(all);
    let (_, events) = listener.until("two").await;
    assert!(events.windows(5).any(|part| part == b"\"one\""));
}

#[tokio::test]
async fn mentions_that_arrive_while_a_stream_waits_for_a_read_are_read_together() {
    let subject = Subject::new(2).await;
    let mut listener = subject.listen(1, None).await;
    subject.post("hello @u1").await;
    listener.until("event: mention").await;
    let turns = all_turns(&subject.state).await;
    let posting = async {
        for _ in 0..50 {
            subject.post("again @u1").await;
        }
        subject.post("the end @u1").await;
        drop(turns);
    };
    let ((chunks, events), ()) = tokio::join!(listener.until("the end @u1"), posting);
    let mentions = events.windows(14).filter(|part| *part == b"event: mention").count();
    assert!(mentions >= 50, "{mentions} mentions");
    assert!(chunks <= 3, "{mentions} mentions in {chunks} chunks");
}
