//! Order, retries, changes that are given up, gaps, and restarts.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::sync::oneshot;
use webhooks::{Action, ActionError, Options, Secret};

use crate::receiver::{Answer, Receiver, bound};
use crate::source::Memory;
use crate::{options, sender, set, status, until, webhook};

#[tokio::test]
async fn every_change_arrives_once_in_order_in_signed_requests_on_one_connection() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(7));
    let mut receiver = Receiver::start().await;
    let webhooks = sender(folder.path(), &source, options());
    let webhook = webhook(&receiver.url);
    set(&webhooks, vec![webhook.clone()]).await;
    source.add(250);
    let mut all = Vec::new();
    while all.last() != Some(&257) {
        let request = receiver.next().await;
        assert_eq!(request.line, "POST /in?x=1 HTTP/1.1");
        assert_eq!(request.header("content-type"), "application/json");
        let changes = request.changes();
        assert!(changes.len() <= 100);
        let (first, last) = (changes[0], changes[changes.len() - 1]);
        let id = request.header("webhook-id").to_owned();
        assert!(id.starts_with(&format!("{first}-0_{last}-0_")), "{id}");
        let timestamp: u64 = request.header("webhook-timestamp").parse().unwrap();
        let signature = webhook.secret.sign(&id, timestamp, &request.body);
        assert_eq!(request.header("webhook-signature"), signature);
        assert_eq!(
            (&request.json()["type"], &request.json()["webhook"]),
            (&"changes".into(), &"search".into())
        );
        all.extend(changes);
    }
    // A new webhook begins with the next change.
    assert_eq!(all, (8..=257).collect::<Vec<_>>());
    assert_eq!(receiver.connections.load(Ordering::Relaxed), 1);
    until(&webhooks, |status| status.changes == 250 && status.pending_since_ms.is_none()).await;
}

#[tokio::test]
async fn after_every_kind_of_failure_the_same_changes_are_sent_again_in_order() {
    let text = |text: &str| Answer::Text(text.to_owned());
    let last = |text: &str| Answer::Last(text.to_owned());
    let target = Receiver::start().await;
    let to = format!("HTTP/1.1 307 x\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", target.url);
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(100 << 10));
    for (answer, error) in [
        (Answer::status(500), "answered 500"),
        (Answer::status(503), "answered 503"),
        (Answer::status(404), "answered 404"),
        (text(&to), "redirects are not followed"),
        (text(&to.replace("307", "301")), "redirects are not followed"),
        (last(""), "ended without a response"),
        (last("HTTP/1.1 200 OK\r\ncontent-le"), "ended without a response"),
        (last("HTTP/1.1 2"), "ended without a response"),
        (text("SMTP ready\r\n\r\n"), "ended without a response"),
        (text(&long), "ended without a response"),
        (Answer::Nothing, "no response within"),
    ] {
        let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
        let mut receiver = Receiver::start().await;
        // The pauses are long enough to see the error.
        let response_timeout = match answer {
            Answer::Nothing => Duration::from_millis(20),
            _ => crate::PATIENCE,
        };
        let pause = crate::PATIENCE * 10;
        let options = Options { response_timeout, pause_min: pause, pause_max: pause, ..options() };
        let webhooks = sender(folder.path(), &source, options);
        set(&webhooks, vec![webhook(&receiver.url)]).await;
        receiver.answer([answer.clone()]);
        source.add(3);
        until(&webhooks, |status| status.error.is_some()).await;
        let found = status(&webhooks);
        let (_, found_error) = found.error.clone().unwrap();
        assert!(found_error.contains(error), "{answer:?}: {found_error}");
        assert_eq!((found.after.as_deref(), found.changes), (Some("0"), 0), "{answer:?}");
        // The position is unchanged, so a restart sends the same changes again.
        webhooks.stop().await;
        let options = Options { response_timeout: crate::PATIENCE, ..options };
        let webhooks = sender(folder.path(), &source, options);
        set(&webhooks, vec![webhook(&receiver.url)]).await;
        let (first, second) = (receiver.next().await.changes(), receiver.next().await.changes());
        assert_eq!(second[0], first[0], "{answer:?}");
        let mut all = second;
        while all.last() != Some(&3) {
            all.extend(receiver.next().await.changes());
        }
        assert_eq!(all, [1, 2, 3], "{answer:?}");
        until(&webhooks, |status| status.error.is_none() && status.changes == 3).await;
    }
    assert_eq!(target.waiting(), 0, "no redirect is followed");
}

