//! What is held of the paths of a connection.

use polypath_wire::{PathId, PathSet};

/// For each path the bottleneck that it leads through, by the smallest id of the paths that share it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict(Vec<Option<PathId>>);

impl Verdict {
    /// The groups that `shared` pairs make, which need not all be named: what shares with one shares with its group.
    pub fn of(paths: PathSet, shared: impl Fn(PathId, PathId) -> bool) -> Self {
        let mut verdict = Self(Vec::new());
        for path in paths.iter() {
            verdict.0.resize(path.index() + 1, None);
            verdict.0[path.index()] = Some(path);
        }
        for b in paths.iter() {
            for a in paths.iter().take_while(|a| *a < b) {
                if shared(a, b) {
                    verdict.join(a, b);
                }
            }
        }
        verdict
    }

    fn join(&mut self, a: PathId, b: PathId) {
        let (a, b) = (self.bottleneck(a), self.bottleneck(b));
        let (first, other) = (a.min(b), a.max(b));
        self.0.iter_mut().filter(|of| **of == other).for_each(|of| *of = first);
    }

    /// The bottleneck of `path`, by the first path that leads through it.
    pub fn bottleneck(&self, path: PathId) -> Option<PathId> {
        self.0.get(path.index()).copied().flatten()
    }

    /// The paths that share the bottleneck of `path`, itself among them.
    pub fn sharing(&self, path: PathId) -> PathSet {
        let of = self.bottleneck(path);
        let ids = (0u8..).zip(&self.0).filter(|(_, other)| of.is_some() && **other == of);
        ids.map(|(id, _)| PathId(id)).collect()
    }

    /// The bottlenecks, by their first paths.
    pub fn bottlenecks(&self) -> PathSet {
        self.0.iter().flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shares_with_one_shares_with_all_of_its_group() {
        let paths: PathSet = [0, 1, 2, 4].map(PathId).into_iter().collect();
        let pairs = [(1, 4), (2, 4)];
        let verdict = Verdict::of(paths, |a, b| pairs.contains(&(a.0, b.0)));
        let of = |id| verdict.bottleneck(PathId(id)).map(|p| p.0);
        assert_eq!([0, 1, 2, 3, 4].map(of), [Some(0), Some(1), Some(1), None, Some(1)]);
        assert_eq!(verdict.sharing(PathId(2)).iter().map(|p| p.0).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(verdict.bottlenecks().iter().map(|p| p.0).collect::<Vec<_>>(), [0, 1]);
    }
}
