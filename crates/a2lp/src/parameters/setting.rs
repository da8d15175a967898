//! A parameter as front ends know it: its names, its help, the kind of its values, and how to set it.

use super::{Neighbours, Parameters};
use crate::similarity::Similarity;

/// A value from a front end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// A number.
    Number(f64),
    /// A word.
    Word(&'a str),
}

/// The kind of a parameter's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no.
    Flag,
    /// Whole numbers.
    Count,
    /// Whole numbers, or this word.
    CountOr(&'static str),
    /// Numbers.
    Number,
    /// One of these words.
    Words(Vec<&'static str>),
    /// Any text.
    Text,
}

/// A type of parameter values.
pub trait Setting: Sized {
    /// The kind of values.
    fn kind() -> Kind;
    /// From a value of that kind.
    fn read(value: Value<'_>) -> Option<Self>;
    /// As users write it.
    fn show(&self) -> String;
}

macro_rules! settings {
    ($($type:ty, $kind:expr, |$value:ident| $read:expr, |$self:ident| $show:expr;)*) => {
        $(impl Setting for $type {
            fn kind() -> Kind {
                $kind
            }

            fn read($value: Value<'_>) -> Option<Self> {
                $read
            }

            fn show(&$self) -> String {
                $show
            }
        })*
    };
}

fn count(value: Value<'_>) -> Option<u64> {
    if let Value::Count(count) = value { Some(count) } else { None }
}

fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Number(number) => Some(number),
        Value::Count(count) => Some(count as f64),
        _ => None,
    }
}

settings! {
    bool, Kind::Flag,
        |value| if let Value::Flag(flag) = value { Some(flag) } else { None }, |self| self.to_string();
    usize, Kind::Count, |value| usize::try_from(count(value)?).ok(), |self| self.to_string();
    u64, Kind::Count, |value| count(value), |self| self.to_string();
    f64, Kind::Number, |value| number(value), |self| short(*self);
    f32, Kind::Number, |value| Some(number(value)? as f32), |self| short(f64::from(*self));
    Neighbours, Kind::CountOr("all"),
        |value| match value {
            Value::Word("all") => Some(Neighbours::All),
            other => Some(Neighbours::Nearest(usize::try_from(count(other)?).ok()?)),
        },
        |self| match self {
            Neighbours::Nearest(k) => k.to_string(),
            Neighbours::All => "all".into(),
        };
    Similarity, Kind::Words(Similarity::WORDS.iter().map(|(word, _)| *word).collect()),
        |value| match value {
            Value::Word(given) => Similarity::WORDS.iter().find(|(word, _)| *word == given).map(|(_, s)| *s),
            _ => None,
        },
        |self| self.as_str().into();
    Option<usize>, Kind::Count, |value| usize::try_from(count(value)?).ok().map(Some),
        |self| self.map_or_else(String::new, |count| count.to_string());
    Option<String>, Kind::Text, |value| if let Value::Word(word) = value { Some(Some(word.into())) } else { None },
        |self| self.clone().unwrap_or_default();
    // The σ² of a similarity that has one; without it, that of the similarity itself.
    Option<f64>, Kind::Number, |value| number(value).map(Some), |self| short(self.unwrap_or(Similarity::DEFAULT_SIGMA2));
}

/// Small numbers as people write them: 1e-6, not 0.000001.
fn short(number: f64) -> String {
    if number != 0.0 && number.abs() < 1e-3 { format!("{number:e}") } else { number.to_string() }
}

/// The section of the help text that lists a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Among those that people need, also in short help.
    Common,
    /// Among those that people may need.
    Everyday,
    /// Among those that reproduce papers.
    Papers,
}

/// A parameter of `P` as every front end knows it.
pub struct ParameterInfo<P = Parameters> {
    /// On the command line, in files of options and in messages.
    pub name: &'static str,
    /// In Python.
    pub python: &'static str,
    /// What a value is called in help.
    pub value_name: &'static str,
    /// What it is, and when to change it.
    pub help: &'static str,
    /// The section of the help text that lists it.
    pub group: Group,
    /// Its values.
    pub kind: Kind,
    /// Its default, as users write it; `None` if it depends on other settings and the help text tells it.
    pub default: Option<String>,
    /// Sets it in place; `false` if the value is of another kind.
    pub set: fn(&mut P, Value<'_>) -> bool,
}

impl<P> ParameterInfo<P> {
    /// Reads a value that users wrote; `None` when it is not of the kind.
    pub fn parse<'a>(&self, text: &'a str) -> Option<Value<'a>> {
        match &self.kind {
            Kind::Flag => text.parse().ok().map(Value::Flag),
            Kind::Count => text.parse().ok().map(Value::Count),
            Kind::CountOr(word) if text == *word => Some(Value::Word(text)),
            Kind::CountOr(_) => text.parse().ok().map(Value::Count),
            Kind::Number => text.parse().ok().map(Value::Number),
            Kind::Words(words) => words.contains(&text).then_some(Value::Word(text)),
            Kind::Text => Some(Value::Word(text)),
        }
    }

    /// What kind of value is needed, in words.
    pub fn wanted(&self) -> String {
        match &self.kind {
            Kind::Flag => "true or false".into(),
            Kind::Count => "a whole number".into(),
            Kind::CountOr(word) => format!("a whole number or `{word}`"),
            Kind::Number => "a number".into(),
            Kind::Words(words) => format!("one of {}", words.join(", ")),
            Kind::Text => "a text".into(),
        }
    }

    /// Sets the parameter; `false` if the value is of another kind.
    #[must_use]
    pub fn set(&self, parameters: &mut P, value: Value<'_>) -> bool {
        (self.set)(parameters, value)
    }
}
