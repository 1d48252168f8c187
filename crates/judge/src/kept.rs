//! Findings that numbers allow which are kept without their runs.

use super::ensemble::{ENOUGH, FAR, TAIL, difference, half_width, share};
use super::{Answer, Asked, Claim, Interval, Judgement, LEVEL, Scale, Side, judge};

const ANY: [Answer; 3] = [Answer::Yes, Answer::No, Answer::Open];

/// What is kept of an ensemble.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Kept {
    /// What kind of number it is.
    pub scale: Scale,
    /// How many runs.
    pub n: usize,
    /// Its mean; of a null its middle.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean; none of a share, or of a null.
    pub ci95: Option<f64>,
    /// Where 95 % of the means of as many runs lie as the paper's, if that is kept.
    pub ends: Option<Interval>,
}

impl Kept {
    /// Confidence interval of the mean, as [`super::Ensemble::confidence`].
    fn confidence(&self, level: f64) -> Interval {
        let wider = half_width(self.n, level, 1.0) / half_width(self.n, 0.95, 1.0);
        let half = self.ci95.map_or(f64::INFINITY, |ci| ci * wider);
        match (self.scale, self.ci95) {
            (Scale::Share, _) => share(self.hits(), self.n, level),
            (Scale::Geometric, Some(ci)) => {
                Interval::around(self.mean.ln(), (ci / self.mean).asinh() * wider).exp()
            }
            _ => Interval::around(self.mean, half),
        }
    }

    fn hits(&self) -> usize {
        (self.mean * self.n as f64).round() as usize
    }

    /// What [`super::Ensemble::may_give`] may have said.
    fn may_give(&self, value: f64, k: u32) -> Vec<Answer> {
        let above = |hits: usize, share_of: f64| share(hits, self.n, LEVEL).is_beside(Side::Above, share_of);
        match self.ends {
            _ if self.scale == Scale::Share => {
                let hits = if value >= 0.5 { self.hits() } else { self.n - self.hits() };
                vec![above(hits, (2.0 * TAIL).powf(1.0 / f64::from(k.max(1))))]
            }
            None => ANY.to_vec(),
            Some(ends) if k > 1 => vec![ends.contains(value).into()],
            Some(_) if self.n < ENOUGH => ANY.to_vec(),
            Some(ends) => {
                let rank = (TAIL * (self.n + 1) as f64).floor() as usize;
                let beyond = if ends.contains(value) { rank..self.n / 2 + 1 } else { 0..rank };
                let said = beyond.map(|runs| above(runs, TAIL));
                let none = if ends.contains(value) { None } else { Some(Answer::No) }; // far from all of them
                let only_none = none.filter(|_| self.is_far(value, ends));
                if only_none.is_some() { vec![Answer::No] } else { said.chain(none).collect() }
            }
        }
    }

    /// So far beyond the ends that, wherever the quartiles lie, it is no run's.
    fn is_far(&self, value: f64, ends: Interval) -> bool {
        let at = |v: f64| match self.scale {
            Scale::Ratio | Scale::Geometric => v.max(f64::MIN_POSITIVE).ln(),
            _ => v,
        };
        let end = if value > self.mean { ends.high } else { ends.low };
        (at(value) - at(self.mean)).abs() > FAR * (at(end) - at(self.mean)).abs()
    }

    /// What [`super::Ensemble::is_beside`] may have said of it and `null`, whose scatter is not kept.
    fn is_beside(&self, null: &Self, side: Side, margin: f64) -> Vec<Answer> {
        let ours = self.confidence(LEVEL);
        let (near, far) = match side {
            Side::Above => (ours.low, ours.high),
            Side::Below => (ours.high, ours.low),
        };
        let beyond = |value: f64, end: f64| Side::of(value, end, 0.0) == Some(side);
        let end = null.ends.map_or(null.mean, |ends| if side == Side::Above { ends.high } else { ends.low });
        let is_surely = beyond(near, end) && beyond(near, side.beyond(null.mean, 2.0 * margin));
        // A ratio is judged by logarithms, whose mean is smaller than the ratios' own.
        let is_seen = side == Side::Above || self.scale == Scale::Linear || self.scale == Scale::Share;
        match () {
            () if is_surely => vec![Answer::Yes],
            () if is_seen && !beyond(far, null.mean) => vec![Answer::No],
            () => ANY.to_vec(),
        }
    }
}

/// The findings on `claim` that the kept numbers of `ours` and `null` allow: one, but where a test needs numbers that are not kept.
pub fn allowed(claim: &Claim, ours: &Kept, null: Option<&Kept>) -> Vec<Judgement> {
    let confidence = ours.confidence(LEVEL);
    let mut found = Vec::new();
    for told_apart in told_apart(claim, ours, null) {
        for on_claimed_side in on_claimed_side(claim, ours, null) {
            found.push(judge(claim, confidence, Asked { told_apart, on_claimed_side }));
        }
    }
    found
}