#[tokio::test]
async fn a_response_whose_body_is_cut_or_endless_counts_by_its_status() {
    let endless =
        format!("HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n{}", "x".repeat(1 << 20));
    for answer in [
        Answer::Last("HTTP/1.1 202 OK\r\ncontent-length: 100\r\n\r\nok".to_owned()),
        Answer::Text(endless),
        Answer::Text("HTTP/1.1 204 No Content\r\n\r\n".to_owned()),
    ] {
        let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
        let mut receiver = Receiver::start().await;
        let webhooks = sender(folder.path(), &source, options());
        set(&webhooks, vec![webhook(&receiver.url)]).await;
        receiver.answer([answer.clone()]);
        source.add(1);
        assert_eq!(receiver.until(1).await, [[1]]);
        until(&webhooks, |status| status.changes == 1).await;
        source.add(1);
        assert_eq!(receiver.until(2).await, [[2]], "{answer:?}");
        assert_eq!(status(&webhooks).failed, 0);
    }
}

#[tokio::test]
async fn a_receiver_that_is_down_or_asks_for_patience_is_waited_for_and_nothing_is_given_up() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let socket = bound();
    let url = format!("http://{}/in", socket.local_addr().unwrap());
    let options = Options { give_up_after: Duration::ZERO, ..options() };
    let webhooks = sender(folder.path(), &source, options);
    set(&webhooks, vec![webhook(&url)]).await;
    source.add(3);
    until(&webhooks, |status| status.failed > 20).await;
    assert!(status(&webhooks).error.unwrap().1.contains("cannot connect"));
    let mut receiver = Receiver::start_on(socket, None);
    receiver.answer(vec![Answer::status(503); 10].into_iter().chain(vec![Answer::status(429); 10]));
    for _ in 0..20 {
        assert_eq!(receiver.next().await.changes(), [1, 2, 3]);
    }
    assert_eq!(receiver.until(3).await, [[1, 2, 3]]);
    until(&webhooks, |status| status.error.is_none()).await;
    assert_eq!(status(&webhooks).dead, []);
}

#[tokio::test]
async fn a_change_that_is_refused_is_isolated_given_up_and_sent_again_when_asked() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    let options = Options { give_up_after: Duration::ZERO, ..options() };
    let webhooks = sender(folder.path(), &source, options);
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    let refused = [17, 18, 61, 120];
    receiver.decide(move |request| {
        let is_refused = request.changes().iter().any(|change| refused.contains(change));
        Answer::status(if is_refused { 422 } else { 200 })
    });
    source.add(120);
    until(&webhooks, |status| status.dead.len() == refused.len()).await;
    let dead = status(&webhooks).dead;
    let positions: Vec<_> = dead.iter().map(|letter| letter.position.clone()).collect();
    assert_eq!(positions, ["17-0", "18-0", "61-0", "120-0"]);
    assert!(dead.iter().all(|letter| letter.error.contains("422") && !letter.is_gap));
    until(&webhooks, |status| status.after.as_deref() == Some("120")).await;
    let mut accepted = Vec::new();
    while receiver.waiting() > 0 {
        let changes = receiver.next().await.changes();
        if !changes.iter().any(|change| refused.contains(change)) {
            accepted.extend(changes);
        }
    }
    let rest: Vec<_> = (1..=120).filter(|change| !refused.contains(change)).collect();
    assert_eq!(accepted, rest, "all others, once and in order");

    // They survive a restart, and those that are refused again stay.
    webhooks.stop().await;
    let webhooks = sender(folder.path(), &source, options);
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    assert_eq!(status(&webhooks).dead, dead);
    receiver.decide(|request| Answer::status(if request.changes() == [61] { 400 } else { 200 }));
    webhooks.act("search", Action::SendDeadLetters).await.unwrap();
    webhooks.act("other", Action::SendDeadLetters).await.unwrap_err();
    until(&webhooks, |status| status.dead.len() == 1).await;
    assert_eq!(status(&webhooks).dead[0].position, "61-0");
    for change in refused {
        assert_eq!(receiver.next().await.changes(), [change]);
    }
    until(&webhooks, |status| status.dead[0].error.contains("400")).await;
    webhooks.act("search", Action::SendDeadLetters).await.unwrap();
    // One that is no longer kept cannot be sent.
    source.keep_from(100);
    webhooks.act("search", Action::SendDeadLetters).await.unwrap();
    until(&webhooks, |status| status.dead.is_empty()).await;
}

