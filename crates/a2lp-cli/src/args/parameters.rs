//! The parameters of the method as options, made from their table.

use super::{EVERYDAY, PAPERS};
use a2lp::{Group, Kind, ParameterInfo, Parameters};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};

/// The parameters that were given, as the user wrote them.
#[derive(Clone, Default)]
pub(crate) struct ParameterArgs(Vec<(&'static ParameterInfo, String)>);

/// Every parameter except `quality`: `label` measures it by default, and `--no-quality` turns it off.
fn table() -> impl Iterator<Item = &'static ParameterInfo> {
    Parameters::table().iter().filter(|info| info.name != "quality")
}

impl ParameterArgs {
    /// Sets what was given.
    pub(crate) fn apply(&self, mut parameters: Parameters) -> Parameters {
        for (info, text) in &self.0 {
            let is_set = info.parse(text).is_some_and(|value| info.set(&mut parameters, value));
            debug_assert!(is_set, "{}: clap lets only values of its kind through", info.name);
        }
        parameters
    }

    /// As if the user had given it.
    pub(crate) fn give(&mut self, name: &str, value: impl ToString) {
        self.0.extend(table().find(|info| info.name == name).map(|info| (info, value.to_string())));
    }
}

fn option(info: &'static ParameterInfo) -> Arg {
    let help = info.help.trim();
    let arg = Arg::new(info.name)
        .long(info.name)
        .hide_short_help(info.group != Group::Common)
        .help_heading(if info.group == Group::Papers { PAPERS } else { EVERYDAY });
    match &info.kind {
        Kind::Flag => arg.help(help).action(ArgAction::SetTrue),
        kind => {
            let arg = arg.help(format!("{help} [default: {}]", info.default)).value_name(info.value_name);
            match kind {
                Kind::Words(words) => arg.value_parser(PossibleValuesParser::new(words.clone())),
                _ => arg.allow_negative_numbers(true).value_parser(|text: &str| {
                    let known = info.parse(text).map(|_| text.to_string());
                    known.ok_or_else(|| format!("{} is needed", info.wanted()))
                }),
            }
        }
    }
}

impl clap::Args for ParameterArgs {
    fn augment_args(command: Command) -> Command {
        command.args(table().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ParameterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |info: &'static ParameterInfo| match info.kind {
            Kind::Flag => matches.get_flag(info.name).then(|| (info, "true".to_string())),
            _ => matches.get_one::<String>(info.name).map(|text| (info, text.clone())),
        };
        Ok(ParameterArgs(table().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