/// What [`super::Ensemble::is_like`] may have said of `ours` and `null`.
pub fn may_be_like(ours: &Kept, null: &Kept, margin: f64) -> Vec<Answer> {
    if ours.scale == Scale::Share {
        let of = |kept: &Kept| (kept.hits(), kept.n);
        return vec![difference(of(ours), of(null), LEVEL).is_in(Interval::around(0.0, margin))];
    }
    let [above, below] = [Side::Above, Side::Below].map(|side| ours.is_beside(null, side, margin));
    above.iter().flat_map(|a| below.iter().map(move |b| !a.or(*b))).collect()
}

fn told_apart(claim: &Claim, ours: &Kept, null: Option<&Kept>) -> Vec<Answer> {
    let Some(null) = null else { return vec![Answer::Yes] };
    let never = |of: &Kept| of.may_give(claim.published, claim.runs).into_iter().map(|given| !given);
    if !claim.equal {
        let is_apart = Side::of(claim.published, null.mean, claim.margin).is_some();
        return never(null).map(|never| never.and(is_apart.into())).collect();
    }
    let narrow = null.ends.map(|ends| Answer::from(ends.half_width() <= claim.margin));
    let of_ours: Vec<Answer> = if claim.runs > 1 { ANY.to_vec() } else { never(ours).collect() };
    let of_null: Vec<Answer> = never(null).collect();
    let narrow = narrow.map_or(ANY.to_vec(), |narrow| vec![narrow]);
    let pairs = narrow.iter().flat_map(|a| of_null.iter().map(move |b| a.or(*b)));
    pairs.flat_map(|a| of_ours.iter().map(move |b| a.or(*b))).collect()
}

fn on_claimed_side(claim: &Claim, ours: &Kept, null: Option<&Kept>) -> Vec<Answer> {
    let is_ratio = matches!(ours.scale, Scale::Ratio | Scale::Geometric);
    let neutral = if is_ratio { Some(1.0) } else { null.map(|null| null.mean) };
    let side = neutral.filter(|_| !claim.equal).and_then(|n| Side::of(claim.published, n, claim.margin));
    match (side, null) {
        (None, _) => vec![Answer::No],
        (Some(side), Some(null)) => ours.is_beside(null, side, claim.margin),
        (Some(side), None) => {
            vec![ours.confidence(LEVEL).is_beside(side, side.beyond(1.0, claim.margin))]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ensemble, Finding, rates::drawn};

    fn kept(of: &Ensemble, scale: Scale, mean: f64, ci95: Option<f64>) -> Kept {
        Kept { scale, n: 50, mean, ci95, ends: Some(of.means_of(1)) }
    }

    #[test]
    fn what_the_runs_say_is_among_what_their_kept_numbers_allow() {
        let mut narrowed = 0;
        for case in 0..400u32 {
            let step = f64::from(case);
            let (sd, null_sd) = (0.01 + 0.02 * (step % 7.0), 0.01 + 0.03 * (step % 5.0));
            let ours = drawn(u64::from(case), 50, 0.8 + 0.01 * (step % 60.0), sd);
            let null = drawn(1_000 + u64::from(case), 50, 0.7 + 0.013 * (step % 50.0), null_sd);
            let scale = if case % 2 == 0 { Scale::Ratio } else { Scale::Linear };
            let (a, b) = (Ensemble::of(scale, &ours).unwrap(), Ensemble::of(scale, &null).unwrap());
            let claim = Claim { published: 1.11, margin: 0.05, runs: 1, equal: case % 3 == 0 };
            let said = judge(&claim, a.confidence(LEVEL), Asked::of(&claim, &a, Some(&b)));
            let ci95 = crate::Summary::of(&ours).unwrap().ci95;
            let of_null = kept(&b, scale, b.middle(), None);
            let all = allowed(&claim, &kept(&a, scale, a.mean(), ci95), Some(&of_null));
            assert!(all.contains(&said), "{case}: {said:?} {all:?}");
            let like = a.is_like(&b, claim.margin, LEVEL);
            let may_be = may_be_like(&kept(&a, scale, a.mean(), ci95), &of_null, claim.margin);
            assert!(may_be.contains(&like), "{case}: {like:?} {may_be:?}");
            let others = [Finding::Reproduced, Finding::DirectionOnly, Finding::Refuted];
            narrowed += usize::from(others.iter().any(|f| all.iter().all(|j| j.finding != *f)));
        }
        assert!(narrowed > 380, "{narrowed} of 400 exclude a finding");
    }
}
