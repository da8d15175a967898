//! Options made from the tables of parameters, for the method and for training.

use super::{EVERYDAY, PAPERS};
use a2lp::{Group, Kind, ParameterInfo, Parameters};
#[cfg(feature = "networks")]
use a2lp_train::TrainSettings;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use serde::{Serialize, Serializer};

/// A table of parameters, or the part of it that a command offers.
pub(crate) trait OptionTable: 'static {
    /// What the parameters belong to.
    type Of: 'static;

    fn table() -> impl Iterator<Item = &'static ParameterInfo<Self::Of>>;
}

/// The parameters of the method, except `quality`: `label` measures it by default, and `--no-quality` turns it off.
pub(crate) struct MethodOptions;

impl OptionTable for MethodOptions {
    type Of = Parameters;

    fn table() -> impl Iterator<Item = &'static ParameterInfo> {
        Parameters::table().iter().filter(|info| info.name != "quality")
    }
}

/// The settings of training.
#[cfg(feature = "networks")]
pub(crate) struct TrainOptions;

#[cfg(feature = "networks")]
impl OptionTable for TrainOptions {
    type Of = TrainSettings;

    fn table() -> impl Iterator<Item = &'static ParameterInfo<TrainSettings>> {
        TrainSettings::table().iter()
    }
}

/// The settings of training, except those that every experiment has.
#[cfg(feature = "networks")]
pub(crate) struct PairsOptions;

#[cfg(feature = "networks")]
impl OptionTable for PairsOptions {
    type Of = TrainSettings;

    fn table() -> impl Iterator<Item = &'static ParameterInfo<TrainSettings>> {
        let shared = ["seed", "neighbours", "alpha", "label-rounds"];
        TrainSettings::table().iter().filter(move |info| !shared.contains(&info.name))
    }
}

/// The parameters that were given, as the user wrote them.
pub(crate) struct TableArgs<T: OptionTable>(Vec<(&'static ParameterInfo<T::Of>, String)>);

impl<T: OptionTable> Default for TableArgs<T> {
    fn default() -> Self {
        TableArgs(Vec::new())
    }
}

impl<T: OptionTable> Clone for TableArgs<T> {
    fn clone(&self) -> Self {
        TableArgs(self.0.clone())
    }
}

/// As a map of names and values.
impl<T: OptionTable> Serialize for TableArgs<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(info, text)| (info.name, text)))
    }
}

impl<T: OptionTable> TableArgs<T> {
    /// Sets what was given.
    pub(crate) fn apply(&self, mut settings: T::Of) -> T::Of {
        for (info, text) in &self.0 {
            let is_set = info.parse(text).is_some_and(|value| info.set(&mut settings, value));
            debug_assert!(is_set, "{}: clap lets only values of its kind through", info.name);
        }
        settings
    }

    /// What the user wrote for it.
    #[cfg(feature = "networks")]
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(info, _)| info.name == name).map(|(_, text)| text.as_str())
    }

    /// As if the user had given it.
    pub(crate) fn give(&mut self, name: &str, value: impl ToString) {
        self.0.extend(T::table().find(|info| info.name == name).map(|info| (info, value.to_string())));
    }
}

fn option<P: 'static>(info: &'static ParameterInfo<P>) -> Arg {
    let mut help = info.help.trim().to_string();
    let arg = Arg::new(info.name)
        .long(info.name)
        .hide_short_help(info.group != Group::Common)
        .help_heading(if info.group == Group::Papers { PAPERS } else { EVERYDAY });
    if let Kind::Flag = info.kind {
        return arg.help(help).action(ArgAction::SetTrue);
    }
    if let Some(default) = &info.default {
        help += &format!(" [default: {default}]");
    }
    let arg = arg.help(help).value_name(info.value_name);
    match &info.kind {
        Kind::Words(words) => arg.value_parser(PossibleValuesParser::new(words.clone())),
        _ => arg.allow_negative_numbers(true).value_parser(|text: &str| {
            let known = info.parse(text).map(|_| text.to_string());
            known.ok_or_else(|| format!("{} is needed", info.wanted()))
        }),
    }
}

impl<T: OptionTable> clap::Args for TableArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.args(T::table().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: OptionTable> FromArgMatches for TableArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |info: &'static ParameterInfo<T::Of>| match info.kind {
            Kind::Flag => matches.get_flag(info.name).then(|| (info, "true".to_string())),
            _ => matches.get_one::<String>(info.name).map(|text| (info, text.clone())),
        };
        Ok(TableArgs(T::table().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::CommandFactory;

    fn options(command: &str) -> Vec<String> {
        let cli = Cli::command();
        let command = cli.find_subcommand(command).unwrap();
        command.get_arguments().filter_map(|arg| Some(arg.get_long()?.to_string())).collect()
    }

    #[test]
    fn every_parameter_of_the_method_is_an_option() {
        let options = options("label");
        // Measured unless --no-quality says otherwise.
        for info in a2lp::Parameters::table().iter().filter(|info| info.name != "quality") {
            assert!(options.iter().any(|option| option == info.name), "--{}", info.name);
        }
    }

    #[cfg(feature = "networks")]
    #[test]
    fn every_setting_of_training_is_an_option() {
        let options = options("train");
        for info in a2lp_train::TrainSettings::table() {
            assert!(options.iter().any(|option| option == info.name), "--{}", info.name);
        }
    }
}
