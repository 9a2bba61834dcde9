//! Timer with a precision of some microseconds if the operating system has such a timer, otherwise of a millisecond.

use std::io;

use tokio::time::Instant;

/// Longest wait for which no timer is used.
#[cfg(target_os = "linux")]
const AT_ONCE: std::time::Duration = std::time::Duration::from_micros(5);

/// A timer. A precise timer belongs to the runtime in which it was created.
pub(super) enum Timer {
    /// Timer of the runtime, which has a resolution of a millisecond and follows the clock of a test.
    #[cfg(any(test, not(target_os = "linux")))]
    Ticking,
    /// Timer of `timerfd_create(2)`: a file that becomes readable at the set time, as a pipe does when it has data. The
    /// runtime's type for pipes can therefore wrap it.
    #[cfg(target_os = "linux")]
    Precise(tokio::net::unix::pipe::Receiver),
}

impl Timer {
    /// Creates the most precise timer of this system. Must be called in a runtime.
    #[cfg(target_os = "linux")]
    pub(super) fn precise() -> io::Result<Timer> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Timer::Precise(tokio::net::unix::pipe::Receiver::from_file_unchecked(timer.into())?))
    }

    /// Creates the most precise timer of this system.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn precise() -> io::Result<Timer> {
        Ok(Timer::Ticking)
    }

    /// Returns at `moment`, or at once if it has passed.
    pub(super) async fn until(&mut self, moment: Instant) -> io::Result<()> {
        match self {
            #[cfg(any(test, not(target_os = "linux")))]
            Timer::Ticking => {
                // With this timer, even a wait for a past time takes a millisecond.
                if moment > Instant::now() {
                    tokio::time::sleep_until(moment).await;
                }
                Ok(())
            }
            #[cfg(target_os = "linux")]
            Timer::Precise(timer) => {
                use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
                let left = moment.saturating_duration_since(Instant::now());
                if left < AT_ONCE {
                    return Ok(());
                }
                let once = Timespec { tv_sec: 0, tv_nsec: 0 };
                let Ok(it_value) = Timespec::try_from(left) else {
                    unreachable!("no run is longer than 292 thousand million years")
                };
                let time = Itimerspec { it_interval: once, it_value };
                timerfd_settime(&*timer, TimerfdTimerFlags::empty(), &time)?;
                let mut rung = [0; size_of::<u64>()];
                loop {
                    timer.readable().await?;
                    match timer.try_read(&mut rung) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        read => break read.map(drop),
                    }
                }
            }
        }
    }
}
