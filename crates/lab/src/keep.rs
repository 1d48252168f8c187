//! What to keep of a run beside its numbers.

use std::num::NonZero;
use std::path::PathBuf;

use polypath_sim::{HopId, TraceFilter};
use polypath_wire::Duration;

use crate::build::{Built, Carried};
use crate::shelf::{Unknown, unknown};
use crate::spec::{Flow, Spec, What, ends};

/// What to keep of a run beside its numbers, and where.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Keep {
    /// Into this directory.
    pub dir: PathBuf,
    /// What reached the far ends of links, `<id>.pcapng`.
    pub capture: Option<Capture>,
    /// Observations, `<id>.arrow`.
    pub trace: Option<Wanted>,
    /// Numbers that others will ask for, beside those that the spec itself does.
    pub also: Vec<What>,
}

/// Which observations a trace has. An empty list does not restrict.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Wanted {
    /// Of these flows.
    pub flows: Vec<String>,
    /// Of these paths, by number.
    pub paths: Vec<u32>,
    /// These events.
    pub events: Vec<String>,
    /// From this time on.
    pub from: Option<Duration>,
    /// Before this time.
    pub to: Option<Duration>,
}

impl Wanted {
    /// Its flows are flows of `spec`, one of them has its paths, and its events are events.
    pub fn check(&self, spec: &Spec) -> Result<(), Unknown> {
        let flows: Vec<&str> = spec.flow.iter().map(|f| f.name.as_str()).collect();
        let missing = |what, names: &[String], known: &[&str]| {
            let name = names.iter().find(|name| !known.contains(&name.as_str()));
            name.map_or(Ok(()), |name| Err(unknown(what, name, known)))
        };
        missing("flow", &self.flows, &flows)?;
        let of_these = |f: &&Flow| self.flows.is_empty() || self.flows.contains(&f.name);
        let most = spec.flow.iter().filter(of_these).map(|f| f.paths.len()).max().unwrap_or(0);
        let paths: Vec<String> = (0..most).map(|path| path.to_string()).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        missing("path", &self.paths.iter().map(u32::to_string).collect::<Vec<_>>(), &paths)?;
        missing("event", &self.events, TraceFilter::EVENTS)
    }

    pub(crate) fn filter(&self, spec: &Spec, built: &Built) -> TraceFilter {
        let flows = spec.flow.iter().zip(&built.sources).filter(|(flow, _)| self.flows.contains(&flow.name));
        let numbers = flows.flat_map(|(_, source)| match source {
            Carried::Tcp(ids) => ids.iter().map(|id| id.number()).collect(),
            Carried::Udp(_) => vec![], // it observes nothing
        });
        let flows = (!self.flows.is_empty()).then(|| numbers.collect());
        let filter = TraceFilter::default().flows(flows).paths(self.paths.clone());
        filter.events(&self.events).times(self.from, self.to)
    }
}

/// Which packets a capture has, and how much of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Capture {
    /// At these links and in these directions, `r->b`; without any at all.
    pub links: Vec<String>,
    /// At most this many bytes of each; without a number, all.
    pub snap: Option<NonZero<u32>>,
}

impl Capture {
    /// Its links are links of `spec`.
    pub fn check(&self, spec: &Spec) -> Result<(), Unknown> {
        let all: Vec<String> = spec.link.iter().flat_map(|l| directions(&l.from, &l.to)).collect();
        let known: Vec<&str> = all.iter().map(String::as_str).collect();
        let missing = self.links.iter().find(|link| !all.contains(&spaceless(link)));
        missing.map_or(Ok(()), |link| Err(unknown("link", link, &known)))
    }

    /// The hops that it captures. `built` has its hops in the order of the links of `spec`.
    pub(crate) fn hops(&self, spec: &Spec, built: &Built) -> Vec<HopId> {
        let wanted: Vec<String> = self.links.iter().map(|link| spaceless(link)).collect();
        let names = spec.link.iter().flat_map(|l| directions(&l.from, &l.to));
        let hops = names.zip(&built.hops).filter(|(name, _)| wanted.is_empty() || wanted.contains(name));
        hops.map(|(_, hop)| *hop).collect()
    }
}

fn directions(a: &str, b: &str) -> [String; 2] {
    [format!("{a}->{b}"), format!("{b}->{a}")]
}

/// `link` as [`directions`] writes it.
fn spaceless(link: &str) -> String {
    ends(link).map_or_else(|| link.to_owned(), |(a, b)| format!("{a}->{b}"))
}
