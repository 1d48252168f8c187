//! Expectations and figures name flows, paths, links and cells that exist, and say something.

mod figures;

use super::cell::{beside, chosen};
use super::error::{Problem, at};
use super::link::ends;
use super::{Cell, Expect, Flow, Metric, Selector, Spec, Statistic, Traffic, What};
use crate::document::Key;
use crate::metric::Scope;
use crate::units::Human;

pub(super) use figures::figures;

pub(super) fn measures(spec: &Spec, cells: &[Cell]) -> Result<(), Problem> {
    spec.measure.iter().enumerate().try_for_each(|(n, measure)| {
        let aim = Aim { spec, cells, at: at!["measure", n] };
        match measure.of.metric {
            None => Err(no_metric(aim.at)),
            Some(_) => aim.selector(&measure.selector(), measure.of.cell.as_deref(), &[]),
        }
    })
}

/// What is said of hosts is said of ends of TCP flows, in one cell or more: nothing else has a clock or jitter.
pub(super) fn hosts(spec: &Spec, cells: &[Cell]) -> Result<(), Problem> {
    let of_tcp = |f: &&Flow| f.traffic == Traffic::Tcp;
    let flows = || cells.iter().flat_map(|cell| cell.spec.flow.iter().filter(of_tcp));
    let is_end = |name: &String| flows().any(|f| f.from == *name || f.to == *name);
    let Some(n) = spec.host.iter().position(|host| !is_end(&host.name)) else { return Ok(()) };
    let problem =
        format!("no TCP flow begins or ends at \"{}\": clock and jitter change nothing", spec.host[n].name);
    Err(Problem::new(at!["host", n, "name"], problem).help("leave the [[host]] table out"))
}

fn no_metric(at: Vec<Key>) -> Problem {
    Problem::new(at, "the key `metric` is missing").help("add for example metric = \"goodput\"")
}

pub(super) fn expectations(spec: &Spec, cells: &[Cell]) -> Result<(), Problem> {
    spec.expect.iter().enumerate().try_for_each(|(n, expect)| expectation(spec, cells, expect, n))
}

fn expectation(spec: &Spec, cells: &[Cell], expect: &Expect, n: usize) -> Result<(), Problem> {
    let aim = Aim { spec, cells, at: at!["expect", n] };
    if expect.of.metric.is_none() {
        return Err(no_metric(aim.at));
    }
    aim.selector(&expect.selector(), expect.of.cell.as_deref(), &expect.ascending)?;
    aim.over_itself(&expect.selector(), expect.of.cell.as_deref())?;
    if expect.min.is_none()
        && expect.max.is_none()
        && expect.published.is_none()
        && expect.ascending.len() < 2
    {
        return Err(Problem::new(aim.at, "expects nothing")
            .help("add min, max, published, or ascending; what is only measured stands under [[measure]]"));
    }
    band(expect, &aim)?;
    match expect.of.statistic {
        Statistic::Sd if spec.seeds.first == spec.seeds.last => {
            return Err(Problem::new(aim.key("statistic"), "one run has no standard deviation")
                .help("run more seeds: seeds = \"1..20\""));
        }
        Statistic::ShareWithin | Statistic::ShareAllWithin
            if expect.within.is_none_or(|(low, high)| low > high || (high - low).is_nan()) =>
        {
            return Err(Problem::new(aim.key("within"), "which band?").help("add within = [0.9, 1.1]"));
        }
        statistic if expect.within.is_some() && !statistic.is_share() => {
            return Err(Problem::new(aim.key("within"), "of which share?")
                .help("add statistic = \"share_within\", or write min and max instead"));
        }
        Statistic::Spearman if expect.ascending.len() < 3 => {
            let problem = Problem::new(aim.key("ascending"), "a correlation of ranks needs an order");
            return Err(problem.help("list three cells or more in ascending = […]"));
        }
        _ => {}
    }
    claim(expect, &aim)?;
    let null = expect.null.as_deref().filter(|null| !null.contains('/'));
    null.map_or(Ok(()), |null| aim.beside(null, expect.of.cell.as_deref(), "null"))
}

