//! Head-of-line blocking where it can be worked out.

use polypath_lab::run::{Keep, run};
use polypath_lab::spec::{self, Metric, What};

/// A link on which a segment takes 1 ms, and one behind it with next to no time of its own.
fn path(router: &str, delay: &str, last: &str) -> String {
    format!(
        "[[link]]\nfrom = \"a\"\nto = \"{router}\"\nrate = \"12Mbit/s\"\ndelay = \"{delay}\"\n\
         [[link]]\nfrom = \"{router}\"\nto = \"b\"\nrate = \"12Gbit/s\"\ndelay = \"0ms\"\n{last}\n"
    )
}

/// Blocking time, s, and mean out-of-order delay, ms, of 16 full segments that leave in turn on `paths`; the data
/// leaves 20 ms after the start. `slow` is what the last link of the second path has.
fn blocked(paths: &str, slow: &str) -> (f64, f64) {
    let links = path("quick", "10ms", "") + &path("slow", "50ms", slow);
    let text = format!(
        "version = 1\ntitle = \"x\"\nduration = \"2s\"\n[connection]\nscheduler = {{ policy = \"round_robin\" }}\n\
         [[flow]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsize = \"23168B\"\npaths = {paths}\n{links}"
    );
    let experiment = spec::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let run = run(&experiment.cells[0], 1, &Keep::default()).expect("the experiment runs");
    assert!(run.flows[0].completion_s.is_some());
    let of = |metric| {
        let flows = vec!["bulk".to_owned()];
        run.timeline.value(&What { metric, flows, path: None, link: None, solo: None, from: None, to: None })
    };
    of(Metric::HolBlocking).zip(of(Metric::OutOfOrderDelay)).expect("data has come")
}

#[test]
fn nothing_blocks_on_one_path_without_losses() {
    assert_eq!(blocked("[[\"quick\"]]", ""), (0.0, 0.0));
}

/// The even segments arrive by the quick path after 11, 12, … 18 ms, the odd ones by the slow path after 51, 52, … 58.
const BOTH: &str = "[[\"quick\"], [\"slow\"]]";

#[test]
fn what_the_quick_path_brings_waits_for_the_slow_one() {
    // From the second even one, 12, to the last but one of the odd, 57. Each even one but the first waits 39.
    let (time, delay) = blocked(BOTH, "");
    assert!((time - 0.045).abs() < 1e-9 && (delay - 7.0 * 39.0 / 16.0).abs() < 1e-6, "{time} {delay}");
}

#[test]
fn a_lost_segment_blocks_all_after_it_until_its_repair_is_there() {
    // The second of the odd ones, 3, is lost at 52. Three later ones of its path have come at 55, of which the sender
    // hears at 105; 3 comes again by the quick path at 116. An acknowledgment takes less than 0.05.
    let lost = "change = [{ at = \"71.6ms\", up = false }, { at = \"72.6ms\", up = true }]";
    let (time, delay) = blocked(BOTH, lost);
    assert!((0.104..0.10405).contains(&time), "{time}");
    // 2 waits 39, then 4, 6, … 14 from 103 to 98, and 5, 7, … 15 from 63 to 58.
    let waits = 39.0 + 6.0 * 100.5 + 6.0 * 60.5;
    assert!((waits / 16.0..(waits + 12.0 * 0.05) / 16.0).contains(&delay), "{delay}");
}
