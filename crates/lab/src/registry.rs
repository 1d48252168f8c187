//! Names of algorithms. The config enums of the transport are the registry; this asks them.

use serde::de::DeserializeOwned;
use serde_json::json;

/// Every name that `T`, an enum told apart by the key `tag`, knows.
pub fn names<T: DeserializeOwned>(tag: &str) -> Vec<String> {
    // serde's message for a name it does not know lists those it does.
    match serde_json::from_value::<T>(json!({ tag: "" })) {
        Ok(_) => Vec::new(),
        Err(e) => e.to_string().split('`').skip(3).step_by(2).map(str::to_owned).collect(),
    }
}

/// The variant of `T` named `name`, with the defaults of its paper.
pub fn by_name<T: DeserializeOwned>(tag: &str, name: &str) -> Option<T> {
    serde_json::from_value(json!({ tag: name })).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polypath_transport::{cc::CcConfig, sched::SchedulerConfig};

    #[test]
    fn the_enums_are_the_registry() {
        assert!(names::<CcConfig>("algorithm").contains(&"newreno".to_owned()));
        let schedulers = names::<SchedulerConfig>("policy");
        assert!(schedulers.len() >= 3, "{schedulers:?}");
        for name in schedulers {
            let one: SchedulerConfig = by_name("policy", &name).unwrap();
            assert_eq!(serde_json::to_value(one).unwrap()["policy"], name);
        }
    }
}
