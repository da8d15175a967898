//! The command line of a2lp, as a library: the binary and the Python package both run it.
//!
//! `args` declares the options, one file per command does the work, `advice` says what to do about errors.
//!
//! ```
//! let code = a2lp_cli::main(["a2lp", "inspect", "no-such-file.npy"].map(Into::into).to_vec());
//! assert_eq!(code, 2);
//! ```
//!
//! Exit codes: 0 done; 1 done, but with a problem to look at; 2 usage or input error; 130 interrupted.

#![warn(clippy::unwrap_used)]

mod advice;
mod args;
mod config;
mod convert;
mod demo;
mod experiment;
#[cfg(feature = "networks")]
mod extract;
mod features;
mod graph;
mod inspect;
mod interrupt;
mod label;
mod memory;
mod output;
mod progress;
mod report;
mod review;
mod table;
#[cfg(feature = "networks")]
mod train;

pub use label::{ClusterRun, set_cluster_runner};

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::Write;
use std::sync::{Once, OnceLock};

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The work is done, but the user should look at something.
    LookAtIt,
}

static COMMAND_LINE: OnceLock<Vec<String>> = OnceLock::new();

/// Runs a command line, program name first, and gives its exit code.
pub fn main(args: Vec<OsString>) -> u8 {
    silence_caught_panics();
    let words = args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // Only the first call of a process counts; there is no second but in tests.
    COMMAND_LINE.set(words).ok();
    match run(args) {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::LookAtIt) => 1,
        Err(error) => exit_code(&error),
    }
}

/// A panic that becomes an error prints nothing of its own.
#[doc(hidden)]
pub fn silence_caught_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !a2lp_data::panic_is_caught() {
                usual(info);
            }
        }));
    });
}

/// Reads a file of options as `--config` does, for the reliability tests.
#[doc(hidden)]
pub fn check_config(path: &std::path::Path) -> Result<(), String> {
    let args = ["a2lp", "label", "--config"].map(OsString::from).into_iter().chain([path.into()]);
    let expanded = config::expand(args.collect()).map_err(|error| format!("{error:#}"))?;
    Cli::try_parse_from(expanded).map(drop).map_err(|error| error.to_string())
}

/// The command line that is being run, for records.
fn command_line() -> Vec<String> {
    COMMAND_LINE.get().cloned().unwrap_or_default()
}

fn run(args: Vec<OsString>) -> anyhow::Result<Outcome> {
    interrupt::listen()?;
    let cli = match Cli::try_parse_from(config::expand(args)?) {
        Ok(cli) => cli,
        // Help and version are no errors; clap writes them where they belong.
        Err(told) => {
            told.print()?;
            return if told.use_stderr() { Err(Usage.into()) } else { Ok(Outcome::Done) };
        }
    };
    match cli.command {
        Command::Label(args) => label::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Review(args) => review::run(&args),
        #[cfg(feature = "networks")]
        Command::Extract(args) => extract::run(&args),
        #[cfg(feature = "networks")]
        Command::Train(args) => train::run(&args),
        #[cfg(feature = "networks")]
        Command::Predict(args) => train::predict(&args),
        #[cfg(not(feature = "networks"))]
        Command::Extract(_) | Command::Train(_) | Command::Predict(_) => {
            Err(features::Lacking { what: "this command", feature: features::NETWORKS }.into())
        }
        Command::Experiment(command) => experiment::run(&command),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "a2lp", &mut script);
            std::io::stdout().write_all(&script)?;
            Ok(Outcome::Done)
        }
        Command::Man { dir } => {
            clap_mangen::generate_to(Cli::command(), &dir)?;
            Ok(Outcome::Done)
        }
    }
}

/// The command line could not be parsed; clap has printed why.
#[derive(Debug, thiserror::Error)]
#[error("usage")]
struct Usage;

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        return 2;
    }
    let closed_pipe = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe);
    if closed_pipe {
        return 0;
    }
    if interrupt::requested() {
        match format!("{error:#}").as_str() {
            "interrupted" => eprintln!("interrupted; nothing was written"),
            told => eprintln!("{told}"),
        }
        return 130;
    }
    eprintln!("error: {error:#}");
    if let Some(advice) = advice::advice(error) {
        eprintln!("{advice}");
    }
    2
}
