//! What exists per path: the only container of it.

use std::ops::{Index, IndexMut};

use polypath_wire::PathId;

/// What belongs to one path and knows to which.
pub trait OfPath {
    /// Whose it is.
    fn path(&self) -> PathId;
}

impl<T> OfPath for (PathId, T) {
    #[inline]
    fn path(&self) -> PathId {
        self.0
    }
}

/// One `T` for each path that is there, in the order in which the paths came. The id of a path that is gone finds nothing,
/// even if another path has its place.
#[derive(Clone, PartialEq, Debug)]
pub struct PathMap<T> {
    entries: Vec<T>,
}

impl<T> Default for PathMap<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<T: OfPath> PathMap<T> {
    /// Adds the entry of a path that has none, in place of the one of an earlier path that had its place.
    pub fn insert(&mut self, entry: T) {
        let place = entry.path().place();
        self.entries.retain(|e| e.path().place() != place);
        self.entries.reserve_exact(1); // most connections have one path, and a vector makes room for four
        self.entries.push(entry);
    }

    /// Takes the entry of `path` away.
    pub fn remove(&mut self, path: PathId) -> Option<T> {
        self.position(path).map(|at| self.entries.remove(at))
    }

    /// Takes all entries away.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Takes the entries away of which `keeps` says no.
    pub fn retain(&mut self, keeps: impl FnMut(&T) -> bool) {
        self.entries.retain(keeps);
    }

    /// The entry of `path`, which is there: made by `new` if it has none yet.
    #[inline]
    pub fn or_insert(&mut self, path: PathId, new: impl FnOnce(PathId) -> T) -> &mut T {
        let at = self.position(path).unwrap_or_else(|| {
            self.insert(new(path));
            self.entries.len() - 1
        });
        &mut self.entries[at]
    }

    /// The entry of `path`.
    #[inline]
    pub fn get(&self, path: PathId) -> Option<&T> {
        match self.entries.get(path.index()) {
            Some(entry) if entry.path() == path => Some(entry),
            _ => self.search(path).map(|at| &self.entries[at]),
        }
    }

    /// The same to change it.
    #[inline]
    pub fn get_mut(&mut self, path: PathId) -> Option<&mut T> {
        let at = path.index();
        match self.entries.get(at) {
            Some(entry) if entry.path() == path => self.entries.get_mut(at),
            _ => self.search(path).map(|at| &mut self.entries[at]),
        }
    }

    /// Whether `path` has an entry.
    #[inline]
    pub fn contains(&self, path: PathId) -> bool {
        self.position(path).is_some()
    }

    /// The path that has this place now.
    pub(crate) fn at_place(&self, place: u8) -> Option<PathId> {
        self.ids().find(|path| path.place() == place)
    }

    /// The paths.
    pub fn ids(&self) -> impl Iterator<Item = PathId> {
        self.entries.iter().map(OfPath::path)
    }

    /// The `n`th path, below [`len`](Self::len): for loops in which the map changes.
    #[inline]
    pub(crate) fn id_at(&self, n: usize) -> PathId {
        self.entries[n].path()
    }

    /// Where the entry of `path` is: at its place, unless paths before it have gone.
    #[inline]
    fn position(&self, path: PathId) -> Option<usize> {
        match self.entries.get(path.index()) {
            Some(entry) if entry.path() == path => Some(path.index()),
            _ => self.search(path),
        }
    }

    #[cold]
    #[inline(never)]
    fn search(&self, path: PathId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.path() == path)
    }
}

impl<T> PathMap<T> {
    /// Number of paths with an entry.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no path has one.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.entries
    }

    /// The same to change them.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.entries
    }

    /// All entries, one after the other.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.entries.iter()
    }

    /// The same to change them.
    #[inline]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }
}

impl<T: OfPath> Index<PathId> for PathMap<T> {
    type Output = T;

    #[inline]
    fn index(&self, path: PathId) -> &T {
        self.get(path).expect("the path is there")
    }
}

impl<T: OfPath> IndexMut<PathId> for PathMap<T> {
    #[inline]
    fn index_mut(&mut self, path: PathId) -> &mut T {
        self.get_mut(path).expect("the path is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(of: &str) -> PathMap<(PathId, char)> {
        let mut map = PathMap::default();
        of.chars().zip(0..).for_each(|(c, n)| map.insert((PathId(n), c)));
        map
    }

    #[test]
    fn the_id_of_a_path_that_is_gone_finds_nothing() {
        let mut map = map("abc");
        assert_eq!(map.remove(PathId(1)), Some((PathId(1), 'b')));
        assert_eq!((map.remove(PathId(1)), map.get(PathId(1)), map.at_place(1)), (None, None, None));
        assert_eq!((map[PathId(0)].1, map[PathId(2)].1, map.len()), ('a', 'c', 2));
        let next = PathId(1 + PathId::PLACES as u16);
        map.insert((next, 'd'));
        assert_eq!(
            (map.get(PathId(1)), map.get(next), map.at_place(1)),
            (None, Some(&(next, 'd')), Some(next))
        );
        assert!(map.ids().eq([PathId(0), PathId(2), next]), "in the order in which they came");
    }

    #[test]
    fn the_next_path_in_a_place_begins_anew() {
        let mut map = map("abc");
        let next = PathId(1 + PathId::PLACES as u16);
        map.or_insert(PathId(1), |path| (path, 'x')).1 = 'y';
        assert_eq!(map.or_insert(next, |path| (path, 'z')).1, 'z');
        assert!(map.len() == 3 && !map.contains(PathId(1)));
    }
}
