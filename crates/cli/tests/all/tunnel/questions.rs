//! `polypath init` asks, on a pseudo-terminal of script(1).

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use polypath_daemon::Config;
use polypath_testing::installed;
use tempfile::TempDir;

const SERVER: &str = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19";
const ROUTER: &str = "2001:22:a7c6:c53:8d7b:5b0a:a1cf:a9c8";
/// What the tutorial shows.
const PAGE: &str = include_str!("../../../../../docs/daemon.md");

/// `polypath init` on a terminal, and what is on its screen.
struct Terminal {
    dir: TempDir,
    script: Child,
    keys: ChildStdin,
    seen: Arc<Mutex<Vec<u8>>>,
    /// The part of it that was looked at.
    read: usize,
}

impl Terminal {
    /// In an empty directory, with a configuration of that text if there is one.
    fn new(args: &str, config: Option<&str>) -> Option<Self> {
        if !installed(&["script", "stty"]) {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        if let Some(text) = config {
            fs::write(dir.path().join("a.toml"), text).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_polypath");
        let line =
            format!("stty cols 300; exec {program} init a.toml --identity x.pem --at 192.0.2.1 {args}");
        let mut script = Command::new("env")
            .args(["--default-signal", "script", "-qec", &line, "/dev/null"])
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keys, mut screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shown = seen.clone();
        thread::spawn(move || {
            let mut some = [0; 1000];
            while let Ok(n @ 1..) = screen.read(&mut some) {
                shown.lock().unwrap().extend_from_slice(&some[..n]);
            }
        });
        Some(Self { dir, script, keys, seen, read: 0 })
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Waits until more has appeared with `part` in it.
    fn see(&mut self, part: &str) {
        for _ in 0..600 {
            let screen = self.screen();
            if let Some(at) = screen[self.read..].find(part) {
                self.read += at + part.len();
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("never {part:?} after {} bytes of:\n{}", self.read, self.screen());
    }

    /// Waits for a question and types what answers it.
    fn answer(&mut self, question: &str, text: &str) {
        self.see(question);
        self.see(": ");
        self.type_in(&format!("{text}\n"));
    }

    fn type_in(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Its exit status, and what has appeared until then.
    fn end(mut self) -> (Option<i32>, String, TempDir) {
        let code = self.script.wait().unwrap().code();
        // The last words may come after the end.
        thread::sleep(Duration::from_millis(200));
        (code, self.screen().replace("\r\n", "\n"), self.dir)
    }
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The questions of a server, with Enter for all of them.
const SERVERS: [&str; 5] = [
    "Does this host call the other one",
    "The line that `polypath init` printed on the other host",
    "This host's address in the tunnel [10.99.0.1/24]",
    "Does this host assign the other hosts' addresses in the tunnel? yes, no [no]",
    "Interfaces to use, by name or pattern",
];

#[test]
fn who_answers_nothing_gets_what_no_option_gives() {
    let Some(mut terminal) = Terminal::new("", None) else { return };
    SERVERS.iter().for_each(|question| terminal.answer(question, ""));
    let (code, screen, asked) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    let line = screen.lines().last().unwrap();
    assert!(
        line.starts_with("polypath init --address 10.99.0.2/24 --peer 2001:22:")
            && line.ends_with("@192.0.2.1 --behind 10.99.0.1/32"),
        "{screen}"
    );
    let Some(terminal) = Terminal::new("--yes", None) else { return };
    let (code, screen, told) = terminal.end();
    assert!(code == Some(0) && !screen.contains('?'), "{screen}");
    let text = |dir: &TempDir| fs::read_to_string(dir.path().join("a.toml")).unwrap();
    assert_eq!(text(&asked), text(&told));
    assert_eq!(files(asked.path()), ["a.toml", "x.pem"]);
}

#[test]
fn each_answer_is_checked_at_once_as_the_option_is() {
    let Some(mut terminal) = Terminal::new("", None) else { return };
    terminal.answer("Does this host call", "perhaps");
    terminal.see("error: write called or calls");
    terminal.answer("Does this host call", "calls");
    let line =
        format!("polypath init --address 10.99.0.2/24 --peer {SERVER}@192.0.2.9 --behind 10.99.0.1/32");
    for (wrong, said) in [
        ("", "error: this needs an answer"),
        ("2001:22:x", "error: --peer 2001:22:x: "),
        ("polypath init --behind 10.99.0.1", "--peer"),
        ("polypath init --peer 2001:22:x@", "error: --peer 2001:22:x@: "),
        (&line.replace("192.0.2.9", "ADDRESS"), "ADDRESS stands for an address"),
        (&line.replace("10.99.0.1/32", "10.99.0.1/24"), "write 10.99.0.0/24 or 10.99.0.1/32"),
    ] {
        terminal.answer("The line that `polypath init` printed", wrong);
        terminal.see(said);
    }
    terminal.answer("The line that `polypath init` printed", &format!("sudo {line}"));
    for (wrong, said) in [
        ("10.99.0.2", "error: the length of the prefix is missing: write for example 10.99.0.2/24"),
        ("10.99.0.0/24", "error: 10.99.0.0 is the network itself"),
        ("10.99.0.1/24", "10.99.0.1/32 is this host's own address"),
    ] {
        terminal.answer("This host's address in the tunnel", wrong);
        terminal.see(said);
    }
    terminal.answer("assigned: the other host says which it is [10.99.0.2/24]", "");
    terminal.answer("Addresses and networks behind the other host [10.99.0.1/32]", "10.99.0.2");
    terminal.see("10.99.0.2/32 is this host's own address");
    terminal.answer("Addresses and networks behind", "10.99.0.1, 10.97.0.0/16");
    terminal.answer("Does this host's default route (0.0.0.0/0) go through the tunnel? yes, no [no]", "y");
    terminal.answer("Interfaces to use, by name or pattern", "an-interface-with-a-long-name");
    terminal.see("is not a valid name of an interface");
    terminal.answer("Interfaces to use, by name or pattern", "eth77 wwan7*");
    terminal.see("no interface fits \"eth77\" now");
    terminal.see("the other host has to forward and masquerade");
    let (code, screen, dir) = terminal.end();
    assert!(code == Some(0), "{screen}");
    assert!(screen.trim_end().ends_with(" --behind 10.99.0.2/32"), "the line for the server: {screen}");
    let config = Config::load(&dir.path().join("a.toml")).unwrap();
    assert_eq!(config.paths.include, ["eth77", "wwan7*"]);
    let behind: Vec<String> = config.peers[0].prefixes.iter().map(ToString::to_string).collect();
    assert_eq!(behind, ["10.99.0.1/32", "10.97.0.0/16", "0.0.0.0/0"]);
    assert_eq!(config.peers[0].addresses, ["192.0.2.9"]);
}

#[test]
fn a_tag_alone_will_do_and_a_client_may_have_its_address_assigned() {
    let Some(mut terminal) = Terminal::new("--only eth0", None) else { return };
    terminal.answer("Does this host call", "calls");
    terminal.answer("The line that `polypath init` printed", SERVER);
    terminal.answer("Addresses or names at which the other host is reached", "192.0.2.9/24");
    terminal.see("is a network or a URL");
    terminal.answer("Addresses or names at which", "192.0.2.9 vpn.example.org:7");
    terminal.answer("This host's address in the tunnel", "assigned");
    terminal.answer("Addresses and networks behind the other host", "10.99.0.0/24");
    terminal.answer("default route (0.0.0.0/0)", "");
    let (code, screen, dir) = terminal.end();
    assert!(code == Some(0) && !screen.contains("Interfaces to use"), "--only has said it: {screen}");
    let config = Config::load(&dir.path().join("a.toml")).unwrap();
    assert_eq!(config.tunnel.addresses_from.map(|hit| hit.to_string()).as_deref(), Some(SERVER));
    assert_eq!(config.peers[0].addresses, ["192.0.2.9", "vpn.example.org:7"]);
    assert_eq!(config.paths.include, ["eth0"]);
}

#[test]
fn a_server_may_assign_addresses_and_a_configuration_that_is_there_gets_a_peer() {
    let Some(mut terminal) = Terminal::new("", None) else { return };
    for (question, answer) in SERVERS.iter().zip(["", "", "10.98.0.1/24", "yes", "all"]) {
        terminal.answer(question, answer);
    }
    let (code, screen, dir) = terminal.end();
    assert!(code == Some(0) && screen.contains("--assigned --peer"), "{screen}");
    let text = fs::read_to_string(dir.path().join("a.toml")).unwrap();

    let Some(mut terminal) = Terminal::new("", Some(&text)) else { return };
    terminal.see("a.toml is there already, and gets a peer");
    terminal.answer("The line that `polypath init` printed", &format!("polypath init --peer {ROUTER}"));
    terminal.answer("Addresses and networks behind the other host [the address that it is assigned]", "");
    let (code, screen, dir) = terminal.end();
    assert!(code == Some(0) && screen.contains("polypath reload"), "{screen}");
    let config = Config::load(&dir.path().join("a.toml")).unwrap();
    assert_eq!((config.peers[0].hit.to_string().as_str(), config.peers[0].prefixes.len()), (ROUTER, 0));
}

#[test]
fn ctrl_c_and_the_end_of_the_answers_leave_nothing_at_every_question() {
    for asked in 0..SERVERS.len() {
        for (key, code) in [("\x03", 130), ("\x04", 2)] {
            let Some(mut terminal) = Terminal::new("", None) else { return };
            SERVERS[..asked].iter().for_each(|question| terminal.answer(question, ""));
            terminal.see(SERVERS[asked]);
            terminal.see(": ");
            terminal.type_in(key);
            let (ended, screen, dir) = terminal.end();
            assert_eq!(ended, Some(code), "{screen}");
            assert!(files(dir.path()).is_empty(), "{:?} after {screen}", files(dir.path()));
        }
    }
}

#[test]
fn the_tutorial_shows_the_questions_that_are_asked() {
    let sessions: Vec<&str> =
        PAGE.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap()).take(2).collect();
    for (session, questions) in sessions.iter().zip([5, 6]) {
        let Some(mut terminal) = Terminal::new("", None) else { return };
        let asks = |line: &&str| line.contains("]:") || line.contains("tag:");
        let asked: Vec<&str> = session.lines().filter(asks).collect();
        assert_eq!(asked.len(), questions, "{session}");
        for line in asked {
            let mark = if line.contains("]:") { "]:" } else { "tag:" };
            let (question, answer) = line.split_once(mark).unwrap();
            // This machine has other interfaces than the tutorial's.
            let question = question.split(" (now:").next().unwrap();
            terminal.answer(question, &answer.trim().replace("2001:22:…", SERVER));
        }
        let (code, screen, _) = terminal.end();
        assert_eq!(code, Some(0), "{screen}");
    }
}
