//! What interfaces carried this month, and its file.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::state;

/// Bytes of interfaces, both directions together.
pub(super) type Bytes = BTreeMap<String, u64>;

/// What interfaces carried in one month.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ledger {
    /// For example `2026-11`, UTC.
    month: String,
    pub used: Bytes,
    /// What their counters were when last looked at.
    #[serde(skip)]
    seen: Option<Bytes>,
}

impl Ledger {
    /// What was kept in `file` of this month. One that cannot be read or understood counts as none.
    pub fn load(file: &Path, now: SystemTime) -> Self {
        match state::load::<Self>(file) {
            Ok(ledger) if ledger.month < month(now) => Self::default(), // of a month that is over
            Ok(ledger) => {
                ledger.warn_of_the_future(file, now);
                ledger
            }
            Err(error) => {
                warn!("{}: {error}; quotas are counted from 0", file.display());
                Self::default()
            }
        }
    }

    fn warn_of_the_future(&self, file: &Path, now: SystemTime) {
        if self.month > month(now) {
            let (file, now) = (file.display(), month(now));
            warn!(
                "{file} is of {}, and now is {now}: it is counted on; if a clock was wrong then, remove it",
                self.month
            );
        }
    }

    /// Replaces `file` at once, or leaves it as it is.
    pub fn store(&self, file: &Path) -> io::Result<()> {
        state::store(file, self)
    }

    /// The counters of all interfaces stand at `seen`: what they grew by counts for those that have a quota. Counters that
    /// are seen first when a daemon starts have counted others' traffic. Whether a month began. One that is
    /// over does not: clocks start in the past where nothing keeps them running.
    pub fn count(&mut self, now: SystemTime, seen: Bytes, has_quota: impl Fn(&str) -> bool) -> bool {
        let month = month(now);
        let began = month > self.month;
        if began {
            (self.month, self.used) = (month, Bytes::new());
        }
        if let Some(before) = self.seen.take() {
            for (name, counter) in seen.iter().filter(|(name, _)| has_quota(name)) {
                // One that is below what it was began anew.
                let start = before.get(name).copied().filter(|start| start <= counter).unwrap_or(0);
                *self.used.entry(name.clone()).or_default() += counter - start;
            }
        }
        self.seen = Some(seen);
        began
    }

    /// What counters say next is not counted, but where they begin.
    pub fn pause(&mut self) {
        self.seen = None;
    }
}

/// `2026-11`, UTC, of the proleptic Gregorian calendar. Its years are counted from March, so that the day of a leap year is the last.
fn month(now: SystemTime) -> String {
    const DAY: u64 = 86_400;
    let days = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs() / DAY;
    // Days since 1 March of the year 0.
    let since = days + 719_468;
    let (era, of_era) = (since / 146_097, since % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    format!("{:04}-{month:02}", era * 400 + year + u64::from(month < 3))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn at(secs: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(secs)
    }

    /// 22 November 2026 and 1 December.
    const NOVEMBER: u64 = 1_795_305_600;
    const DECEMBER: u64 = NOVEMBER + 9 * 86_400;

    fn seen(wwan: u64, eth: u64) -> Bytes {
        [("wwan0".to_owned(), wwan), ("eth0".to_owned(), eth)].into()
    }

    fn used(ledger: &Ledger) -> Vec<u64> {
        ledger.used.values().copied().collect()
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        for (secs, name) in [
            (0, "1970-01"),
            (951_782_399, "2000-02"),   // 28 February 2000, 23:59:59
            (951_868_799, "2000-02"),   // the 29th
            (951_868_800, "2000-03"),   // 1 March
            (4_107_542_399, "2100-02"), // no leap year
            (4_107_542_400, "2100-03"),
            (NOVEMBER, "2026-11"),
            (DECEMBER - 1, "2026-11"),
            (DECEMBER, "2026-12"),
            (1_798_761_600, "2027-01"),
        ] {
            assert_eq!(month(at(secs)), name, "{secs}");
        }
    }

    #[test]
    fn what_counters_grow_by_is_counted_until_the_month_ends() {
        let mut ledger = Ledger::default();
        let mut count = |secs, wwan| {
            ledger.count(at(secs), seen(wwan, 7 * wwan), |name| name == "wwan0");
            used(&ledger)
        };
        assert_eq!(count(NOVEMBER, 1000), [0_u64; 0], "what was before");
        assert_eq!(count(NOVEMBER + 2, 1500), [500]);
        assert_eq!(count(NOVEMBER + 4, 200), [700], "the modem was plugged in again");
        assert_eq!(count(0, 300), [800], "a clock without a battery");
        assert_eq!(count(DECEMBER, 900), [600]);
    }

    #[test]
    fn an_interface_that_comes_later_is_counted_from_its_beginning() {
        let mut ledger = Ledger::default();
        ledger.count(at(NOVEMBER), Bytes::new(), |_| true);
        ledger.count(at(NOVEMBER), seen(10, 20), |_| true);
        assert_eq!(used(&ledger), [20, 10]);
        ledger.pause();
        ledger.count(at(NOVEMBER), seen(1000, 1000), |_| true);
        assert_eq!(used(&ledger), [20, 10]);
    }

    #[test]
    fn a_ledger_is_kept_and_one_that_is_broken_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("quota.json");
        let mut ledger = Ledger::load(&file, at(NOVEMBER));
        ledger.count(at(NOVEMBER), seen(0, 0), |_| true);
        ledger.count(at(NOVEMBER), seen(5, 6), |_| true);
        ledger.store(&file).unwrap();
        assert_eq!(Ledger::load(&file, at(DECEMBER)), Ledger::default(), "a month that is over");
        let mut again = Ledger::load(&file, at(NOVEMBER));
        assert_eq!((used(&again), again.month.as_str()), (vec![6, 5], "2026-11"));
        assert!(!again.count(at(NOVEMBER), seen(100, 100), |_| true));
        assert_eq!(used(&again), [6, 5], "what others carried meanwhile is not counted");
        fs::write(&file, [0xff, 0xfe]).unwrap(); // no text at all
        assert_eq!(Ledger::load(&file, at(NOVEMBER)), Ledger::default());
        assert!(!file.exists() && dir.path().join("quota.broken").exists());
        for broken in ["", "{\"month\":\"2026-11\",\"used\":{\"wwan0\":-1}}", "{\"month\":\"2026-11\",\"us"] {
            fs::write(&file, broken).unwrap();
            assert_eq!(Ledger::load(&file, at(NOVEMBER)), Ledger::default());
            assert_eq!(fs::read_to_string(dir.path().join("quota.broken")).unwrap(), broken);
            assert!(!file.exists());
        }
        assert!(ledger.store(Path::new("/proc/nowhere/quota.json")).is_err());
    }
}
