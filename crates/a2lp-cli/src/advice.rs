//! What a user can do about an error. Libraries report facts; the options that help are ours, so they are named here.

use crate::features::Feature;
use a2lp_data::{DataError, Field, Problem};

/// The advice for an error, if there is any: a line to print below it.
pub(crate) fn advice(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<DataError>() {
            return about_file(&error.problem);
        }
        about_training(cause)
    })
}

fn about_file(problem: &Problem) -> Option<String> {
    match problem {
        Problem::Exists => Some("pass --force to replace it".into()),
        Problem::LacksFeature { feature, .. } => Some(Feature::named(feature)?.advice().to_string()),
        Problem::LacksField { kind, field, .. } => {
            let option = match field {
                Field::Features => "--feature-column",
                Field::Ids => "--id-column",
                _ => "--label-column",
            };
            Some(format!("name the {kind} to take with {option}"))
        }
        _ => None,
    }
}

#[cfg(feature = "networks")]
fn about_training(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    match cause.downcast_ref()? {
        a2lp_train::TrainError::NoDevice(name) => {
            Some(format!("build with: cargo build --release --features {name}"))
        }
        _ => None,
    }
}

#[cfg(not(feature = "networks"))]
fn about_training(_: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}
