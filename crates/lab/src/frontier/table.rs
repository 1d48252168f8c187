//! Outcomes as a table.

use arrow_array::RecordBatch;
use polypath_judge::Answer;

use super::Outcome;
use super::samples::beside;
use crate::columns::{self, Column};
use crate::scenarios::Scenario;

/// A row for each outcome and bottleneck.
pub fn table(outcomes: &[Outcome]) -> RecordBatch {
    let beside = beside(outcomes);
    let harmful = |o: &Outcome, n: usize| beside.get(&o.scenario)?.harmful(o, n).map(name);
    type Row<'a> = (&'a Outcome, usize);
    type Col<'a> = Column<'a, Row<'a>>;
    let rows: Vec<Row<'_>> = outcomes.iter().flat_map(|o| (0..o.at.len()).map(move |n| (o, n))).collect();
    let columns = [
        Col::whole("scenario", |(o, _)| Some(o.scenario)),
        Col::text("controller", |(o, _)| Some(o.controller.clone())),
        Col::whole("bottleneck", |(_, n)| Some(*n as u64)),
        Col::whole("paths", |(o, n)| Some(Scenario::draw(o.scenario).through(*n).count() as u64)),
        Col::number("rate_bps", |(o, n)| Some(Scenario::draw(o.scenario).bottlenecks[*n].rate.0 as f64)),
        Col::text("rival", |(o, _)| Some(Scenario::draw(o.scenario).rival.law().to_owned())),
        Col::number("ours_bps", |(o, n)| Some(o.at[*n].ours)),
        Col::number("rival_bps", |(o, n)| o.at[*n].rival),
        Col::number("all_bps", |(o, n)| Some(o.at[*n].all)),
        Col::number("rival_rtt_ms", |(o, n)| o.at[*n].rtt),
        Col::text("harmful", |(o, n)| harmful(o, *n)),
    ];
    columns::table(&columns, &rows)
}

/// As JSON has it.
fn name(answer: Answer) -> String {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Open => "open",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::{At, REFERENCE};
    use super::*;
    use crate::scenarios::ALONE;

    #[test]
    fn a_row_says_whether_harm_is_certain() {
        let of = |controller: &str, rivals: &[f64]| {
            let rival = rivals.iter().sum::<f64>() / rivals.len() as f64;
            let at =
                At { ours: 4.0, rival: Some(rival), rivals: rivals.to_vec(), all: 4.0 + rival, rtt: None };
            Outcome { scenario: 1, controller: controller.to_owned(), at: vec![at] }
        };
        let outcomes = [
            of(REFERENCE, &[3.9, 4.0, 4.1]),
            of(ALONE, &[8.0; 3]),
            of("greedy", &[2.9, 3.0, 3.1]),
            of("lucky", &[2.0, 3.5, 5.0]),
            of("once", &[3.0]),
        ];
        let mut csv = Vec::new();
        columns::write_csv(&table(&outcomes), &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let last = |row: &str| row.split(',').next_back().unwrap().to_owned();
        let all: Vec<String> = csv.lines().map(last).collect();
        assert_eq!(all[3..], ["yes", "open", ""]);
    }
}
