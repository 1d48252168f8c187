//! The questions of `polypath init` on a terminal. Each answer becomes the option that it stands for, and is checked as that at once.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Parser;
use ipnet::IpNet;
use polypath_node::Choice;
use polypath_node::addresses::usable;

use super::{FIRST, assigns, other_host, parse, plan};
use crate::args::{InitArgs, net};
use crate::failure::Failure;

/// The answers that stand for no value.
const ALL: &str = "all";
const ASSIGNED: &str = "assigned";
const NONE: &str = "none yet";

/// `args` with what the user answers, where there is somebody to ask and something to be asked.
pub fn complete(args: &InitArgs) -> Result<InitArgs, Failure> {
    let is_told = args.address.is_some() || args.assigned || args.assign.is_some() || args.peer.is_some();
    let is_heard = io::stdin().is_terminal() && io::stderr().is_terminal();
    if args.yes || is_told || !is_heard {
        return Ok(args.clone());
    }
    Dialogue { answers: io::stdin().lock(), screen: io::stderr() }.complete(args)
}

/// Who asks, and is answered.
struct Dialogue<R, W> {
    answers: R,
    screen: W,
}

impl<R: BufRead, W: Write> Dialogue<R, W> {
    fn complete(mut self, args: &InitArgs) -> Result<InitArgs, Failure> {
        let file = args.config.display();
        if args.config.exists() {
            self.say(&format!("{file} is there already, and gets a peer. Ctrl-C leaves it as it is."))?;
            let draft = self.peer(args, None)?;
            return self.behind(draft);
        }
        self.say(&format!(
            "This writes {file}. Enter takes what is in brackets; with Ctrl-C nothing is written."
        ))?;
        let role = "Does this host call the other one, as a router does, or is it called, as a server is? calls, called";
        let calls = self.ask(role, Some("called"), |text| one_of(text, ["called", "calls"]))?;
        let mut draft = self.peer(args, (!calls).then_some(NONE))?;
        if calls {
            draft = self.addresses_of_peer(draft)?;
        }
        draft = self.address(draft)?;
        if !calls && !draft.assigned {
            draft = self.assign(draft)?;
        }
        if draft.peer.is_some() {
            draft = self.behind(draft)?;
        }
        self.interfaces(draft)
    }

    /// The peer, and what else its line says.
    fn peer(&mut self, draft: &InitArgs, default: Option<&str>) -> Result<InitArgs, Failure> {
        let line = "The line that `polypath init` printed on the other host, or that host's tag";
        self.ask(line, default, |text| match text {
            NONE if default == Some(NONE) => Ok(draft.clone()),
            _ => pasted(draft, text),
        })
    }

    fn addresses_of_peer(&mut self, draft: InitArgs) -> Result<InitArgs, Failure> {
        let Some(tag) = draft.peer.as_deref().filter(|peer| !peer.contains('@')) else { return Ok(draft) };
        self.ask("Addresses or names at which the other host is reached", None, |text| {
            let peer = format!("{tag}@{}", words(text).join(","));
            parse(&peer)?;
            Ok(InitArgs { peer: Some(peer), ..draft.clone() })
        })
    }

    fn address(&mut self, draft: InitArgs) -> Result<InitArgs, Failure> {
        let (mut question, has_peer) = ("This host's address in the tunnel".to_owned(), draft.peer.is_some());
        if has_peer {
            question += "; assigned: the other host says which it is";
        }
        let free = if has_peer { other_host(FIRST, Some(FIRST.addr())).unwrap_or(FIRST) } else { FIRST };
        let default = match draft.assigned {
            true => ASSIGNED.to_owned(),
            false => draft.address.unwrap_or(free).to_string(),
        };
        self.ask(&question, Some(&default), |text| match text {
            ASSIGNED if has_peer => checked(InitArgs { assigned: true, address: None, ..draft.clone() }),
            _ => checked(InitArgs { assigned: false, address: Some(net::host(text)?), ..draft.clone() }),
        })
    }

    fn assign(&mut self, draft: InitArgs) -> Result<InitArgs, Failure> {
        let question = "Does this host assign the other hosts' addresses in the tunnel? yes, no";
        let network = draft.address.map(|address| address.to_string()).unwrap_or_default();
        self.ask(question, Some("no"), |text| match one_of(text, ["no", "yes"])? {
            false => Ok(draft.clone()),
            true => checked(InitArgs { assign: Some(net::network(&network)?), ..draft.clone() }),
        })
    }

    /// What is behind the peer.
    fn behind(&mut self, draft: InitArgs) -> Result<InitArgs, Failure> {
        let (given, ours) = (&draft.behind, draft.address);
        let (default, behind) = match ours.and_then(|ours| other_host(ours, Some(ours.addr()))) {
            _ if !given.is_empty() => (Some(list(given)), given.clone()),
            _ if assigns(&draft)? => (Some("the address that it is assigned".to_owned()), Vec::new()),
            Some(theirs) => (Some(IpNet::from(theirs.addr()).to_string()), vec![theirs.addr().into()]),
            None => (None, Vec::new()),
        };
        let draft = self.ask("Addresses and networks behind the other host", default.as_deref(), |text| {
            let all = match default.as_deref() == Some(text) {
                true => behind.clone(),
                false => words(text).into_iter().map(net::prefix).collect::<Result<_, _>>()?,
            };
            checked(InitArgs { behind: all, ..draft.clone() })
        })?;
        self.default_route(draft)
    }

