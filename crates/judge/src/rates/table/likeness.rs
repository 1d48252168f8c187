//! Whether ours is as plain TCP. The finding decides with which look it ends: an error counts at any of them, power at the first.

use rayon::prelude::*;

use super::{Chance, LEVEL, Law, RUNS, Row, row};
use crate::{Answer, Ensemble};

/// Ours and plain TCP.
#[derive(Clone, Copy)]
struct Pair {
    ours: Law,
    null: Law,
    margin: f64,
}

impl Pair {
    fn is_said(&self, said: Answer, looks: &[usize], chance: &mut Chance) -> bool {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        looks.iter().any(|runs| {
            a.extend((a.len()..*runs).map(|_| self.ours.draw(chance)));
            b.extend((b.len()..*runs).map(|_| self.null.draw(chance)));
            let of = |law: Law, values| Ensemble::of(law.scale(), values).expect("there are runs");
            of(self.ours, &a).is_like(&of(self.null, &b), self.margin, LEVEL) == said
        })
    }
}

/// Ours so far from a null of 1, whose runs scatter as much or by 0.02; skewed ones too.
fn off(by: &[f64], spread: &[f64]) -> Vec<Pair> {
    let pairs = |sd: f64, by: f64| {
        let of = |null, ours: fn(f64, f64) -> Law| Pair { ours: ours(1.0 + by, sd), null, margin: 0.05 };
        let normal = [sd, 0.02].map(|sd| of(Law::Normal(1.0, sd), Law::Normal));
        let skewed = [sd, 0.02].map(|sd| of(Law::LogNormal(1.0, sd), Law::LogNormal));
        [normal, skewed].concat()
    };
    spread.iter().flat_map(|sd| by.iter().flat_map(move |by| pairs(*sd, *by))).collect()
}

fn shares(of: &[(f64, f64)]) -> Vec<Pair> {
    let pair =
        |(ours, null): &(f64, f64)| Pair { ours: Law::Coin(*ours), null: Law::Coin(*null), margin: 0.2 };
    of.iter().map(pair).collect()
}

fn said(truth: &'static str, said: Answer, looks: &[usize], pairs: &[Pair]) -> Row {
    let words = if said == Answer::Yes { "as plain TCP" } else { "not as plain TCP" };
    let rate = |pair: &Pair| super::rate(|chance| pair.is_said(said, looks, chance));
    row(truth, words.into(), pairs.par_iter().map(rate).collect())
}

pub fn errors() -> [Row; 4] {
    let (all, ends) = ([0.02, 0.1, 0.5], [-0.05, 0.05]);
    let apart = [(0.2, 0.0), (0.3, 0.1), (0.3, 0.5), (0.7, 0.5), (1.0, 0.8)];
    let yes = |truth, pairs: &[Pair]| said(truth, Answer::Yes, &RUNS, pairs);
    let no = |truth, pairs: &[Pair]| said(truth, Answer::No, &RUNS, pairs);
    [
        yes("plain TCP: ours is the margin off", &off(&ends, &all)),
        yes("plain TCP: the same, shares", &shares(&apart)),
        no("plain TCP: ours is the margin off", &off(&ends, &all)),
        no(
            "plain TCP: the same, shares",
            &shares(&[&apart[..], &[(0.0, 0.0), (0.5, 0.5), (0.9, 1.0)]].concat()),
        ),
    ]
}

pub fn powers() -> [Row; 4] {
    let first = &RUNS[..1];
    let yes = |truth, pairs: &[Pair]| said(truth, Answer::Yes, first, pairs);
    let no = |truth, pairs: &[Pair]| said(truth, Answer::No, first, pairs);
    [
        yes("plain TCP: ours is it, runs' deviation up to the margin", &off(&[0.0], &[0.02, 0.05])),
        yes("plain TCP: shares of 0.05 or less", &shares(&[(0.0, 0.0), (0.02, 0.02), (0.05, 0.05)])),
        no("plain TCP: 0.15 off, deviation up to 0.1", &off(&[-0.15, 0.15], &[0.02, 0.1])),
        no("plain TCP: shares 0.6 off", &shares(&[(0.0, 0.6), (0.8, 0.2), (1.0, 0.4)])),
    ]
}
