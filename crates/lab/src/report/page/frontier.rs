//! The frontier as one page: harm against utilisation, how each controller's numbers lie, and where it does worst.

use maud::{Markup, html};

use super::figure::figure;
use super::shell;
use crate::frontier::{
    Outcome, Samples, Score, Spread, Worst, reference_runs, repeats, samples, scores, worst,
};
use crate::report::chart::{Chart, Line};
use crate::scenarios::NULL;
use crate::seeds::SeedRange;

/// Points of a distribution, but for its ends.
const STEPS: usize = 100;
/// Ratios below this are drawn there, as an axis of ratios has no zero.
const LEAST: f64 = 0.01;

/// What a page of the frontier is about.
#[derive(Clone, Copy, Debug)]
pub struct Frontier<'a> {
    /// Which scenarios.
    pub scenarios: SeedRange,
    /// Runs per outcome, which is their mean.
    pub runs: u64,
    /// Packets that a bottleneck must hold to count.
    pub pipe: u64,
    /// How many of the worst scenarios of each controller are named.
    pub worst: usize,
    /// The command that makes the page again.
    pub again: &'a str,
}

/// The page of `outcomes`.
pub fn frontier(about: &Frontier<'_>, outcomes: &[Outcome]) -> String {
    let (scores, samples) = (scores(outcomes, about.pipe), samples(outcomes, about.pipe));
    let title = format!("Frontier: scenarios {}", about.scenarios);
    let body = html! {
        header {
            h1 { (title) }
            p.how {
                "Each controller in the same random scenarios, beside the null: one TCP at each bottleneck in its place, the mean of "
                (reference_runs(about.runs)) " other seeds. Of single bottlenecks those count that have TCPs beside it and hold " (about.pipe) " packets. Again: " code { (about.again) }
            }
            (table(&scores))
        }
        main {
            (figure(&harm(&scores)))
            @for chart in distributions(&samples) { (figure(&chart)) }
            h2 { "Worst scenarios" }
            p.how { "Where each leaves the TCPs beside it least of what they have in the null. The command repeats the scenario." }
            @for score in scores.iter().filter(|score| score.controller != NULL) {
                (named(&score.controller, &worst(&score.controller, outcomes, about.pipe, about.worst), about.runs))
            }
        }
    };
    shell(&title, &body, &html! {})
}

/// A row for each controller.
fn table(scores: &[Score]) -> Markup {
    let two = |value: f64| format!("{value:.2}");
    let spread = |of: Option<Spread>| {
        of.map_or("–".to_owned(), |of| format!("{} ({}–{})", two(of.median), two(of.p5), two(of.p95)))
    };
    let percent =
        |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.0} %", share * 100.0));
    html! {
        div.scroll { table {
            thead { tr {
                th { "controller" } th.number { "bottlenecks" } th.number { "of a TCP in its place" } th.number { "harm" }
                th.number { "harm at most 1.05" } th.number { "certainly more" } th.number { "and above theirs" } th.number { "TCPs keep" } th.number { "their round trip" } th.number { "starved" } th.number { "scenarios" }
                th.number { "of its fair share" } th.number { "used" }
            } }
            tbody { @for s in scores { tr {
                td { (s.controller) } td.number { (s.bottlenecks) } td.number { (spread(s.taken)) } td.number { (spread(s.harm)) }
                td.number { (percent(s.harmless)) } td.number { (percent(s.harmful)) } td.number { (percent(s.greedy)) } td.number { (spread(s.left)) } td.number { (spread(s.rtt)) } td.number { (percent(s.starved)) } td.number { (s.scenarios) }
                td.number { (spread(s.share)) } td.number { (spread(s.used)) }
            } } }
        } }
        p.how { "Medians, and where the lowest and the highest twentieth begin. Harm: what the TCPs beside it lose against being alone, over what \
                 they lose to the null. Certainly more: with 95 % confidence, from several runs of each (--runs). And above theirs: its goodput is then above the mean of the TCPs there. Their round trip: over that in the null. Starved: less than 0.3 of such a TCP. Fair share: what one TCP at each bottleneck has. Used: by all, over what all \
                 use in the null." }
    }
}

/// Harm against utilisation: a point for each controller.
fn harm(scores: &[Score]) -> Chart {
    let point = |s: &Score| Some((s.used?.geometric_mean, s.harm?.median));
    Chart {
        title: "Harm against utilisation".into(),
        caption: "Low and to the right is best. At 1 the TCPs beside it lose as much as to one TCP in its place; below 0 they have more than alone."
            .into(),
        x_label: "goodput of all, over the null's (geometric mean)".into(),
        y_label: "harm, over the null's (median)".into(),
        level: Some(1.0),
        lines: lines(scores.iter().map(|s| (s.controller.as_str(), point(s).into_iter().collect()))),
        ..Chart::default()
    }
}

