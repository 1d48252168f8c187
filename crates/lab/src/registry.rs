//! Algorithms by name, for specs, the command line and the docs. The config enums of the transport are the registry.

use polypath_transport::Registry;
use serde::de::DeserializeOwned;
use serde_json::json;

/// The algorithm of `T` named `name`, with the defaults of its paper.
pub fn by_name<T: Registry + DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(json!({ T::TAG: name })).ok()
}

/// The table of the docs.
pub fn table<T: Registry>() -> String {
    let rows = T::ALL.iter().map(|about| format!("| `{}` | {} |\n", about.name, about.help));
    format!("| `{}` | |\n|---|---|\n{}", T::TAG, rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use polypath_transport::{CcConfig, LossConfig, SchedulerConfig};

    /// serde's message for a name it does not know lists those it does.
    fn known_to_serde<T: Registry + DeserializeOwned>() -> Vec<String> {
        let error = serde_json::from_value::<T>(json!({ T::TAG: "" })).err().map(|e| e.to_string());
        error.unwrap_or_default().split('`').skip(3).step_by(2).map(str::to_owned).collect()
    }

    /// Of all that a spec may name: ours, and those that the program supplies.
    fn names<T: Registry>() -> Vec<&'static str> {
        T::ALL.iter().map(|about| about.name).chain(["external"]).collect()
    }

    #[test]
    fn an_algorithm_is_called_the_same_in_specs_and_by_itself() {
        assert_eq!(known_to_serde::<CcConfig>(), names::<CcConfig>());
        assert_eq!(known_to_serde::<SchedulerConfig>(), names::<SchedulerConfig>());
        let losses: Vec<_> = LossConfig::ALL.iter().map(|about| about.name).collect();
        assert_eq!(known_to_serde::<LossConfig>(), losses);
        for about in CcConfig::ALL {
            assert_eq!(by_name::<CcConfig>(about.name).unwrap().about(), *about);
        }
        for about in SchedulerConfig::ALL {
            let one: SchedulerConfig = by_name(about.name).unwrap();
            assert_eq!(serde_json::to_value(one).unwrap()["policy"], about.name);
        }
    }

    #[test]
    fn the_docs_list_every_algorithm_in_its_own_words() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        for table in [table::<CcConfig>(), table::<SchedulerConfig>(), table::<LossConfig>()] {
            assert!(docs.contains(&table), "docs/experiments.md lacks this table:\n{table}");
        }
    }
}