#[tokio::test]
async fn changes_that_are_no_longer_kept_are_a_gap_and_delivery_continues() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    let webhooks = sender(folder.path(), &source, options());
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    source.add(2);
    receiver.until(2).await;
    until(&webhooks, |status| status.changes == 2).await;
    webhooks.stop().await;
    source.add(98);
    source.keep_from(50);
    let webhooks = sender(folder.path(), &source, options());
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    assert_eq!(receiver.until(100).await.concat(), (50..=100).collect::<Vec<_>>());
    until(&webhooks, |status| status.dead.len() == 1).await;
    let gap = &status(&webhooks).dead[0];
    assert_eq!((gap.position.as_str(), gap.is_gap), ("2", true));
    webhooks.act("search", Action::DropDeadLetters).await.unwrap();
    until(&webhooks, |status| status.dead.is_empty()).await;
}

#[tokio::test]
async fn a_source_that_fails_is_asked_again() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    let webhooks = sender(folder.path(), &source, options());
    source.set_off(true);
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    until(&webhooks, |status| status.error.is_some()).await;
    assert_eq!(status(&webhooks).error.unwrap().1, "the source is off");
    source.set_off(false);
    source.add(1);
    receiver.until(1).await;
}

#[tokio::test]
async fn a_restart_or_another_setting_continues_after_the_last_accepted_change() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    let mut webhooks = sender(folder.path(), &source, options());
    let mut configured = webhook(&receiver.url);
    set(&webhooks, vec![configured.clone()]).await;
    let mut last = 0;
    for round in 0..10 {
        source.add(5);
        last += 5;
        assert_eq!(receiver.until(last).await.concat(), (last - 4..=last).collect::<Vec<_>>());
        until(&webhooks, |status| status.pending_since_ms.is_none()).await;
        match round % 3 {
            0 => {
                webhooks.stop().await;
                webhooks = sender(folder.path(), &source, options());
            }
            1 => configured.secret = Secret::generate().unwrap(),
            _ => set(&webhooks, vec![]).await,
        }
        set(&webhooks, vec![configured.clone()]).await;
    }
    // Replays move the position.
    webhooks.act("search", Action::SendAfter("40".to_owned())).await.unwrap();
    assert_eq!(receiver.until(50).await.concat(), (41..=50).collect::<Vec<_>>());
    webhooks.act("search", Action::SendOldest).await.unwrap();
    assert_eq!(receiver.until(50).await.concat(), (1..=50).collect::<Vec<_>>());
    // A damaged file loses nothing.
    webhooks.stop().await;
    std::fs::write(folder.path().join("webhooks/search.json"), "nonsense").unwrap();
    let webhooks = sender(folder.path(), &source, options());
    set(&webhooks, vec![configured]).await;
    assert_eq!(receiver.until(50).await.concat(), (1..=50).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_private_address_is_not_called_without_permission() {
    for url in
        ["http://127.0.0.1", "https://localhost", "http://[::1]", "http://0x7f.1", "http://0"]
    {
        let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
        let receiver = Receiver::start().await;
        let port = receiver.url.rsplit(':').next().unwrap();
        let webhooks = sender(folder.path(), &source, options());
        let mut configured = webhook(&format!("{url}:{port}"));
        configured.allow_private = false;
        set(&webhooks, vec![configured]).await;
        source.add(1);
        until(&webhooks, |status| status.failed > 2).await;
        let error = status(&webhooks).error.unwrap().1;
        let is_refused =
            error.contains("needs --allow-private") || error.contains("not an address");
        assert!(is_refused || error.contains("looked up"), "{url}: {error}");
        assert_eq!(receiver.connections.load(Ordering::Relaxed), 0, "{url}");
    }
}

#[tokio::test]
async fn changes_that_cannot_be_read_are_skipped_once_and_those_around_them_arrive_once() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    let webhooks = sender(folder.path(), &source, options());
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    source.set_hole(20, 30);
    source.add(40);
    let expect: Vec<_> = (1..=20).chain(31..=40).collect();
    assert_eq!(receiver.until(40).await.concat(), expect);
    until(&webhooks, |status| status.changes == 30 && status.error.is_none()).await;
    let dead = status(&webhooks).dead;
    assert_eq!((dead.len(), dead[0].is_gap, dead[0].to.as_deref()), (1, true, Some("30")));
    // Only a discard forgets it.
    webhooks.act("search", Action::SendDeadLetters).await.unwrap();
    assert_eq!(status(&webhooks).dead, dead);
    webhooks.act("search", Action::DropDeadLetters).await.unwrap();
    assert_eq!(status(&webhooks).dead, []);
}