/// How the numbers of each controller lie.
fn distributions(samples: &[(&str, Samples)]) -> Vec<Chart> {
    type Of = fn(&Samples) -> &[f64];
    let all: [(&str, &str, Of); 6] = [
        ("Goodput taken", "goodput at a bottleneck ÷ goodput of one TCP in its place", |s| &s.taken),
        ("Goodput left", "goodput of the TCPs beside it ÷ their goodput beside one TCP", |s| &s.left),
        ("Delay of others", "mean round trip of the TCPs beside it ÷ the same beside one TCP", |s| &s.rtt),
        ("Friendliness", "goodput at a bottleneck ÷ mean goodput of the TCPs there", |s| &s.ff),
        ("Fair share", "goodput in a scenario ÷ goodput of one TCP at each bottleneck", |s| &s.share),
        ("Utilisation", "goodput of all flows in a scenario ÷ the same in the null", |s| &s.used),
    ];
    let chart = |(title, x_label, of): (&str, &str, Of)| Chart {
        title: title.to_owned(),
        caption: format!("Ratios below {LEAST} are drawn there."),
        x_label: x_label.to_owned(),
        y_label: "share of them at or below".into(),
        log: (true, false),
        y_max: Some(1.0),
        lines: lines(samples.iter().map(|(name, samples)| (*name, distribution(of(samples))))),
        ..Chart::default()
    };
    all.into_iter().map(chart).collect()
}

fn lines<'a>(all: impl Iterator<Item = (&'a str, Vec<(f64, f64)>)>) -> Vec<Line> {
    let line = |(label, points): (&str, _)| Line { label: label.to_owned(), points, ..Line::default() };
    all.map(line).collect()
}

/// Which share of `values` lies at or below each of them, at [`STEPS`] steps.
fn distribution(values: &[f64]) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.iter().filter(|v| v.is_finite()).map(|v| v.max(LEAST)).collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let step = |n: usize| n * last / STEPS;
    let mut chosen: Vec<usize> = (0..=STEPS).map(step).collect();
    chosen.dedup();
    let at = |n: usize| Some((*values.get(n)?, (n + 1) as f64 / values.len() as f64));
    let mut points: Vec<(f64, f64)> = chosen.into_iter().filter_map(at).collect();
    points.reverse();
    points.dedup_by(|lower, upper| lower.0 == upper.0); // of equal values the last counts them all
    points.reverse();
    points
}

/// The worst scenarios of one controller, with the command that repeats each.
fn named(controller: &str, worst: &[Worst], runs: u64) -> Markup {
    html! {
        @if !worst.is_empty() {
            h3 { (controller) }
            ol { @for w in worst { li {
                (format!("TCPs keep {:.2}, {:.2} of a TCP, FF {:.2} (a TCP's {:.2}): ", w.left, w.taken, w.ff, w.null_ff))
                code { (repeats(w.scenario, controller, runs)) }
            } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::{At, REFERENCE};
    use crate::scenarios::ALONE;

    #[test]
    fn the_page_has_a_row_for_each_controller_and_the_command_of_its_worst_scenario() {
        let outcome = |controller: &str, ours: f64, rival: f64| {
            let at = vec![At {
                ours,
                rival: Some(rival),
                rivals: vec![rival],
                all: ours + rival,
                rtt: Some(40.0 + ours),
            }];
            Outcome { scenario: 7, controller: controller.to_owned(), at }
        };
        let all = [
            outcome(REFERENCE, 4.0, 4.0),
            outcome(ALONE, 0.0, 8.0),
            outcome(NULL, 4.0, 4.0),
            outcome("greedy", 6.0, 2.0),
        ];
        let about = Frontier {
            scenarios: SeedRange::one(7),
            runs: 4,
            pipe: 0,
            worst: 3,
            again: "polypath lab frontier",
        };
        let page = frontier(&about, &all);
        for part in [
            "<td>greedy</td><td class=\"number\">1</td><td class=\"number\">1.50 (1.50–1.50)</td>",
            "1.50 of a TCP, FF 3.00 (a TCP's 1.00): <code>polypath lab run frontier/7 --cell greedy --seeds 1..4</code>",
            "the mean of 4 other seeds",
            "Harm against utilisation",
            "<td class=\"number\">1.05 (1.05–1.05)</td>",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("--cell null"));
        let nothing = frontier(&about, &[]);
        assert!(nothing.contains("</html>"));
    }

    #[test]
    fn a_distribution_rises_to_one_and_has_each_value_once() {
        assert_eq!(distribution(&[2.0, 1.0, 2.0, 0.0]), [(LEAST, 0.25), (1.0, 0.5), (2.0, 1.0)]);
        assert_eq!(distribution(&[f64::NAN]), []);
        let many: Vec<f64> = (1..=1000).map(f64::from).collect();
        let points = distribution(&many);
        assert_eq!((points.len(), points[0], points[STEPS]), (STEPS + 1, (1.0, 0.001), (1000.0, 1.0)));
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
    }
}
