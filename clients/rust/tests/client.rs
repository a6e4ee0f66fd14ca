//! The client by itself, with the real service.

mod support;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{until, warnings, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_limiter::{hour, rate, Ask, ErrorCode, LimitAsk, OnFailure, Source, Weir};

const PER_USER: &str = "rules:\n  - { name: per-user, key: user, limit: 100/h }\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_at_once_are_answered_each_by_itself() {
    let service = Service::start(PER_USER);
    let deadline = Duration::from_secs(20);
    let weir = Weir::builder().servers([service.address()]).deadline(deadline).build().unwrap();
    let tasks: Vec<_> = (0..1000_u64)
        .map(|number| {
            let weir = weir.clone();
            tokio::spawn(async move {
                // A cost that tells the answers apart.
                let cost = number % 90 + 1;
                let ask = Ask::new().user(&number.to_string()).cost(cost);
                let decision = weir.check(&ask).await;
                (decision.source, decision.remaining, 100 - cost)
            })
        })
        .collect();
    for task in tasks {
        let (source, remaining, expected) = task.await.unwrap();
        assert_eq!((source, remaining), (Source::Memory, expected));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn questions_that_are_given_up_do_not_confuse_the_others() {
    let service = Service::start(PER_USER);
    let deadline = Duration::from_secs(20);
    let weir = Weir::builder().servers([service.address()]).deadline(deadline).build().unwrap();
    // Fewer than may be under way, even if none were answered.
    let tasks: Vec<_> = (0..20_u64)
        .map(|number| {
            let weir = weir.clone();
            tokio::spawn(async move {
                for turn in 0..50_u64 {
                    let user = format!("{number}-{turn}");
                    let ask = Ask::new().user(&user).cost(number % 90 + 1);
                    let patience = Duration::from_micros((number * 7 + turn * 13) % 300);
                    if let Ok(decision) = tokio::time::timeout(patience, weir.check(&ask)).await {
                        assert_eq!(decision.source, Source::Memory);
                        assert_eq!(decision.remaining, 100 - (number % 90 + 1));
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let ask = Ask::new().user("last").cost(7);
    assert_eq!(weir.check(&ask).await.remaining, 93);
}

#[test]
fn a_client_outlives_the_runtime_it_was_used_on() {
    let service = Service::start(PER_USER);
    let weir = Weir::connect([service.address()]).unwrap();
    for expected in [99, 98, 97] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let decision = runtime.block_on(weir.check(&Ask::new().user("ann")));
        assert_eq!((decision.source, decision.remaining), (Source::Memory, expected));
    }
}

#[test]
fn outside_of_a_runtime_the_failure_mode_decides() {
    let weir = Weir::builder().on_failure(OnFailure::Closed).build().unwrap();
    let mut asked = Box::pin(async move { weir.check(&Ask::new()).await });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match asked.as_mut().poll(&mut context) {
        std::task::Poll::Ready(decision) => assert_eq!(decision.source, Source::Closed),
        std::task::Poll::Pending => panic!("nobody would ever wake it"),
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_made_anew_and_nobody_hears_of_it() {
    let (_guard, told) = warnings();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (closed, mut is_closed) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            // One answer for each connection.
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(b"*2\r\n$7\r\nallowed\r\n:1\r\n").await.unwrap();
            drop(stream);
            closed.send(()).await.unwrap();
        }
    });
    let weir = Weir::builder().servers([address]).on_failure(OnFailure::Closed).build().unwrap();
    for _ in 0..3 {
        assert_ne!(weir.check(&Ask::new().user("ann")).await.source, Source::Closed);
        is_closed.recv().await.unwrap();
        // For the event to be seen.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(told.lock().unwrap().is_empty(), "{told:?}");
}

#[tokio::test]
async fn a_restart_that_nobody_asked_during_is_seen_by_nobody() {
    let (_guard, told) = warnings();
    let mut service = Service::start(PER_USER);
    let weir = Weir::connect([service.address()]).unwrap();
    assert_eq!(weir.check(&Ask::new().user("ann")).await.source, Source::Memory);
    service.kill();
    service.restart();
    assert_eq!(weir.check(&Ask::new().user("ann")).await.source, Source::Memory);
    assert!(told.lock().unwrap().is_empty(), "{told:?}");
}

#[tokio::test]
async fn a_loop_that_was_held_up_does_not_look_like_a_time_out() {
    let service = Service::start(PER_USER);
    let weir = Weir::builder()
        .servers([service.address()])
        .deadline(Duration::from_millis(50))
        .on_failure(OnFailure::Closed)
        .build()
        .unwrap();
    let ask = Ask::new().user("ann");
    assert_eq!(weir.check(&ask).await.source, Source::Memory);
    for _ in 0..5 {
        let hold_up = async { std::thread::sleep(Duration::from_millis(150)) };
        let (decision, ()) = tokio::join!(weir.check(&ask), hold_up);
        assert_eq!(decision.source, Source::Memory);
    }
}

#[tokio::test]
async fn one_who_is_not_polled_does_not_keep_the_others_waiting() {
    let service = Service::start(PER_USER);
    let weir = Weir::builder()
        .servers([service.address()])
        .deadline(Duration::from_secs(5))
        .on_failure(OnFailure::Closed)
        .build()
        .unwrap();
    let ask = Ask::new().user("ann");
    weir.check(&ask).await;
    let mut held = Box::pin(weir.check(&ask));
    // It would read for all, but for being polled only this once.
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(held.as_mut().poll(cx))).await;
    assert!(polled.is_pending());
    let start = Instant::now();
    for _ in 0..3 {
        assert_eq!(weir.check(&ask).await.source, Source::Memory);
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(held.await.source, Source::Memory);
}

#[tokio::test]
async fn more_than_a_connection_takes_are_decided_here_at_once() {
    const ALL: usize = 17_000;
    const MOST: usize = 16 * 1024;
    let service = Service::start(PER_USER);
    let weir = Weir::builder()
        .servers([service.address()])
        .deadline(Duration::from_secs(10))
        .on_failure(OnFailure::Closed)
        .build()
        .unwrap();
    weir.check(&Ask::new().user("ann")).await;
    service.signal("-STOP");
    let closed = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..ALL)
        .map(|number| {
            let (weir, closed) = (weir.clone(), closed.clone());
            tokio::spawn(async move {
                let decision = weir.check(&Ask::new().user(&number.to_string())).await;
                closed.fetch_add(usize::from(decision.source == Source::Closed), Ordering::SeqCst);
            })
        })
        .collect();
    // At once, while nobody answers the others.
    while closed.load(Ordering::SeqCst) < ALL - MOST {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    service.signal("-CONT");
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(closed.load(Ordering::SeqCst), ALL - MOST);
}

#[tokio::test]
async fn what_is_settled_goes_to_the_service_that_has_it() {
    let mut first = Service::start(PER_USER);
    let second = Service::start(PER_USER);
    let weir = Weir::connect([first.address(), second.address()]).unwrap();
    first.kill();
    let held = weir.reserve(&Ask::new().user("ann").cost(10)).await;
    let reservation = held.reservation.expect("the second gave one");
    first.restart();
    // Until the first is asked again.
    until(|| async { weir.peek(&Ask::new().user("ann")).await.remaining == 100 }).await;
    let settled = weir.commit(&reservation, Some(4)).await.unwrap();
    assert_eq!(settled.remaining, 96);
    let again = weir.commit(&reservation, None).await.unwrap_err();
    assert_eq!(again.code(), ErrorCode::NotFound);
}

#[tokio::test]
async fn buckets_here_take_over_warm_and_share() {
    let mut service = Service::start("rules: []\n");
    let weir = Weir::builder()
        .servers([service.address()])
        .on_failure(OnFailure::Static)
        .share(2)
        .build()
        .unwrap();
    let limit = rate(6).per(hour);
    let ask = LimitAsk::new("ann", &limit);
    assert_eq!(weir.limit(&ask).await.source, Source::Memory);
    service.kill();
    let mut allowed = Vec::new();
    for _ in 0..3 {
        let decision = weir.limit(&ask).await;
        assert_eq!(decision.source, Source::Fallback);
        allowed.push(decision.allowed);
    }
    assert_eq!(allowed, [true, true, false]);
}

/// A service that answers in pieces, with a pause in each answer.
#[tokio::test]
async fn answers_in_pieces_are_put_together() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 65536];
        while stream.read(&mut buffer).await.unwrap() > 0 {
            for piece in ["*4\r\n$7\r\nallow", "ed\r\n:1\r", "\n$9\r\nremaining\r\n:4", "2\r\n"] {
                stream.write_all(piece.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    });
    let weir = Weir::connect([address]).unwrap();
    for _ in 0..3 {
        assert_eq!(weir.check(&Ask::new()).await.remaining, 42);
    }
}

#[tokio::test]
async fn a_program_that_was_held_up_does_not_take_the_service_for_one_that_hangs() {
    let (_guard, told) = warnings();
    let (first, second) = (Service::start(PER_USER), Service::start(PER_USER));
    let weir = Weir::connect([first.address(), second.address()]).unwrap();
    for _ in 0..3 {
        assert_eq!(weir.check(&Ask::new().user("ann")).await.source, Source::Memory);
        let ask = |user: &'static str| {
            let weir = weir.clone();
            tokio::spawn(async move { weir.check(&Ask::new().user(user)).await })
        };
        // What comes second has not left yet when nothing else happens for a while.
        let asked = [ask("bob"), ask("cid"), ask("dan")];
        let given_up = ask("eve");
        tokio::task::yield_now().await;
        given_up.abort();
        let busy = tokio::spawn(async { std::thread::sleep(Duration::from_millis(400)) });
        for answer in asked {
            assert_eq!(answer.await.unwrap().source, Source::Memory);
        }
        busy.await.unwrap();
    }
    assert_eq!(*told.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn nobody_waits_for_a_question_that_took_over_reading_and_is_not_polled_any_more() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = b"*2\r\n$7\r\nallowed\r\n:1\r\n";
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
        stream.write_all(&answer.repeat(2)).await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let deadline = Duration::from_secs(5);
    let weir = Weir::builder().servers([address]).deadline(deadline).build().unwrap();
    let start = Instant::now();
    let asking = weir.clone();
    let first = tokio::spawn(async move { asking.check(&Ask::new().user("ann")).await });
    tokio::time::sleep(Duration::from_millis(2)).await;
    let ask = Ask::new().user("bob");
    let mut second = std::pin::pin!(weir.check(&ask));
    assert!(tokio::time::timeout(Duration::from_millis(20), &mut second).await.is_err());
    assert!(first.await.unwrap().allowed);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert!(second.await.allowed);
}

#[tokio::test]
async fn names_that_are_long_are_told_apart_at_their_end_too() {
    let mut service = Service::start(PER_USER);
    let weir = Weir::builder()
        .servers([service.address()])
        .on_failure(OnFailure::Static)
        .static_limit(rate(100).per(hour))
        .build()
        .unwrap();
    let (ann, bob) = ("x".repeat(8000) + "ann", "x".repeat(8000) + "bob");
    let limit = rate(100).per(hour);
    for left in [99, 98, 97] {
        if left == 97 {
            service.kill();
        }
        for name in [&ann, &bob] {
            assert_eq!(weir.check(&Ask::new().user(name)).await.remaining, left);
            assert_eq!(weir.limit(&LimitAsk::new(name, &limit)).await.remaining, left);
        }
    }
}

#[test]
fn a_connection_that_was_closed_while_the_runtime_stood_still_is_made_anew() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (closed, is_closed) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"*2\r\n$7\r\nallowed\r\n:0\r\n");
            // Some time after the answer.
            std::thread::sleep(Duration::from_millis(50));
            drop(stream);
            let _ = closed.send(());
        }
    });
    let weir = Weir::connect([address]).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..3 {
        let ask = Ask::new().user("ann");
        assert!(!runtime.block_on(weir.check(&ask)).allowed, "it answers, and denies");
        is_closed.recv().unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// What is done to a question, in some order that is the same each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_becomes_of_questions_those_who_wait_get_their_own_answers() {
    let service = Service::start(PER_USER);
    let deadline = Duration::from_secs(20);
    let weir = Weir::builder().servers([service.address()]).deadline(deadline).build().unwrap();
    let tasks: Vec<_> = (0..32_u64)
        .map(|number| {
            let weir = weir.clone();
            tokio::spawn(async move {
                let mut held = Vec::new();
                let mut chance = number * 0x9e37_79b9 + 1;
                for turn in 0..60_u64 {
                    chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let weir = weir.clone();
                    let cost = chance >> 33 & 63;
                    let user = format!("{number}-{turn}");
                    let asking = async move {
                        let decision = weir.check(&Ask::new().user(&user).cost(cost)).await;
                        assert_eq!(
                            (decision.source, decision.remaining),
                            (Source::Memory, 100 - cost)
                        );
                    };
                    let mut asking = Box::pin(asking);
                    let polls = match chance >> 40 & 7 {
                        // To its end.
                        0..=3 => usize::MAX,
                        polls => usize::try_from(polls - 4).unwrap(),
                    };
                    let mut polled = 0;
                    std::future::poll_fn(|cx| {
                        if polled == polls || asking.as_mut().poll(cx).is_ready() {
                            return std::task::Poll::Ready(());
                        }
                        polled += 1;
                        std::task::Poll::Pending
                    })
                    .await;
                    // Given up, or kept and not polled for a while.
                    if polls != usize::MAX && polled == polls && chance >> 50 & 1 == 1 {
                        held.push(asking);
                    }
                    if held.len() > 3 {
                        drop(held.remove(0));
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(15), task).await.unwrap().unwrap();
    }
    let last = weir.check(&Ask::new().user("last")).await;
    assert_eq!((last.source, last.remaining), (Source::Memory, 99));
}

#[tokio::test]
async fn a_service_that_was_slow_to_one_who_has_gone_is_looked_for_at_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (hanging, _) = listener.accept().await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        while let Ok(1..) = stream.read(&mut buffer).await {
            let ping = buffer.starts_with(b"*1\r\n$4\r\nPING");
            let denied = &b"*2\r\n$7\r\nallowed\r\n:0\r\n"[..];
            stream.write_all(if ping { b"+PONG\r\n" } else { denied }).await.unwrap();
        }
        drop(hanging);
    });
    let deadline = Duration::from_millis(100);
    let weir = Weir::builder().servers([address]).deadline(deadline).build().unwrap();
    let ask = Ask::new().user("ann");
    assert!(tokio::time::timeout(deadline / 4, weir.check(&ask)).await.is_err());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!weir.check(&ask).await.allowed, "it answers, and denies");
}
