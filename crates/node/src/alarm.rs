//! A timer of microseconds. The timers of tokio have a resolution of a millisecond, and segments whose time comes within one
//! would leave together: on a path of 100 Mbit/s, eight.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use polypath_wire::{Duration, Instant};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock::Clock;
use crate::watched::watch;

/// Wakes a task at the time asked for last, and perhaps at one asked for before.
pub(crate) struct Alarm {
    timer: AsyncFd<OwnedFd>,
    clock: Clock,
    set_to: Instant,
}

impl Alarm {
    /// One that is not set. Fails where the process or the system has too many open files.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let timer = watch(timer, Interest::READABLE)?;
        Ok(Self { timer, clock, set_to: Instant::ZERO })
    }

    /// The time by its clock.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Has the task of `cx` woken at `due`; `true` if that has passed.
    pub fn poll(&mut self, cx: &mut Context<'_>, due: Instant) -> io::Result<bool> {
        loop {
            let now = self.now();
            if due <= now {
                return Ok(true);
            }
            // One that is set to an earlier time stays: it wakes once for nothing, which costs less than to set it in each round.
            if due < self.set_to || self.set_to <= now {
                let once =
                    Itimerspec { it_interval: Timespec::default(), it_value: timespec(due.since(now)) };
                timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
                self.set_to = due;
            }
            match self.timer.poll_read_ready(cx)? {
                Poll::Ready(mut expired) => expired.clear_ready(), // of an earlier time
                Poll::Pending => return Ok(false),
            }
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    const SECOND: u64 = Duration::from_secs(1).0;
    Timespec { tv_sec: (duration.0 / SECOND) as i64, tv_nsec: (duration.0 % SECOND) as i64 }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const SOON: Duration = Duration::from_millis(2);
    const LATER: Duration = Duration::from_secs(3600);

    fn alarm() -> Alarm {
        Alarm::new(Clock::start()).unwrap()
    }

    /// Asks once for a time so much later.
    async fn ask(alarm: &mut Alarm, later: Duration) {
        let due = alarm.now() + later;
        poll_fn(|cx| Poll::Ready(alarm.poll(cx, due))).await.unwrap();
    }

    /// Waits for this long, and not less. Returns how often it asked.
    async fn wait(alarm: &mut Alarm, later: Duration) -> u32 {
        let (due, mut polls) = (alarm.now() + later, 0);
        let expiry = poll_fn(|cx| {
            polls += 1;
            if alarm.poll(cx, due).unwrap() { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::time::timeout(std::time::Duration::from_secs(30), expiry).await.expect("it never woke");
        assert!(alarm.now() >= due);
        polls
    }

    #[tokio::test]
    async fn a_task_is_woken_at_the_time_asked_for_last_and_not_before() {
        let mut alarm = alarm();
        ask(&mut alarm, LATER).await;
        assert!(wait(&mut alarm, SOON).await <= 2, "once to ask, once when it was time");
    }

    #[tokio::test]
    async fn a_time_that_passed_while_nobody_asked_does_not_wake_early_for_the_next() {
        let mut alarm = alarm();
        ask(&mut alarm, SOON).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        assert!(wait(&mut alarm, SOON).await <= 2);
    }

    #[tokio::test]
    async fn a_time_that_was_put_off_again_and_again_wakes_at_the_last() {
        let mut alarm = alarm();
        for _ in 0..20 {
            ask(&mut alarm, SOON).await;
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(wait(&mut alarm, SOON).await <= 3, "once for the time before");
    }

    #[tokio::test]
    async fn each_of_many_times_in_a_row_wakes() {
        let mut alarm = alarm();
        for microseconds in 1..200 {
            wait(&mut alarm, Duration::from_micros(microseconds)).await;
        }
        for microseconds in 1..1000 {
            ask(&mut alarm, Duration::from_micros(microseconds % 50)).await;
            wait(&mut alarm, Duration::from_micros(100)).await; // the one before expires now or then
        }
    }
}
