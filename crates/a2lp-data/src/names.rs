//! Names of the parts of a file.

/// Names of columns or arrays, where the usual ones do not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldNames {
    /// The features.
    pub features: Option<String>,
    /// The labels.
    pub labels: Option<String>,
    /// The ids.
    pub ids: Option<String>,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The feature vectors.
    Features,
    /// One label per row.
    Labels,
    /// One id per row.
    Ids,
    /// The list of classes.
    ClassNames,
}

impl Field {
    /// Its usual names, in upper or lower case; we write the first.
    fn usual(self) -> &'static [&'static str] {
        match self {
            Field::Features => &["features"],
            Field::Labels => &["labels", "label", "class"],
            Field::Ids => &["ids", "id", "path", "filename"],
            Field::ClassNames => &["class_names", "class_name", "classes"],
        }
    }
}

impl FieldNames {
    /// The name that the user gave.
    pub(crate) fn given(&self, wanted: Field) -> Option<&str> {
        match wanted {
            Field::Features => self.features.as_deref(),
            Field::Labels => self.labels.as_deref(),
            Field::Ids => self.ids.as_deref(),
            Field::ClassNames => None,
        }
    }

    /// Which of `names` it is.
    pub(crate) fn find<S: AsRef<str>>(&self, wanted: Field, names: &[S]) -> Option<usize> {
        let position = |name: &str| names.iter().position(|known| known.as_ref().eq_ignore_ascii_case(name));
        match self.given(wanted) {
            Some(name) => names.iter().position(|known| known.as_ref() == name).or_else(|| position(name)),
            None => wanted.usual().iter().find_map(|name| position(name)),
        }
    }

    /// How to ask for it in a message.
    pub(crate) fn called(&self, wanted: Field) -> String {
        self.given(wanted).unwrap_or(wanted.usual()[0]).to_string()
    }
}
