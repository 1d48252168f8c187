//! How it went, as a table and as JSON.

use std::collections::BTreeSet;
use std::io::{self, Write};

use comfy_table::Table;
use polypath_endpoint::PathReport as PathSas;
use polypath_hip::suite::EspSuite;
use polypath_lab::units::{Bytes, Human};
use polypath_transport::PathStats;
use serde::Serialize;

use super::content::Content;
use super::plan::Plan;
use crate::failure::{Failure, printed};
use crate::table;

/// What a transfer measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// From the first packet of the base exchange to the last byte at the receiver.
    pub seconds: f64,
    /// What arrived.
    pub bytes: u64,
    /// SHA-256 of what was read from the file.
    pub sent: String,
    /// SHA-256 of what arrived.
    pub received: String,
    /// Each path as the sender saw it.
    pub paths: Vec<PathOutcome>,
}

/// One path of a transfer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathOutcome {
    pub delivered: u64,
    pub retransmitted: u64,
    pub srtt_ms: Option<f64>,
    pub secure: Option<Sas>,
}

/// The security associations of one path, as the sender has them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sas {
    /// Negotiated for both directions.
    pub esp_suite: &'static str,
    /// Of what the sender sends.
    pub spi_out: String,
    /// Of what it receives.
    pub spi_in: String,
}

impl From<&PathSas> for Sas {
    fn from(path: &PathSas) -> Self {
        let spi = |spi: u32| format!("{spi:08x}");
        Self { esp_suite: suite_name(path.suite), spi_out: spi(path.outbound), spi_in: spi(path.inbound) }
    }
}

impl PathOutcome {
    pub fn new(stats: &PathStats, secure: Option<&PathSas>) -> Self {
        Self {
            delivered: stats.bytes_delivered,
            retransmitted: stats.retransmissions,
            srtt_ms: stats.srtt.map(|d| d.as_millis_f64()),
            secure: secure.map(Sas::from),
        }
    }
}

/// As RFC 7402 §5.1.2 has it, and RFC 7634.
pub fn suite_name(suite: EspSuite) -> &'static str {
    match suite {
        EspSuite::NullHmacSha256 => "NULL with HMAC-SHA-256",
        EspSuite::Aes128CbcHmacSha256 => "AES-128-CBC with HMAC-SHA-256",
        EspSuite::Aes256CbcHmacSha256 => "AES-256-CBC with HMAC-SHA-256",
        EspSuite::Aes128Gcm => "AES-128-GCM-16",
        EspSuite::Aes128GcmImplicit => "AES-128-GCM-16, implicit IV",
        EspSuite::Aes256Gcm => "AES-256-GCM-16",
        EspSuite::Simulated => "none (simulated)",
        EspSuite::Chacha20Poly1305 => "ChaCha20-Poly1305",
    }
}

/// A path alone, by the simulator.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Alone {
    /// Which: the best of all.
    pub path: usize,
    /// How long it would have taken.
    pub seconds: f64,
}

/// What `--json` prints; the keys are stable (docs/demo-json.md).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    pub mode: &'static str,
    pub scheduler: String,
    pub cc: String,
    pub bytes: u64,
    pub seconds: f64,
    pub goodput_bps: f64,
    pub capacity_bps: u64,
    pub utilisation: f64,
    pub retransmitted: u64,
    pub sha256: String,
    pub sha256_match: bool,
    pub best_path_alone: Option<Alone>,
    pub sender_hit: String,
    pub receiver_hit: String,
    pub paths: Vec<PathReport>,
    #[serde(skip)]
    title: String,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathReport {
    pub id: usize,
    pub rate_bps: u64,
    pub delay_ms: f64,
    pub goodput_bps: f64,
    pub utilisation: f64,
    pub srtt_ms: Option<f64>,
    pub retransmitted: u64,
    #[serde(flatten)]
    pub sas: Option<Sas>,
}

