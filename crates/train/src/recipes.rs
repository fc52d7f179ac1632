//! The recipes inside the program, so that they can be named in any directory.
//!
//! The folder `recipes` of this crate is a link to the one of the project.

/// Name and text of each of these recipes.
macro_rules! texts {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../recipes/", $name, ".toml")))),+]
    };
}

/// All of them, by name: the path below `recipes/` without `.toml`.
pub const ALL: &[(&str, &str)] = texts![
    "builtin/demo",
    "builtin/phones",
    "digits/words",
    "en/first",
    "en/second",
    "en-phones/both",
    "en-phones/both-blstm",
    "en-phones/real",
    "en-phones/real-blstm",
    "family/em",
    "family/entropy",
    "family/inverted",
    "family/learned-start",
    "family/min-max",
    "family/sdr",
    "family/self",
    "own/srf",
    "timit/blstm-5l-250h",
    "timit/blstm-5l-250h-average",
    "timit/cnn-10l-maxout",
    "timit/depth-16",
    "timit/depth-2",
    "timit/depth-4",
    "timit/depth-8",
    "timit/routing-dr-1",
    "timit/routing-dr-2",
    "timit/routing-dr-3",
    "timit/routing-sdr-1",
    "timit/routing-sdr-2",
    "timit/routing-sdr-3",
    "timit/srf-1l",
    "timit/srf-2l",
    "timit/srf-5l",
    "timit/srf-7l",
    "timit/srf-7l-authors",
    "timit/tf-10l",
    "timit/tf-20l",
    "timit/tf-5l",
    "timit/tf-5l-authors",
    "timit/ulstm-3l-421h",
    "timit/window-0-0",
    "timit/window-1-0",
    "timit/window-1-1",
    "timit/window-2-0",
    "timit/window-2-1",
    "timit/window-2-2",
    "timit/window-3-2",
    "timit/window-4-1",
    "timit/window-5-0",
    "wsj/blstm-5l",
    "wsj/cnn-10l",
    "wsj/cnn-15l",
    "wsj/srf-10l-big",
    "wsj/srf-10l-small",
    "wsj/srf-7l-big",
    "wsj/srf-7l-small",
    "wsj/tf-20l",
    "wsj/ulstm-5l",
];

/// The text of a recipe.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path())
    }

    #[test]
    fn the_list_is_the_files() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
        let files: BTreeMap<String, String> = entries(&root)
            .flat_map(|dir| entries(&dir).collect::<Vec<_>>())
            // A folder may also explain its recipes.
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| {
                let name = path.strip_prefix(&root).unwrap().with_extension("").display().to_string();
                (name, fs::read_to_string(&path).unwrap())
            })
            .collect();
        let listed = ALL.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        assert_eq!(files, listed);
    }

    #[test]
    fn a_name_that_is_none_has_no_text() {
        assert!(text("timit/srf-7l").is_some_and(|text| text.contains("[model]")));
        assert_eq!(text("timit/srf-7"), None);
    }
}
