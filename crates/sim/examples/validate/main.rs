//! Runs our simulator over the settings of a reference file and prints the same file with our
//! figures: `validate one_flow FILE`, `validate two_flows FILE`, `validate red FILE`. See docs/validation.md.

mod scenario;

use std::error::Error;

use scenario::{OneFlow, Red, TwoFlows};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["one_flow", file] => one_flow(&std::fs::read_to_string(file)?),
        ["two_flows", file] => two_flows(&std::fs::read_to_string(file)?),
        ["red", file] => red(&std::fs::read_to_string(file)?),
        _ => Err("usage: validate one_flow FILE | validate two_flows FILE | validate red FILE".into()),
    }
}

fn one_flow(reference: &str) -> Result<(), Box<dyn Error>> {
    let settings: Vec<OneFlow> = serde_json::from_str(reference)?;
    let ours: Vec<_> = settings.iter().map(OneFlow::simulate).collect::<Result<_, _>>()?;
    println!("{}", serde_json::to_string(&ours)?);
    Ok(())
}

fn two_flows(reference: &str) -> Result<(), Box<dyn Error>> {
    let reference: TwoFlows = serde_json::from_str(reference)?;
    let simulate = |case: &scenario::Case| case.simulate(reference.duration, &reference.starts);
    let cases = reference.cases.iter().map(simulate).collect::<Result<_, _>>()?;
    println!("{}", serde_json::to_string(&TwoFlows { cases, ..reference.clone() })?);
    Ok(())
}

fn red(reference: &str) -> Result<(), Box<dyn Error>> {
    let settings: Vec<Red> = serde_json::from_str(reference)?;
    let ours: Vec<_> = settings.iter().map(Red::simulate).collect::<Result<_, _>>()?;
    println!("{}", serde_json::to_string(&ours)?);
    Ok(())
}
