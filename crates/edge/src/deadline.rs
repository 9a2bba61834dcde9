//! Deadlines without timers.
//!
//! A connection has a deadline for the head of each request, and meets almost all of them. Adding each deadline to the
//! runtime's timer wheel and removing it again would take longer than parsing the head. So a deadline only compares
//! clocks when it is polled, and a missed deadline is noticed at the next poll. The caller must poll the task
//! regularly.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

/// Timer for hyper whose deadlines only compare clocks when they are polled.
pub(crate) struct PolledTimer;

struct Deadline(Instant);

impl Timer for PolledTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline(deadline))
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if PolledTimer.now() >= self.0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Sleep for Deadline {}
