//! The report at the end of a transfer.

use std::io::Write;

use polypath_files::{Failed, Transferred, Verdict};
use polypath_wire::hip::Hit;
use serde_json::{Value, json};

use super::bars::Carried;
use crate::failure::{Failure, printed};

/// A transfer that is over.
pub struct Report {
    /// Whether we sent.
    pub sent: bool,
    pub ours: Hit,
    pub peer: Hit,
    pub seconds: f64,
    pub done: Vec<Transferred>,
    pub failed: Vec<Failed>,
    pub carried: Vec<Carried>,
    /// Why the rest was not transferred at all.
    pub error: Option<String>,
}

impl Report {
    /// Bytes that went over the connection.
    fn bytes(&self) -> u64 {
        self.done.iter().map(|file| file.bytes - file.resumed_at.min(file.bytes)).sum()
    }

    /// Prints it, and fails if not every file is stored.
    pub fn finish(&self, json: bool) -> Result<(), Failure> {
        self.print(json)?;
        if self.failed.is_empty() { Ok(()) } else { Err(failure(&self.failed)) }
    }

    pub fn print(&self, json: bool) -> Result<(), Failure> {
        let text = if json { format!("{:#}", self.json()) } else { self.text() };
        printed(writeln!(std::io::stdout(), "{text}"))
    }

    fn text(&self) -> String {
        let mut text: String = self.done.iter().map(line).collect();
        for (n, carried) in self.carried.iter().enumerate() {
            let path = &carried.path;
            let delay = path.measured.delay.map(|d| format!(", {:.1} ms one way", d.as_secs_f64() * 1e3));
            let first = self.bottleneck(carried).filter(|first| *first != n);
            let shared = first
                .map(|first| format!(", one bottleneck with {}", self.carried[first].path.locators))
                .unwrap_or_default();
            let delay = delay.unwrap_or_default();
            text += &format!("{}: {} bytes{delay}{shared}\n", path.locators, carried.bytes);
        }
        let rate = self.bytes() as f64 * 8.0 / self.seconds / 1e6;
        let whom = if self.sent { "encrypted for" } else { "from" };
        text + &format!("{:.2} s, {rate:.1} Mbit/s, {whom} {}", self.seconds, self.peer)
    }

    /// The number of the first path through the bottleneck of `carried`, if the controller tells.
    fn bottleneck(&self, carried: &Carried) -> Option<usize> {
        let of = carried.bottleneck?;
        self.carried.iter().position(|other| other.bottleneck == Some(of))
    }

    fn json(&self) -> Value {
        let path = |carried: &Carried| {
            let path = &carried.path;
            json!({
                "local": path.locators.local,
                "remote": path.locators.remote,
                "bytes": carried.bytes,
                "mtu": path.mtu,
                "delay_us": path.measured.delay.map(|delay| delay.as_micros()),
                "rate_bps": path.measured.bandwidth.map(|rate| rate.0),
                "bottleneck": self.bottleneck(carried),
                "esp_suite": crate::demo::suite_name(path.suite),
                "spi_out": format!("{:08x}", path.outbound),
                "spi_in": format!("{:08x}", path.inbound),
            })
        };
        let (sender, receiver) = if self.sent { (self.ours, self.peer) } else { (self.peer, self.ours) };
        json!({
            "sender_hit": sender,
            "receiver_hit": receiver,
            "seconds": self.seconds,
            "bytes": self.bytes(),
            "goodput_bps": self.bytes() as f64 * 8.0 / self.seconds,
            "files": self.done,
            "failed": self.failed,
            "error": self.error,
            "paths": self.carried.iter().map(path).collect::<Vec<_>>(),
        })
    }
}

/// The line for a stored file.
pub fn line(file: &Transferred) -> String {
    let name = file.path.as_ref().map_or(file.name.clone(), |path| path.display().to_string());
    if file.blake3.is_empty() {
        return format!("{name}: directory\n");
    }
    let resumed = match file.resumed_at {
        0 => String::new(),
        at => format!(", of which {at} were there already"),
    };
    format!("{name}: {} bytes{resumed}, BLAKE3 {}\n", file.bytes, file.blake3)
}

/// What is said of a file that grew.
pub fn grew(name: &str, bytes: u64) -> String {
    format!("{name}: grew while it was sent; the first {bytes} bytes are sent, no more")
}

/// What is said of a file that was written to.
pub fn changed(name: &str) -> String {
    format!("{name}: changed while it was sent; what arrived may be partly old and partly new")
}

/// The error of a transfer in which the files `failed`, at least one, are not stored.
pub fn failure(failed: &[Failed]) -> Failure {
    let first = failed.first().map(|file| format!("{}: {}", file.name, file.why)).unwrap_or_default();
    let more = match failed.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let system = |verdict| matches!(verdict, Verdict::NoSpace | Verdict::Refused | Verdict::Abandoned);
    if failed.iter().any(|file| system(file.verdict)) {
        return Failure::system("not everything is stored", format!("{first}{more}"));
    }
    let failure = Failure::unmet(format!("not everything is stored: {first}{more}"));
    let changed = failed.iter().any(|file| file.verdict == Verdict::Changed);
    if changed { failure.help("send it again") } else { failure }
}

#[cfg(test)]
mod tests {
    use polypath_endpoint::{Locators, PathReport};
    use polypath_hip::Link;
    use polypath_hip::suite::EspSuite;

    use super::*;

    /// A path from `local` that leads through the bottleneck of the path from `first`.
    fn carried(local: &str, first: Option<&str>) -> Carried {
        let locators = |local: &str| Locators {
            local: format!("{local}:10500").parse().unwrap(),
            remote: "10.9.0.2:10500".parse().unwrap(),
        };
        let path = PathReport {
            peer: Hit::default(),
            inner: locators(local),
            locators: locators(local),
            suite: EspSuite::Aes128Gcm,
            inbound: 1,
            outbound: 2,
            up: true,
            answers: true,
            mtu: 1500,
            carries: 1400,
            measured: Link::default(),
            peer_measured: Link::default(),
            rekeyed: 0,
            sealed: 0,
            sent: 0,
            received: 0,
            ecn: true,
            marked: 0,
        };
        Carried { path, bytes: 5, bottleneck: first.map(locators) }
    }

    #[test]
    fn paths_are_named_that_were_found_to_share_a_bottleneck() {
        let [a, b, c] = ["10.1.0.1", "10.2.0.1", "10.3.0.1"];
        let report = Report {
            sent: true,
            ours: Hit::default(),
            peer: Hit::default(),
            seconds: 1.0,
            done: vec![],
            failed: vec![],
            carried: vec![carried(a, Some(c)), carried(b, Some(b)), carried(c, Some(c)), carried(c, None)],
            error: None,
        };
        let lines = report.text();
        let lines: Vec<_> = lines.lines().map(|line| line.split(": ").nth(1).unwrap_or_default()).collect();
        let shared = "5 bytes, one bottleneck with 10.1.0.1:10500 → 10.9.0.2:10500";
        assert_eq!(lines[..4], ["5 bytes", "5 bytes", shared, "5 bytes"]);
        let json = report.json();
        let numbers: Vec<_> = (0..4).map(|n| json["paths"][n]["bottleneck"].as_u64()).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(0), None]);
    }
}