/// A published value says how near is near enough, and is one that can be judged.
fn claim(expect: &Expect, aim: &Aim<'_>) -> Result<(), Problem> {
    let refused = |key: &str, message: &str, help: &str| Err(Problem::new(aim.key(key), message).help(help));
    match (expect.published, expect.margin) {
        _ if expect.null.is_some() && !expect.of.statistic.is_judged() => refused(
            "null",
            "what is compared with a null is a mean or a share, not this statistic",
            "leave null out; an expectation of its own says what the null's cell has",
        ),
        (None, None) if expect.runs.is_some() => refused("runs", "of which value?", "add published = …"),
        (None, None) if expect.equal => {
            refused("equal", "which value?", "add published = …, or leave it out")
        }
        (None, None) => Ok(()),
        (None, Some(_)) => refused("margin", "around which value?", "add published = …"),
        (Some(_), None) => refused(
            "published",
            "a published value without a margin",
            "add margin = …: how far from it still counts as it, in the same unit (docs/experiments.md)",
        ),
        (_, Some(margin)) if !(margin.is_finite() && margin > 0.0) => {
            refused("margin", "nothing is within it", "write a positive number in the unit of published")
        }
        (Some(published), Some(margin)) if published != 0.0 && margin > published.abs() => refused(
            "margin",
            "wider than the published value itself, so that nothing at all would count as it",
            "write how far from it still counts as it, in the unit of published",
        ),
        _ if expect.equal && expect.null.is_none() => refused(
            "equal",
            "no difference from what?",
            "add null = \"…\": plain TCP in the place of the path (docs/experiments.md)",
        ),
        _ if expect.null.is_none() && is_beside_another(expect) => refused(
            "published",
            "one flow over another, and nothing says what plain TCP has in its place",
            "add null = \"…\": plain TCP in the place of the path (docs/experiments.md)",
        ),
        _ if !expect.of.statistic.is_judged() => refused(
            "statistic",
            "no error rate of a finding on it is known",
            "the statistics that have one are: mean, geometric_mean, share_within, share_all_within, spearman",
        ),
        _ if expect.runs == Some(0) => refused("runs", "a mean of no runs", "leave it out for one run"),
        _ => Ok(()),
    }
}

/// Whether a value of its own is claimed of one flow over another, and not only an order of cells.
fn is_beside_another(expect: &Expect) -> bool {
    let selector = expect.selector();
    let other = selector.over.is_some_and(|over| over.flows != selector.what.flows);
    other && expect.of.statistic != Statistic::Spearman
}

/// Its numbers are some, and the band holds any.
fn band(expect: &Expect, aim: &Aim<'_>) -> Result<(), Problem> {
    for (key, value) in [("min", expect.min), ("max", expect.max), ("published", expect.published)] {
        if value.is_some_and(|v| !v.is_finite()) {
            return Err(Problem::new(aim.key(key), "not a finite number").help("leave it out for no bound"));
        }
    }
    if expect.unmet.is_some() && expect.min.is_none() && expect.max.is_none() {
        return Err(Problem::new(aim.key("unmet"), "of which band?").help("add min or max, or leave it out"));
    }
    match (expect.min, expect.max) {
        (Some(min), Some(max)) if min > max => {
            Err(Problem::new(aim.key("min"), format!("{min} is above max, {max}: nothing can lie between"))
                .help("exchange min and max"))
        }
        _ => Ok(()),
    }
}

/// Where an expectation or a series stands.
struct Aim<'a> {
    spec: &'a Spec,
    cells: &'a [Cell],
    at: Vec<Key>,
}

