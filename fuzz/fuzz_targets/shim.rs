//! Any bytes are a frame of the packet lane that comes back, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use polypath_wire::shim::Frame;

fuzz_target!(|bytes: &[u8]| {
    let Ok(frame) = Frame::parse(bytes) else { return };
    let mut out = [0; 512];
    let len = match &frame {
        Frame::Packet(shim) => shim.emit(&mut out),
        Frame::Report(report) => report.emit(&mut out),
        Frame::Ask(ask) => ask.emit(&mut out),
    };
    let len = len.expect("there is room");
    assert_eq!(Frame::parse(&out[..len]), Ok(frame));
});