impl Report {
    pub fn new(plan: &Plan, content: &Content, outcome: &Outcome, best_path_alone: Option<Alone>) -> Self {
        let over =
            |bytes: u64| if outcome.seconds > 0.0 { bytes as f64 * 8.0 / outcome.seconds } else { 0.0 };
        let path = |(id, (path, link)): (usize, (&PathOutcome, &polypath_lab::units::Link))| PathReport {
            id,
            rate_bps: link.rate.0,
            delay_ms: link.delay.as_millis_f64(),
            goodput_bps: over(path.delivered),
            utilisation: over(path.delivered) / link.rate.0 as f64,
            srtt_ms: path.srtt_ms,
            retransmitted: path.retransmitted,
            sas: path.secure.clone(),
        };
        let goodput_bps = over(outcome.bytes);
        let capacity_bps = plan.capacity().0;
        Self {
            mode: plan.mode.name(),
            scheduler: plan.scheduler.clone(),
            cc: plan.cc.clone(),
            bytes: outcome.bytes,
            seconds: outcome.seconds,
            goodput_bps,
            capacity_bps,
            utilisation: goodput_bps / capacity_bps as f64,
            retransmitted: outcome.paths.iter().map(|p| p.retransmitted).sum(),
            sha256: outcome.received.clone(),
            sha256_match: outcome.sent == outcome.received && outcome.bytes == content.len,
            best_path_alone,
            sender_hit: plan.identities[0].hit().to_string(),
            receiver_hit: plan.identities[1].hit().to_string(),
            paths: outcome.paths.iter().zip(&plan.links).enumerate().map(path).collect(),
            title: format!(
                "{}, {}\nscheduler {}, cc {}",
                content.name,
                plan.mode.describe(),
                plan.scheduler,
                plan.cc
            ),
        }
    }

    pub fn print_table(&self) -> Result<(), Failure> {
        let hash = if self.sha256_match { "SHA-256 equal" } else { "SHA-256 WRONG" };
        printed(writeln!(
            io::stdout(),
            "{}, {}\nfrom {}\nto   {}\n\n{}\n\n{} in {:.2} s\n{hash}: {}\n{}",
            self.title,
            self.suites(),
            self.sender_hit,
            self.receiver_hit,
            self.table().trim_fmt(),
            Human(Bytes(self.bytes)),
            self.seconds,
            self.sha256,
            self.comparison(),
        ))
    }

    fn comparison(&self) -> String {
        let Some(alone) = self.best_path_alone else {
            return "No path alone carries it (simulated).".to_owned();
        };
        let (path, seconds, times) = (alone.path, alone.seconds, alone.seconds / self.seconds);
        format!(
            "The better path alone, path {path}, takes {seconds:.2} s (simulated): {times:.2} times as long."
        )
    }

    /// All suites in use: one, as a rule.
    fn suites(&self) -> String {
        let suites: BTreeSet<_> = self.paths.iter().filter_map(|p| Some(p.sas.as_ref()?.esp_suite)).collect();
        suites.into_iter().collect::<Vec<_>>().join(", ")
    }

    fn table(&self) -> Table {
        let mbps = |bps: f64| match bps / 1e6 {
            little if 0.0 < little && little < 0.1 => format!("{little:.4}"),
            usual => format!("{usual:.1}"),
        };
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        let ms = |ms: Option<f64>| ms.map_or("–".to_owned(), |ms| format!("{ms:.1}"));
        let mut table = table::plain(
            [
                "path",
                "rate,\nMbit/s",
                "delay,\nms",
                "goodput,\nMbit/s",
                "share of\nrate",
                "srtt,\nms",
                "sent\nagain",
                "SPI out",
                "SPI in",
            ],
            1,
        );
        for p in &self.paths {
            table.add_row([
                p.id.to_string(),
                mbps(p.rate_bps as f64),
                format!("{}", p.delay_ms),
                mbps(p.goodput_bps),
                percent(p.utilisation),
                ms(p.srtt_ms),
                p.retransmitted.to_string(),
                p.sas.as_ref().map_or("–".to_owned(), |sas| sas.spi_out.clone()),
                p.sas.as_ref().map_or("–".to_owned(), |sas| sas.spi_in.clone()),
            ]);
        }
        table.add_row([
            "sum".to_owned(),
            mbps(self.capacity_bps as f64),
            String::new(),
            mbps(self.goodput_bps),
            percent(self.utilisation),
            String::new(),
            self.retransmitted.to_string(),
            String::new(),
            String::new(),
        ]);
        table
    }
}
