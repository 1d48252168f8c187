//! What went over the link, as tcpdump saw it and tshark reads it.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use polypath_testbed::netns::Netns;
use tempfile::NamedTempFile;

/// A running capture of the TCP headers on one device.
pub struct Capture {
    tcpdump: Child,
    file: NamedTempFile,
}

impl Capture {
    /// Starts to capture on `device` of `ns`; returns when it does.
    pub fn start(ns: &Netns, device: &str) -> Self {
        let file = NamedTempFile::new().unwrap();
        let mut command = Command::new("tcpdump");
        command.args(["-Z", "root", "-n", "-U", "-s", "100", "-i", device, "-w"]).arg(file.path()).arg("tcp");
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut tcpdump = ns.run(|| command.spawn()).unwrap().expect("tcpdump starts");
        let mut said = BufReader::new(tcpdump.stderr.take().expect("it is piped"));
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "tcpdump did not listen on {device}");
        }
        // Whatever else it says must find a reader until it ends.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { tcpdump, file }
    }

    /// Ends the capture.
    pub fn finish(mut self) -> Packets {
        // It writes out what the kernel has for it every so often; give it time to.
        std::thread::sleep(std::time::Duration::from_millis(300));
        self.interrupt();
        Packets { file: std::mem::replace(&mut self.file, NamedTempFile::new().unwrap()) }
    }

    fn interrupt(&mut self) {
        let _ = kill(Pid::from_raw(self.tcpdump.id() as i32), Signal::SIGINT);
        let _ = self.tcpdump.wait();
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.interrupt();
    }
}

/// A finished capture.
pub struct Packets {
    file: NamedTempFile,
}

impl Packets {
    /// `fields` of the packets that match the display filter `filter`, one row a packet.
    pub fn select(&self, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
        let mut command = Command::new("tshark");
        command.args(["-n", "-T", "fields", "-Y", filter, "-r"]).arg(self.file.path());
        command.args(fields.iter().flat_map(|field| ["-e", field]));
        let output = command.output().expect("tshark starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let rows = String::from_utf8(output.stdout).unwrap();
        rows.lines().map(|row| row.split('\t').map(str::to_owned).collect()).collect()
    }

    /// How many packets match.
    pub fn count(&self, filter: &str) -> usize {
        self.select(filter, &["frame.number"]).len()
    }
}
