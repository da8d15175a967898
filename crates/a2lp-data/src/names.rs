//! What the parts of a file are called.

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

/// One value per row, or the list of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Labels,
    Ids,
    ClassNames,
}

impl Wanted {
    /// What it is usually called, in any case; the first is what we write.
    fn usual(self) -> &'static [&'static str] {
        match self {
            Wanted::Labels => &["labels", "label", "class"],
            Wanted::Ids => &["ids", "id", "path", "filename"],
            Wanted::ClassNames => &["class_names", "class_name", "classes"],
        }
    }
}

impl FieldNames {
    /// The name that the user gave.
    pub(crate) fn given(&self, wanted: Wanted) -> Option<&str> {
        match wanted {
            Wanted::Labels => self.labels.as_deref(),
            Wanted::Ids => self.ids.as_deref(),
            Wanted::ClassNames => None,
        }
    }

    /// Which of `names` it is.
    pub(crate) fn find<S: AsRef<str>>(&self, wanted: Wanted, names: &[S]) -> Option<usize> {
        let position = |name: &str| names.iter().position(|known| known.as_ref().eq_ignore_ascii_case(name));
        match self.given(wanted) {
            Some(name) => names.iter().position(|known| known.as_ref() == name).or_else(|| position(name)),
            None => wanted.usual().iter().find_map(|name| position(name)),
        }
    }

    /// How to ask for it in a message.
    pub(crate) fn called(&self, wanted: Wanted) -> String {
        self.given(wanted).unwrap_or(wanted.usual()[0]).to_string()
    }
}