#[tokio::test]
async fn a_position_of_another_history_is_recognized_and_everything_is_sent() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    for (is_replaced, expect) in [(false, 6..=8), (true, 1..=10)] {
        let webhooks = sender(folder.path(), &source, options());
        set(&webhooks, vec![webhook(&receiver.url)]).await;
        if !is_replaced {
            source.add(5);
            receiver.until(5).await;
            until(&webhooks, |status| status.changes == 5).await;
        }
        webhooks.stop().await;
        // The feed has other changes at the same positions, and is longer than before.
        if is_replaced {
            source.replace();
        }
        source.add(*expect.end() - if is_replaced { 8 } else { 5 });
        let webhooks = sender(folder.path(), &source, options());
        set(&webhooks, vec![webhook(&receiver.url)]).await;
        let last = *expect.end();
        assert_eq!(receiver.until(last).await.concat(), expect.collect::<Vec<_>>());
        until(&webhooks, |status| status.pending_since_ms.is_none()).await;
        assert_eq!(status(&webhooks).dead.len(), usize::from(is_replaced));
        webhooks.stop().await;
    }
}

#[tokio::test]
async fn only_time_of_consecutive_refusals_counts_before_a_change_is_given_up() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let receiver = Receiver::start().await;
    // Two refusals in a row are more than a nanosecond apart.
    let options = Options { give_up_after: Duration::from_nanos(1), ..options() };
    let webhooks = sender(folder.path(), &source, options);
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    let codes = [500, 503, 500, 429, 500, 502, 500, 504, 500, 408];
    receiver.answer(codes.map(Answer::status));
    source.add(1);
    until(&webhooks, |status| status.changes == 1).await;
    let found = status(&webhooks);
    assert_eq!((found.failed, found.dead), (10, vec![]));
    receiver.answer([500, 500].map(Answer::status));
    source.add(1);
    until(&webhooks, |status| status.dead.len() == 1).await;
}

#[tokio::test]
async fn an_action_is_done_when_it_is_answered_even_while_a_request_hangs() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    let webhooks = sender(folder.path(), &source, options());
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    source.add(5);
    let first = receiver.next().await;
    until(&webhooks, |status| status.after.as_deref() == Some("5")).await;
    receiver.answer([Answer::Nothing]);
    source.add(1);
    receiver.until(6).await;
    let skipping = webhooks.act("search", Action::SendAfter("6".to_owned())).await;
    assert!(matches!(skipping, Err(ActionError::Ahead)), "{skipping:?}");
    webhooks.act("search", Action::SendAfter("0".to_owned())).await.unwrap();
    assert_eq!(status(&webhooks).after.as_deref(), Some("0"));
    let unknown = webhooks.act("other", Action::SendOldest).await;
    assert!(matches!(unknown, Err(ActionError::Unknown)), "{unknown:?}");
    // The replayed messages have new ids, so that a receiver does not skip them.
    webhooks.act("search", Action::SendOldest).await.unwrap();
    assert_eq!(status(&webhooks).after, None);
    assert!(receiver.next().await.header("webhook-id") != first.header("webhook-id"));
}

#[tokio::test]
async fn a_panic_is_counted_and_shown_and_delivery_continues() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    let webhooks = sender(folder.path(), &source, options());
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    source.add(3);
    receiver.until(3).await;
    until(&webhooks, |status| status.changes == 3).await;
    source.set_panicking(true);
    source.add(2);
    until(&webhooks, |status| status.panics > 2).await;
    assert!(status(&webhooks).error.unwrap().1.contains("panicked"));
    source.set_panicking(false);
    assert_eq!(receiver.until(5).await.concat(), [4, 5]);
    until(&webhooks, |status| status.error.is_none()).await;
    assert_eq!((status(&webhooks).after.as_deref(), status(&webhooks).dead.len()), (Some("5"), 0));
    source.set_panicking(true);
    source.add(1);
    until(&webhooks, |status| status.error.is_some()).await;
    webhooks.stop().await;
}

#[tokio::test]
async fn of_two_loads_at_a_time_the_one_that_reads_last_decides() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let webhooks = sender(folder.path(), &source, options());
    let stored = Mutex::new(vec![webhook("http://127.0.0.1:1/in")]);
    let (resume, resumed) = oneshot::channel();
    let read = || Ok::<_, String>(stored.lock().unwrap().clone());
    let first = webhooks.load(async {
        let webhooks = read();
        resumed.await.unwrap();
        webhooks
    });
    let remove = async {
        stored.lock().unwrap().clear();
        tokio::join!(webhooks.load(async { read() }), async { resume.send(()).unwrap() }).0
    };
    let (first, second) = tokio::join!(biased; first, remove);
    first.unwrap();
    second.unwrap();
    assert_eq!(webhooks.status(), []);
}