impl Aim<'_> {
    fn key(&self, key: &str) -> Vec<Key> {
        self.at.iter().cloned().chain([Key::from(key)]).collect()
    }

    fn unknown_cell(&self, cell: &str, key: &str) -> Problem {
        let labels: Vec<&str> = self.cells.iter().map(|c| c.label.as_str()).collect();
        if labels == [""] {
            return Problem::new(self.key(key), "the experiment has no grid, and so no cells")
                .help(format!("leave out {key}, or add a [[grid]]"));
        }
        Problem::unknown(self.key(key), "cell", cell, &labels)
    }

    fn selector(&self, selector: &Selector, cell: Option<&str>, also: &[String]) -> Result<(), Problem> {
        for (key, cell) in
            cell.map(|c| ("cell", c)).into_iter().chain(also.iter().map(|c| ("ascending", c.as_str())))
        {
            if chosen(self.cells, Some(cell)).is_empty() {
                return Err(self.unknown_cell(cell, key));
            }
        }
        self.of_what_it_names(selector)?;
        let mut cells = match also.first() {
            Some(_) if cell.is_none() => also.iter().flat_map(|c| chosen(self.cells, Some(c))).collect(),
            _ => chosen(self.cells, cell),
        };
        self.what(&selector.what, &cells, "")?;
        if let Some(other) = &selector.over_cell {
            self.beside(other, cell, "over_cell")?;
            cells = cells.iter().filter_map(|c| beside(self.cells, c, other)).collect();
        }
        selector.over.as_ref().map_or(Ok(()), |over| self.what(over, &cells, "over"))
    }

    /// A link is named for metrics of links, flows and their paths for metrics of flows.
    fn of_what_it_names(&self, selector: &Selector) -> Result<(), Problem> {
        let what = &selector.what;
        let metric = what.metric.name();
        let any = |is: fn(Metric) -> bool| selector.whats().any(|w| is(w.metric));
        if what.link.is_some() && !any(Metric::needs_link) {
            return Err(Problem::new(self.key("link"), format!("{metric} is of a flow, wherever it leads"))
                .help("leave it out; queue, drops, carried and ff_bottleneck are of a link"));
        }
        let named = [("flow", !what.flows.is_empty()), ("path", what.path.is_some())];
        let Some((key, _)) = named.into_iter().find(|(_, named)| *named && !any(|m| !m.is_of_link())) else {
            return Ok(());
        };
        Err(Problem::new(self.key(key), format!("{metric} is of a link, whoever sends")).help("leave it out"))
    }

    /// A number over itself is 1 whatever happens.
    fn over_itself(&self, selector: &Selector, cell: Option<&str>) -> Result<(), Problem> {
        let itself = |c: &&Cell| match &selector.over_cell {
            Some(other) => beside(self.cells, c, other) == Some(*c),
            None => true,
        };
        if selector.over.as_ref() != Some(&selector.what) || !chosen(self.cells, cell).iter().any(itself) {
            return Ok(());
        }
        let key = if selector.over_cell.is_some() { "over_cell" } else { "over" };
        Err(Problem::new(self.key(key), "a number over itself is 1 in every run")
            .help("name another flow, path, metric or cell"))
    }

    /// Seen from each chosen cell there is the other one.
    fn beside(&self, other: &str, cell: Option<&str>, key: &str) -> Result<(), Problem> {
        let all = chosen(self.cells, cell);
        let found = all.iter().all(|c| beside(self.cells, c, other).is_some());
        if found { Ok(()) } else { Err(self.unknown_cell(other, key)) }
    }

    /// `key` is `over` for what stands below a fraction.
    fn what(&self, what: &What, cells: &[&Cell], key: &str) -> Result<(), Problem> {
        let name = |short: &'static str| match key {
            "" => self.key(short),
            _ if short == "flow" => self.key("over"),
            _ => self.key(&format!("over_{short}")),
        };
        let scope = what.metric.def().scope;
        if what.metric.needs_link() {
            self.link(what)?;
        }
        self.solo(what, cells)?;
        if !what.metric.is_of_link() {
            let flows: Vec<&str> = self.spec.flow.iter().map(|f| f.name.as_str()).collect();
            let missing = |flow: &&String| !flows.contains(&flow.as_str());
            if let Some(flow) = what.flows.iter().find(missing) {
                return Err(Problem::unknown(name("flow"), "flow", flow, &flows));
            }
            let twice = |n: &usize| what.flows[..*n].contains(&what.flows[*n]);
            if let Some(n) = (0..what.flows.len()).find(twice) {
                let problem = format!("\"{}\" is named twice, and would count twice", what.flows[n]);
                return Err(Problem::new(self.key("flows"), problem).help("name each flow once"));
            }
            let compared = scope == Scope::Flows;
            if what.flows.is_empty() || (compared && what.flows.len() < 2) {
                let help = if compared { "add flows = […]" } else { "add flow = \"…\"" };
                return Err(Problem::new(self.at.clone(), "of which flow?").help(help));
            }
            self.path(what, cells, name("path"))?;
            self.ever(what, cells, name("metric"))?;
            if scope == Scope::Rivals {
                self.rivals(what, cells, name("link"))?;
            }
        }
        self.window(what, cells, [name("from"), name("to")])
    }

    /// The flows can have such a number: one that is 0 or missing whatever happens says nothing.
    fn ever(&self, what: &What, cells: &[&Cell], at: Vec<Key>) -> Result<(), Problem> {
        let flows = cells.iter().flat_map(|c| &c.spec.flow).filter(|f| what.flows.contains(&f.name));
        let Some((flow, (why, help))) = flows.filter_map(|f| Some((f, f.lacks(what.metric)?))).next() else {
            return Ok(());
        };
        let never = format!("\"{}\" never has {}: {why}", flow.name, what.metric.name());
        Err(Problem::new(at, never).help(help))
    }

    /// A flow is compared with other TCPs at a link that all of them lead through.
    fn rivals(&self, what: &What, cells: &[&Cell], at: Vec<Key>) -> Result<(), Problem> {
        let Some(link) = what.link.as_deref().and_then(ends) else { return Ok(()) };
        for Cell { spec, label, .. } in cells {
            let through = |f: &&Flow| spec.leads_through(f, link);
            let (ours, others): (Vec<&Flow>, Vec<&Flow>) =
                spec.flow.iter().filter(through).partition(|f| what.flows.contains(&f.name));
            let missing = match (ours.is_empty(), others.iter().any(|f| f.competes())) {
                (true, _) => format!("\"{}\" does not lead through it", what.flows.join("\", \"")),
                (false, false) => "no other TCP leads through it".to_owned(),
                (false, true) => continue,
            };
            let within = if label.is_empty() { String::new() } else { format!(" in cell {label}") };
            return Err(Problem::new(at, format!("{missing}{within}"))
                .help("name the link that the flow shares with another TCP"));
        }
        Ok(())
    }

    /// Harm, and nothing else, is seen from the cell where the flow is alone.
    fn solo(&self, what: &What, cells: &[&Cell]) -> Result<(), Problem> {
        let needed = what.metric.def().scope == Scope::Alone;
        match &what.solo {
            None if needed => {
                let problem = Problem::new(self.at.clone(), "harm against what?");
                Err(problem.help("add solo = \"…\", the cell in which the flow is alone"))
            }
            Some(_) if !needed => {
                Err(Problem::new(self.key("solo"), "only harm is measured against a flow alone")
                    .help("leave it out, or ask for metric = \"harm\""))
            }
            Some(solo) if cells.iter().any(|c| beside(self.cells, c, solo).is_none()) => {
                Err(self.unknown_cell(solo, "solo"))
            }
            Some(solo)
                if cells.iter().any(|c| beside(self.cells, c, solo).is_some_and(|s| s.label == c.label)) =>
            {
                Err(Problem::new(self.key("solo"), "harm in the cell where the flow is alone is always 0")
                    .help("add cell = \"…\", a cell in which others send"))
            }
            _ => Ok(()),
        }
    }

    fn path(&self, what: &What, cells: &[&Cell], at: Vec<Key>) -> Result<(), Problem> {
        let Some(path) = what.path else { return Ok(()) };
        if what.metric.def().scope != Scope::Path {
            return Err(
                Problem::new(at, "the metric is of the whole flow, not of a path").help("leave it out")
            );
        }
        let paths = |c: &Cell| {
            c.spec.flow.iter().filter(|f| what.flows.contains(&f.name)).map(|f| f.paths.len()).max()
        };
        let most = cells.iter().filter_map(|c| paths(c)).max().unwrap_or(0);
        if path < most {
            return Ok(());
        }
        let count = if most == 1 { "one path, 0".to_owned() } else { format!("{most} paths, from 0") };
        Err(Problem::new(at, format!("there is no path {path}")).help(format!("the flow has {count}")))
    }

    fn link(&self, what: &What) -> Result<(), Problem> {
        let at = self.key("link");
        let Some(link) = &what.link else {
            return Err(Problem::new(at, "at which link?").help("add for example link = \"r->b\""));
        };
        let joined = ends(link).is_some_and(|(a, b)| self.spec.link_between(a, b).is_some());
        if joined {
            return Ok(());
        }
        let links: Vec<String> = self.spec.link.iter().map(|l| format!("{}->{}", l.from, l.to)).collect();
        let known: Vec<&str> = links.iter().map(String::as_str).collect();
        Err(Problem::unknown(at, "link", link, &known))
    }

    /// `at`: of the keys `from` and `to`.
    fn window(&self, what: &What, cells: &[&Cell], at: [Vec<Key>; 2]) -> Result<(), Problem> {
        if what.from.is_none() && what.to.is_none() {
            return Ok(());
        }
        if !what.metric.def().windowed {
            let [from, to] = at;
            let at = if what.from.is_some() { from } else { to };
            return Err(Problem::new(at, "the metric is of the whole run").help("leave out from and to"));
        }
        for cell in cells {
            let (from, to) = what.window(&cell.spec);
            let within =
                if cell.label.is_empty() { String::new() } else { format!(" in cell {}", cell.label) };
            if to > cell.spec.duration.0 {
                let [_, at] = at;
                return Err(Problem::new(at, format!("after the end of the run{within}"))
                    .help(format!("the run takes {}", cell.spec.duration)));
            }
            if from >= to {
                let [at, _] = at;
                return Err(Problem::new(at, format!("no time from here to the end{within}"))
                    .help(format!("what is measured ends at {}: begin earlier", Human(to))));
            }
        }
        Ok(())
    }
}
