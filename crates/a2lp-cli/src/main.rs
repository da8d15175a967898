//! The command `a2lp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(a2lp_cli::main(std::env::args_os().collect()))
}
