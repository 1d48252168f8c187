//! What tests ask of a table: how many of its entries were looked at.

/// Counts in tests only.
#[derive(Debug, Default)]
pub(crate) struct Looks(#[cfg(test)] std::cell::Cell<usize>);

impl Looks {
    /// One more was looked at.
    #[inline]
    pub fn count(&self) {
        #[cfg(test)]
        self.0.update(|looks| looks + 1);
    }

    /// How many were.
    #[cfg(test)]
    pub fn get(&self) -> usize {
        self.0.get()
    }
}
