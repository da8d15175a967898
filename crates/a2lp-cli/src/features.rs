//! What a build may lack, and the command that brings it.

use std::fmt;

/// A part of a2lp that is compiled on request, named after its Cargo feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    pub(crate) is_built: bool,
}

pub(crate) const NETWORKS: Feature = Feature { name: "networks", is_built: cfg!(feature = "networks") };
const TABLES: Feature = Feature { name: "tables", is_built: cfg!(feature = "tables") };
pub(crate) const FIGURES: Feature = Feature { name: "figures", is_built: cfg!(feature = "figures") };
const ALL: [Feature; 3] = [NETWORKS, TABLES, FIGURES];

/// Something was asked for that this build lacks.
#[derive(Debug, thiserror::Error)]
#[error("{what} needs the feature `{}`, which this build of a2lp lacks; {}", feature.name, feature.advice())]
pub(crate) struct Lacking {
    /// What was asked for.
    pub(crate) what: &'static str,
    pub(crate) feature: Feature,
}

impl Feature {
    /// The feature of a library's error.
    pub(crate) fn named(name: &str) -> Option<Feature> {
        ALL.into_iter().find(|feature| feature.name == name)
    }

    /// How to get it, and keep what is there.
    pub(crate) fn advice(self) -> impl fmt::Display {
        let wanted = ALL.into_iter().filter(|feature| feature.is_built || *feature == self);
        let names: Vec<&str> = wanted.map(|feature| feature.name).collect();
        let names = if names.len() == ALL.len() { "full".to_string() } else { names.join(",") };
        format!("get it with: cargo install --path crates/a2lp-cli --force --features {names}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_keeps_what_is_there() {
        let advice = FIGURES.advice().to_string();
        let rest = advice.split("--features ").nth(1).unwrap();
        let has = |name: &str| rest == "full" || rest.split(',').any(|word| word == name);
        for feature in ALL {
            assert_eq!(has(feature.name), feature.is_built || feature == FIGURES, "{advice}");
        }
    }
}
