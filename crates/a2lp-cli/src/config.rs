//! Options from a TOML file. They are turned into arguments that stand before the user's own, so they are
//! parsed, checked and explained by the same code, and the user's win.

use crate::args::Cli;
use anyhow::{Context, bail};
use clap::CommandFactory;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Replaces `--config FILE` by what the file says.
pub(crate) fn expand(args: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
    let Some(path) = config_path(&args) else {
        return Ok(args);
    };
    let cli = Cli::command();
    let Some(command) = args.get(1).and_then(|name| cli.find_subcommand(name)) else {
        return Ok(args);
    };
    let text = std::fs::read_to_string(&path).with_context(|| Path::new(&path).display().to_string())?;
    let table: toml::Table =
        text.parse().with_context(|| format!("{} is not valid TOML", Path::new(&path).display()))?;
    let mut expanded = args[..2].to_vec();
    for (key, value) in &table {
        let known: Vec<&str> =
            command.get_arguments().filter_map(|a| a.get_long()).filter(|k| *k != "config").collect();
        if !known.contains(&key.as_str()) {
            let nearest = known
                .iter()
                .max_by(|a, b| strsim::jaro_winkler(a, key).total_cmp(&strsim::jaro_winkler(b, key)));
            let nearest = nearest.copied().unwrap_or_default();
            bail!("{}: unknown option '{key}'; did you mean '{nearest}'?", Path::new(&path).display());
        }
        let flag = format!("--{key}");
        let by_user = |arg: &OsString| {
            arg.to_str().is_some_and(|arg| {
                arg.strip_prefix(&flag).is_some_and(|r| r.is_empty() || r.starts_with('='))
            })
        };
        if args[2..].iter().any(by_user) {
            continue;
        }
        let word = |value: &toml::Value| match value {
            toml::Value::String(text) => Ok(text.clone()),
            toml::Value::Integer(number) => Ok(number.to_string()),
            toml::Value::Float(number) => Ok(number.to_string()),
            _ => bail!(
                "{}: '{key}' must be a number, a string, a list of them, or true/false",
                Path::new(&path).display()
            ),
        };
        match value {
            toml::Value::Boolean(true) => expanded.push(flag.into()),
            toml::Value::Boolean(false) => {}
            toml::Value::Array(values) => {
                for value in values {
                    expanded.push(format!("{flag}={}", word(value)?).into());
                }
            }
            value => expanded.push(format!("{flag}={}", word(value)?).into()),
        }
    }
    expanded.extend_from_slice(&args[2..]);
    Ok(expanded)
}

fn config_path(args: &[OsString]) -> Option<OsString> {
    let mut args = args.iter().skip(2);
    while let Some(arg) = args.next() {
        if arg == OsStr::new("--config") {
            return args.next().cloned();
        }
        if let Some(path) = arg.to_str().and_then(|a| a.strip_prefix("--config=")) {
            return Some(path.into());
        }
    }
    None
}
