//! The commands that this build lacks: they are listed, take any option, and say how to get them.

use super::*;
use crate::features::{Lacking, NETWORKS};

/// Takes whatever a command would.
macro_rules! absent {
    ($($name:ident: $about:literal;)*) => {$(
        #[derive(Args)]
        #[command(about = concat!($about, " [needs the feature `networks`]"), disable_help_flag = true)]
        pub(crate) struct $name {
            #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
            _options: Vec<std::ffi::OsString>,
        }
    )*};
}

absent! {
    ExtractArgs: "Turn images into features";
    TrainArgs: "Train a network that works in the target domain";
    PredictArgs: "Label new items with a network that `a2lp train` made";
}

/// The value of `--learners`, which trains.
pub(super) fn learners(_: &str) -> Result<String, Lacking> {
    Err(Lacking { what: "training", feature: NETWORKS })
}
