//! What is held of the paths of a connection.

use polypath_wire::PathId;

use crate::path_map::PathMap;

/// For each path the bottleneck that it leads through, by the first of the paths that share it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Verdict(PathMap<(PathId, PathId)>);

impl Verdict {
    /// The groups that `shared` pairs make, which need not all be named: what shares with one shares with its group.
    pub fn of(paths: impl Iterator<Item = PathId>, shared: impl Fn(PathId, PathId) -> bool) -> Self {
        let mut verdict = Self::default();
        for path in paths {
            let others = verdict.0.len();
            verdict.0.insert((path, path));
            for other in 0..others {
                let other = verdict.0.id_at(other);
                if shared(other, path) {
                    verdict.join(other, path);
                }
            }
        }
        verdict
    }

    fn join(&mut self, a: PathId, b: PathId) {
        let place = |path: PathId| self.0.iter().position(|(_, of)| Some(*of) == self.bottleneck(path));
        let Some((a, b)) = place(a).zip(place(b)) else { return };
        let of = |place: usize| self.0.as_slice()[place].1;
        let (first, other) = (of(a.min(b)), of(a.max(b)));
        self.0.iter_mut().filter(|(_, of)| *of == other).for_each(|(_, of)| *of = first);
    }

    /// Each path and its bottleneck.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, PathId)> {
        self.0.iter().copied()
    }

    /// The bottleneck of `path`, by the first path that leads through it.
    pub fn bottleneck(&self, path: PathId) -> Option<PathId> {
        self.0.get(path).map(|(_, of)| *of)
    }

    /// The paths that share the bottleneck of `path`, itself among them.
    pub fn sharing(&self, path: PathId) -> impl Iterator<Item = PathId> + Clone {
        let of = self.bottleneck(path);
        self.0.iter().filter(move |(_, other)| Some(*other) == of).map(|(path, _)| *path)
    }

    /// The bottlenecks, by their first paths.
    pub fn bottlenecks(&self) -> impl Iterator<Item = PathId> {
        self.iter().filter(|(path, of)| path == of).map(|(path, _)| path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shares_with_one_shares_with_all_of_its_group() {
        let paths = [0, 1, 2, 4].map(PathId);
        let pairs = [(1, 4), (2, 4)];
        let verdict = Verdict::of(paths.into_iter(), |a, b| pairs.contains(&(a.0, b.0)));
        let of = |id| verdict.bottleneck(PathId(id)).map(|p| p.0);
        assert_eq!([0, 1, 2, 3, 4].map(of), [Some(0), Some(1), Some(1), None, Some(1)]);
        assert!(verdict.sharing(PathId(2)).eq([1, 2, 4].map(PathId)));
        assert_eq!(verdict.bottlenecks().collect::<Vec<_>>(), [0, 1].map(PathId));
    }
}
