//! The cells of a grid, and which of them are meant.

use super::Spec;

/// One combination of the grid.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The values of its axes, `round_robin,144p`; empty without a grid.
    pub label: String,
    /// The labels of its values, one per axis.
    pub values: Vec<String>,
    /// The spec with those values, and without the grid.
    pub spec: Spec,
}

impl Cell {
    /// Whether `selector` means this cell: its label, or some of the values that it is made of.
    pub fn matches(&self, selector: &str) -> bool {
        self.label == selector || selector.split(',').all(|part| self.values.iter().any(|v| v == part.trim()))
    }

    /// Its values on the axes beside `axis`.
    pub(crate) fn beside(&self, axis: Option<usize>) -> String {
        let others = self.values.iter().enumerate().filter(|(n, _)| Some(*n) != axis);
        others.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The cells that `selector` means; all without one.
pub fn chosen<'a>(cells: &'a [Cell], selector: Option<&str>) -> Vec<&'a Cell> {
    let exact: Vec<&Cell> = cells.iter().filter(|c| Some(c.label.as_str()) == selector).collect();
    match selector {
        Some(selector) if exact.is_empty() => cells.iter().filter(|c| c.matches(selector)).collect(),
        Some(_) => exact,
        None => cells.iter().collect(),
    }
}

/// The cell that `other` means seen from `cell`: the one with that label, or the one that differs
/// from `cell` in the values that `other` names.
pub fn beside<'a>(cells: &'a [Cell], cell: &Cell, other: &str) -> Option<&'a Cell> {
    let exact = cells.iter().find(|c| c.label == other);
    exact.or_else(|| {
        let mut values = cell.values.clone();
        for part in other.split(',').map(str::trim) {
            let axis = cells.iter().find_map(|c| c.values.iter().position(|v| v == part))?;
            *values.get_mut(axis)? = part.to_owned();
        }
        cells.iter().find(|c| c.values == values)
    })
}