#[tokio::test]
async fn a_load_that_fails_changes_nothing_and_is_shown_until_one_succeeds() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let webhooks = sender(folder.path(), &source, options());
    let mut registry = Registry::default();
    registry.register_collector(Box::new(webhooks.metrics()));
    let is_shown = |failed: u32| {
        let mut metrics = String::new();
        encode(&mut metrics, &registry).unwrap();
        metrics.contains(&format!("\nroost_webhooks_failed {failed}\n"))
    };
    set(&webhooks, vec![webhook("http://127.0.0.1:1/in")]).await;
    assert!(is_shown(0));
    let failed = webhooks.load(async { Err("no such file") }).await.unwrap_err();
    assert_eq!(failed.to_string(), "no such file");
    assert_eq!(
        (webhooks.load_error().as_deref(), webhooks.status().len()),
        (Some("no such file"), 1)
    );
    assert!(is_shown(1));
    set(&webhooks, vec![]).await;
    assert_eq!((webhooks.load_error(), webhooks.status().len()), (None, 0));
    assert!(is_shown(0));
    // A load after the stop starts nothing.
    webhooks.stop().await;
    set(&webhooks, vec![webhook("http://127.0.0.1:1/in")]).await;
    assert_eq!(webhooks.status(), []);
}

#[tokio::test]
async fn a_webhook_that_has_read_everything_reads_again_after_the_pace_and_not_before() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    let webhooks = sender(folder.path(), &source, options());
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    webhooks.stop().await;
    source.add(250);
    let before = source.reads();
    let slow = Options { pace: crate::PATIENCE * 10, ..options() };
    let webhooks = sender(folder.path(), &source, slow);
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    // Full pages are read one after another.
    assert_eq!(receiver.until(250).await.concat(), (1..=250).collect::<Vec<_>>());
    until(&webhooks, |status| status.changes == 250).await;
    assert_eq!(source.reads() - before, 3);
    // Another webhook, with a short pace, gets changes meanwhile.
    let (other, mut other_receiver) = (tempfile::tempdir().unwrap(), Receiver::start().await);
    let quick = sender(other.path(), &source, options());
    set(&quick, vec![webhook(&other_receiver.url)]).await;
    for change in 251..=270 {
        source.add(1);
        other_receiver.until(change).await;
    }
    assert_eq!((status(&webhooks).changes, receiver.waiting()), (250, 0));
    // An action does not wait.
    webhooks.act("search", Action::SendAfter("240".to_owned())).await.unwrap();
    assert_eq!(status(&webhooks).after.as_deref(), Some("240"));
}

#[tokio::test]
async fn dead_letters_that_are_sent_again_delay_nothing_and_stop_when_the_receiver_is_down() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Memory::new(0));
    let mut receiver = Receiver::start().await;
    let options = Options { give_up_after: Duration::ZERO, ..options() };
    let webhooks = sender(folder.path(), &source, options);
    set(&webhooks, vec![webhook(&receiver.url)]).await;
    receiver.decide(|_| Answer::status(422));
    source.add(3);
    until(&webhooks, |status| status.dead.len() == 3).await;
    while receiver.waiting() > 0 {
        receiver.next().await;
    }
    // The first of them finds the receiver down; the others are not tried, and new changes arrive.
    receiver.decide(|request| Answer::status(if request.changes()[0] <= 3 { 503 } else { 200 }));
    webhooks.act("search", Action::SendDeadLetters).await.unwrap();
    assert_eq!(receiver.next().await.changes(), [1]);
    until(&webhooks, |status| status.dead[0].error.contains("503")).await;
    source.add(1);
    assert_eq!(receiver.next().await.changes(), [4]);
    until(&webhooks, |status| status.changes == 1).await;
    let dead = status(&webhooks).dead;
    assert_eq!((dead.len(), dead[0].position.as_str()), (3, "1-0"));
    assert!(dead[1..].iter().all(|letter| letter.error.contains("422")), "{dead:?}");
    // A discard while one is on its way ends all.
    receiver.answer([Answer::Nothing]);
    webhooks.act("search", Action::SendDeadLetters).await.unwrap();
    assert_eq!(receiver.next().await.changes(), [1]);
    webhooks.act("search", Action::DropDeadLetters).await.unwrap();
    source.add(1);
    assert_eq!(receiver.next().await.changes(), [5]);
    assert_eq!(status(&webhooks).dead, []);
}