    /// Whether all traffic goes to a peer that this host calls, of the families in which that one has an address.
    fn default_route(&mut self, draft: InitArgs) -> Result<InitArgs, Failure> {
        let calls = draft.peer.as_ref().is_some_and(|peer| peer.contains('@'));
        let mut all: Vec<IpNet> = draft.behind.iter().map(everything).collect();
        all.sort();
        all.dedup();
        if !calls || all.is_empty() || all.iter().any(|net| draft.behind.contains(net)) {
            return Ok(draft);
        }
        let question =
            format!("Does this host's default route ({}) go through the tunnel? yes, no", list(&all));
        self.ask(&question, Some("no"), |text| match one_of(text, ["no", "yes"])? {
            false => Ok(draft.clone()),
            true => checked(InitArgs { behind: [&draft.behind[..], &all].concat(), ..draft.clone() }),
        })
    }

    fn interfaces(&mut self, draft: InitArgs) -> Result<InitArgs, Failure> {
        if !draft.only.is_empty() {
            return Ok(draft);
        }
        let there = usable().unwrap_or_default().into_iter().filter_map(|address| address.device);
        let mut there: Vec<String> = there.filter(|device| Choice::default().admits_device(device)).collect();
        there.dedup();
        let now = if there.is_empty() { "none has an address".to_owned() } else { there.join(" ") };
        let question = format!("Interfaces to use, by name or pattern (now: {now})");
        self.ask(&question, Some(ALL), |text| match text {
            ALL => Ok(draft.clone()),
            _ => checked(InitArgs {
                only: words(text).into_iter().map(str::to_owned).collect(),
                ..draft.clone()
            }),
        })
    }

    /// Asks until there is an answer that `read` takes. Enter alone stands for `default`.
    fn ask<T>(
        &mut self,
        question: &str,
        default: Option<&str>,
        read: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Result<T, Failure> {
        let brackets = default.map(|default| format!(" [{default}]")).unwrap_or_default();
        loop {
            let mut line = String::new();
            write!(self.screen, "{question}{brackets}: ").and_then(|()| self.screen.flush()).map_err(gone)?;
            if self.answers.read_line(&mut line).map_err(gone)? == 0 {
                self.say("")?;
                let ended = Failure::usage("the answers ended before the questions: nothing was written");
                return Err(ended.help("`polypath init --help` has options in their place"));
            }
            let answer = Some(line.trim()).filter(|text| !text.is_empty()).or(default);
            match answer.map(&read) {
                Some(Ok(value)) => return Ok(value),
                Some(Err(Wrong(why))) => self.say(&why)?,
                None => self.say("error: this needs an answer")?,
            }
        }
    }

    fn say(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.screen, "{line}").map_err(gone)
    }
}

fn gone(error: io::Error) -> Failure {
    Failure::system("no terminal to ask on", error)
}

/// What is said of an answer that cannot be.
struct Wrong(String);

impl From<String> for Wrong {
    fn from(why: String) -> Self {
        Self(format!("error: {why}"))
    }
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Self {
        Self(failure.to_string())
    }
}

/// Answers as far as they are known, if the daemon would take them.
fn checked(draft: InitArgs) -> Result<InitArgs, Wrong> {
    // What is behind a peer is asked last.
    if draft.peer.is_none() || !draft.behind.is_empty() || assigns(&draft)? {
        plan(&draft)?;
    }
    Ok(draft)
}

/// Whether the second of two answers is meant, which may be shortened.
fn one_of(text: &str, answers: [&str; 2]) -> Result<bool, Wrong> {
    let meant: Vec<usize> = (0..2).filter(|n| answers[*n].starts_with(&text.to_lowercase())).collect();
    match meant[..] {
        [one] => Ok(one == 1),
        _ => Err(format!("write {} or {}", answers[0], answers[1]).into()),
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split([',', ' ', '\t']).filter(|word| !word.is_empty()).collect()
}

/// All addresses of the family.
fn everything(net: &IpNet) -> IpNet {
    IpNet::new_assert(net.addr(), 0).trunc()
}

fn list(nets: &[IpNet]) -> String {
    nets.iter().map(IpNet::to_string).collect::<Vec<_>>().join(" ")
}

/// The options of a line that another host printed.
#[derive(Parser)]
#[command(name = "polypath init")]
struct Line {
    #[command(flatten)]
    args: InitArgs,
}

/// `draft` with what such a line says, or a tag alone.
fn pasted(draft: &InitArgs, text: &str) -> Result<InitArgs, Wrong> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let options = match words.iter().position(|word| *word == "init") {
        Some(n) => words[n + 1..].to_vec(),
        None if words.len() == 1 => vec!["--peer", words[0]],
        None => words,
    };
    let line = Line::try_parse_from([&["polypath init"], &options[..]].concat());
    let InitArgs { peer, address, assigned, behind, .. } = line.map_err(|e| said_first(&e))?.args;
    let peer = peer.ok_or_else(|| "no --peer is in it".to_owned())?;
    parse(&peer)?;
    let draft = InitArgs { peer: Some(peer), address, assigned, behind, ..draft.clone() };
    if draft.config.exists() { checked(draft) } else { Ok(draft) }
}

/// The first paragraph of what is wrong with options.
fn said_first(error: &clap::Error) -> Wrong {
    Wrong(error.to_string().split("\n\n").next().unwrap_or_default().to_owned())
}
