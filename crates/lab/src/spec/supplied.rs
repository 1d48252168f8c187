//! Algorithms that a spec names and the program that runs it supplies.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use polypath_transport::cc::ControllerMaker;
use polypath_transport::sched::SchedulerMaker;
use polypath_transport::{CcConfig, ConnectionConfig, SchedulerConfig};

/// What makes the algorithms `external` of a spec, by their names. It is no part of what the spec says.
#[derive(Clone, Default)]
pub struct Supplied {
    /// Controllers.
    pub controllers: BTreeMap<String, Arc<ControllerMaker>>,
    /// Schedulers.
    pub schedulers: BTreeMap<String, Arc<SchedulerMaker>>,
}

impl Supplied {
    /// `connection` with what it names.
    pub(super) fn to(&self, mut connection: ConnectionConfig) -> ConnectionConfig {
        if let CcConfig::External(external) = &mut connection.cc {
            external.maker = self.controllers.get(&external.name).cloned();
        }
        if let SchedulerConfig::External(external) = &mut connection.scheduler {
            external.maker = self.schedulers.get(&external.name).cloned();
        }
        connection
    }
}

impl PartialEq for Supplied {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Supplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.controllers.keys().chain(self.schedulers.keys())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{from_document, parse};
    use super::*;
    use crate::place::Place;

    const SPEC: &str = "version = 1\ntitle = \"x\"\nduration = \"2s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\n\
        delay = \"9ms\"\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n[flow.connection]\n\
        cc = { algorithm = \"external\", name = \"mine\", version = \"3\" }\n";

    #[test]
    fn an_algorithm_that_nobody_supplies_is_refused_where_it_is_named() {
        let error = parse(SPEC, "x").unwrap_err();
        assert_eq!(error.key, "flow[0].connection.cc.name");
        assert!(error.to_string().contains("no algorithm of this name"), "{error}");
        assert!(error.help.as_ref().is_some_and(|help| help.contains("Python")), "{error:?}");
    }

    #[test]
    fn a_supplied_algorithm_runs_and_its_version_decides_the_run() {
        let maker: Arc<ControllerMaker> = Arc::new(|env| CcConfig::default().build(env));
        let supplied = Supplied { controllers: [("mine".to_owned(), maker)].into(), ..Supplied::default() };
        let of = |text: &str| {
            from_document(&text.parse().unwrap(), "x", &Place::Nowhere, &supplied)
                .unwrap_or_else(|e| panic!("{e}"))
        };
        let run = |text: &str| crate::run::run(&of(text).cells[0], 1, &Default::default()).unwrap();
        let (own, other) = (run(SPEC), run(&SPEC.replace('3', "4")));
        let newreno = run(&SPEC.replace("\"external\", name = \"mine\", version = \"3\"", "\"newreno\""));
        assert!(own.flows[0].bytes > 500_000);
        assert_eq!((own.flows[0].bytes, other.flows[0].bytes), (newreno.flows[0].bytes, own.flows[0].bytes));
        assert_ne!(own.id, other.id);
    }
}
