//! What a flow loses beside others of what it has alone.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use polypath_lab::check::check;
use polypath_lab::run::Keep;
use polypath_lab::seeds::SeedRange;
use polypath_lab::stop::Stop;
use polypath_lab::sweep::sweep;

use crate::runs::{BULK, one_link};

#[test]
fn harm_is_what_a_flow_loses_of_what_it_has_alone_and_is_compared_with_another_cells() {
    let cells = "{ label = \"alone\", set = { \"flow.other.size\" = \"0B\" } }, { label = \"tcp\", set = {} }, \
                 { label = \"half\", set = { \"flow.other.stop\" = \"10s\" } }";
    let expect = "[[expect]]\nmetric = \"harm\"\nflow = \"bulk\"\nsolo = \"alone\"\nmin = -1\n";
    let text = format!(
        "{BULK}{}start = \"2s\"\n[[grid]]\nname = \"other\"\nvalues = [{cells}]\n\
         {expect}cell = \"tcp\"\n{expect}cell = \"half\"\nover_cell = \"tcp\"\n",
        BULK.replace("bulk", "other")
    );
    let experiment = one_link(&text);
    let runs =
        sweep(&experiment.cells, SeedRange::one(1), &Keep::default(), &Stop::default(), |_| ()).unwrap();
    let [alone, tcp, half] = [0, 1, 2].map(|n| runs[n].flows[0].goodput_bps);
    let verdicts = check((&experiment, &runs), &[]);
    let of = |n: usize| verdicts[n].value.expect("it has one");
    assert!(of(0) > 0.2 && (of(0) - (1.0 - tcp / alone)).abs() < 1e-12, "{}", of(0));
    assert!(of(1) < 0.9 && (of(1) - (1.0 - half / alone) / (1.0 - tcp / alone)).abs() < 1e-12, "{}", of(1));
}

#[test]
fn what_has_nothing_alone_has_no_harm() {
    let cells = "{ label = \"alone\", set = { \"flow.bulk.size\" = \"0B\" } }, \
                 { label = \"tcp\", set = {} }";
    let text = format!(
        "{BULK}[[grid]]\nname = \"other\"\nvalues = [{cells}]\n\
         [[expect]]\nmetric = \"harm\"\nflow = \"bulk\"\nsolo = \"alone\"\nmax = 1\ncell = \"tcp\"\n"
    );
    let experiment = one_link(&text);
    let runs =
        sweep(&experiment.cells, SeedRange::one(1), &Keep::default(), &Stop::default(), |_| ()).unwrap();
    let verdict = check((&experiment, &runs), &[]).remove(0);
    assert_eq!((verdict.value, verdict.n, verdict.met), (None, 0, false));
}

#[test]
fn harm_in_delay_is_the_share_of_its_round_trip_that_others_cause() {
    // Four packets of 1.5 ms fill nothing. The other one's window swings between 1.5 and 3 times what 60 ms hold.
    let cells =
        "{ label = \"alone\", set = { \"flow.other.size\" = \"0B\" } }, { label = \"tcp\", set = {} }";
    let expect = |metric: &str| format!("[[expect]]\nmetric = \"{metric}\"\nflow = \"bulk\"\nmin = 0\n");
    let text = format!(
        "{BULK}connection = {{ receive_buffer = 5792 }}\n{}[[grid]]\nname = \"other\"\nvalues = [{cells}]\n\
         {}cell = \"alone\"\n{}cell = \"tcp\"\n{}cell = \"tcp\"\nsolo = \"alone\"\n",
        BULK.replace("bulk", "other"),
        expect("mean_srtt"),
        expect("mean_srtt"),
        expect("harm_delay")
    );
    let experiment = one_link(&text);
    let runs =
        sweep(&experiment.cells, SeedRange::one(1), &Keep::default(), &Stop::default(), |_| ()).unwrap();
    let verdicts = check((&experiment, &runs), &[]);
    let [alone, beside, harm] = [0, 1, 2].map(|n| verdicts[n].value.expect("it has one"));
    assert!((60.0..70.0).contains(&alone) && (100.0..190.0).contains(&beside), "{alone} {beside}");
    assert!((harm - (1.0 - alone / beside)).abs() < 1e-12, "{harm}");
}
