//! The command `a2lp`.
//!
//! Exit codes: 0 done; 1 done, but with a problem to look at; 2 usage or input error; 130 interrupted.

#![warn(clippy::unwrap_used)]

mod args;
mod config;
mod demo;
mod experiment;
mod graph;
mod inspect;
mod interrupt;
mod label;
mod memory;
mod output;
mod progress;
mod report;
mod table;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use std::io::Write;
use std::process::ExitCode;

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The work is done, but the user should look at something.
    LookAtIt,
}

fn main() -> ExitCode {
    match run() {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::LookAtIt) => ExitCode::from(1),
        Err(error) => exit_code(&error),
    }
}

fn run() -> anyhow::Result<Outcome> {
    interrupt::listen()?;
    let cli = Cli::parse_from(config::expand(std::env::args_os().collect())?);
    match cli.command {
        Command::Label(args) => label::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Report(args) => report::run(&args),
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

fn exit_code(error: &anyhow::Error) -> ExitCode {
    let closed_pipe = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe);
    if closed_pipe {
        return ExitCode::SUCCESS;
    }
    if interrupt::requested() {
        match format!("{error:#}").as_str() {
            "interrupted" => eprintln!("interrupted; nothing was written"),
            told => eprintln!("{told}"),
        }
        return ExitCode::from(130);
    }
    eprintln!("error: {error:#}");
    ExitCode::from(2)
}
