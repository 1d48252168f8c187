//! How long data is under way, one way.

use polypath_lab::metric::Metric;
use polypath_lab::run::{Keep, run};
use polypath_lab::spec;

/// The percentiles of the flow `f`, ms, over a link of 8 Mbit/s and 10 ms.
fn delays(flow: &str) -> [f64; 3] {
    let text = format!(
        "version = 1\ntitle = \"x\"\nduration = \"4s\"\nmeasure_from = \"1s\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nqueue = \"1000p\"\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{flow}\n"
    );
    let measured = ["delay_p50", "delay_p95", "delay_p99"];
    let measure = measured
        .map(|metric| format!("[[measure]]\nclaim = \"{metric}\"\nmetric = \"{metric}\"\nflow = \"f\"\n"));
    let experiment = spec::parse(&(text + &measure.concat()), "x.toml").unwrap_or_else(|e| panic!("{e}"));
    let run = run(&experiment.cells[0], 1, &Keep::default()).expect("it runs");
    [Metric::DelayP50, Metric::DelayP95, Metric::DelayP99]
        .map(|one| run.metric(one, "f").expect("data arrived"))
}

#[test]
fn a_packet_on_an_empty_link_is_under_way_for_its_delay_and_its_transmission() {
    let udp = delays("traffic = { cbr = { rate = \"1Mbit/s\", packet = \"1000B\" } }");
    assert!(udp.iter().all(|ms| (ms - 11.0).abs() < 0.05), "{udp:?}");
}

#[test]
fn a_byte_waits_in_the_queue_that_its_window_fills() {
    let short = delays("mss = 1000\nconnection = { receive_buffer = \"2p\" }");
    assert!(short.iter().all(|ms| (11.0..13.0).contains(ms)), "{short:?}");
    // 400 packets of some 1040 bytes: 416 ms at 8 Mbit/s in all, most of which wait for the link.
    let long = delays("mss = 1000\nconnection = { receive_buffer = \"400p\" }");
    assert!(long[0] > 250.0 && long[0] <= long[1] && long[1] <= long[2] && long[2] < 450.0, "{long:?}");
}
