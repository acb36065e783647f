//! The environment of a child, in the form that the kernel takes.
//!
//! Most of it is the same for all children of a job: what gymrun itself was given. That part is there once, however many
//! children there are.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, NulError, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::sync::Arc;

/// The whole environment of a child.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Entries (`NAME=value`) by their names, the same for many.
    shared: Arc<BTreeMap<OsString, CString>>,
    /// What this one has instead; `None` is left out.
    own: BTreeMap<OsString, Option<CString>>,
}

impl Environment {
    /// What many have in common: each begins as a copy of this.
    ///
    /// # Errors
    /// A name or a value holds a NUL byte.
    pub fn shared<'a>(variables: impl Iterator<Item = (&'a OsString, &'a OsString)>) -> Result<Self, NulError> {
        let entries = variables.map(|(name, value)| Ok((name.clone(), entry(name, value)?)));
        Ok(Self { shared: Arc::new(entries.collect::<Result<_, NulError>>()?), own: BTreeMap::new() })
    }

    /// Gives a variable that value.
    ///
    /// # Errors
    /// The name or the value holds a NUL byte.
    pub fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Result<(), NulError> {
        let entry = entry(name.as_ref(), value.as_ref())?;
        self.own.insert(name.as_ref().to_owned(), Some(entry));
        Ok(())
    }

    /// Leaves a variable out.
    pub fn unset(&mut self, name: impl AsRef<OsStr>) {
        self.own.insert(name.as_ref().to_owned(), None);
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let name = name.as_ref();
        let entry = self.own.get(name).map_or_else(|| self.shared.get(name), Option::as_ref)?;
        entry.to_bytes().get(name.len() + 1..).map(OsStr::from_bytes)
    }

    /// All variables: their names, and their entries.
    pub fn entries(&self) -> impl Iterator<Item = (&OsStr, &CStr)> + Clone {
        let shared = self.shared.iter().filter(|(name, _)| !self.own.contains_key(*name));
        let own = self.own.iter().filter_map(|(name, entry)| Some((name, entry.as_ref()?)));
        shared.chain(own).map(|(name, entry)| (name.as_os_str(), entry.as_c_str()))
    }
}

fn entry(name: &OsStr, value: &OsStr) -> Result<CString, NulError> {
    // With its end.
    let mut entry = OsString::with_capacity(name.len() + value.len() + 2);
    entry.push(name);
    entry.push("=");
    entry.push(value);
    CString::new(entry.into_vec())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::{OsStr, OsString};

    use super::Environment;

    #[test]
    fn what_is_shared_can_be_set_and_left_out_by_each() {
        let given: BTreeMap<OsString, OsString> = [("A", "1=2"), ("B", ""), ("C", "x")]
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let all = Environment::shared(given.iter()).expect("no NUL byte");
        let mut one = all.clone();
        one.set("D", "new").expect("no NUL byte");
        one.set("B", "other").expect("no NUL byte");
        one.unset("C");
        one.unset("E");
        assert!(one.set("F", "\0").is_err());
        let entries = |of: &Environment| {
            of.entries().map(|(_, entry)| entry.to_str().expect("text").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(entries(&all), ["A=1=2", "B=", "C=x"]);
        assert_eq!(entries(&one), ["A=1=2", "B=other", "D=new"]);
        let value = |name| one.get(name).and_then(OsStr::to_str);
        assert_eq!([value("A"), value("B"), value("C"), value("D")], [Some("1=2"), Some("other"), None, Some("new")]);
        assert_eq!(all.get("B"), Some(OsStr::new("")));
    }
}
