//! Secrets that go along with a request. Those in files are read for each request, so that they can be renewed.

use std::fmt;
use std::path::PathBuf;

use data_encoding::BASE64;
use reqwest::header::HeaderValue;

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The text itself.
    Inline(String),
    /// In this file; blanks around it do not count.
    File(PathBuf),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(_) => f.write_str("<secret>"),
            Self::File(path) => write!(f, "<secret in {}>", path.display()),
        }
    }
}

impl Secret {
    /// The text as it is now.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> Result<String, String> {
        match self {
            Self::Inline(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read_to_string(path)
                .map(|text| text.trim().to_owned())
                .map_err(|error| format!("cannot read {}: {error}", path.display())),
        }
    }

    /// Certificates or a key as they are now. What is between them may be in any encoding.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_pem(&self) -> Result<String, String> {
        match self {
            Self::Inline(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read(path)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|error| format!("cannot read {}: {error}", path.display())),
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorization {
    /// Name and password.
    Basic {
        /// The name, if there is one.
        username: Option<Secret>,
        /// The password, if there is one.
        password: Option<Secret>,
    },
    /// Any other kind, such as `Bearer`.
    Other {
        /// The word before the credentials.
        kind: String,
        /// The credentials, if there are any.
        credentials: Option<Secret>,
    },
}

impl Authorization {
    /// The value of the `Authorization` header as it is now.
    ///
    /// # Errors
    /// A file cannot be read, or holds what no header may.
    pub fn header(&self) -> Result<HeaderValue, String> {
        let read = |secret: &Option<Secret>| secret.as_ref().map_or(Ok(String::new()), Secret::read);
        let text = match self {
            Self::Basic { username, password } => {
                format!("Basic {}", BASE64.encode(format!("{}:{}", read(username)?, read(password)?).as_bytes()))
            }
            Self::Other { kind, credentials } => format!("{kind} {}", read(credentials)?),
        };
        header_value(text.trim_end())
    }
}

/// A header's value that is kept out of logs.
///
/// # Errors
/// The text holds what no header may; it is not shown.
pub fn header_value(text: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::try_from(text);
    let mut value = value.map_err(|_| "the value of a header has a character that no header may have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::{Authorization, Secret};

    #[test]
    fn files_are_read_anew_and_secrets_are_not_shown() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let credentials = Some(Secret::File(file.path().to_owned()));
        let bearer = Authorization::Other { kind: "Bearer".into(), credentials };
        for token in ["one", "two"] {
            std::fs::write(file.path(), format!(" {token}\n")).expect("writes");
            assert_eq!(bearer.header().expect("a header").to_str().expect("text"), format!("Bearer {token}"));
        }
        std::fs::write(file.path(), "a\nb").expect("writes");
        assert!(bearer.header().is_err_and(|why| !why.contains('b') || !why.contains("a\n")));
        let basic = Authorization::Basic { username: Some(Secret::Inline("u".into())), password: None };
        assert_eq!(basic.header().expect("a header").to_str().expect("text"), "Basic dTo=");
        assert!(!format!("{:?}", Secret::Inline("s3cr3t".into())).contains("s3cr3t"));
        let absent = Authorization::Basic { username: None, password: Some(Secret::File("/no/file".into())) };
        assert!(absent.header().is_err_and(|why| why.contains("/no/file")));
    }
}
