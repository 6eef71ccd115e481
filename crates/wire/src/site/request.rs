//! The path and the query of a request, decoded.

use http::Uri;
use percent_encoding::percent_decode_str;

/// The longest path with its query, in bytes.
const LONGEST: usize = 8 * 1024;

/// An authorized request. Its texts come from outside, and must not become paths of files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteRequest {
    /// The parts of the path between slashes, decoded.
    pub path: Vec<String>,
    query: Vec<(String, String)>,
}

impl SiteRequest {
    pub(super) fn parse(uri: &Uri) -> Result<Self, &'static str> {
        let path = uri.path();
        let query = uri.query().unwrap_or_default();
        if path.len() + query.len() > LONGEST {
            return Err("the path is too long");
        }
        let inner = path.strip_prefix('/').ok_or("the path has no slash")?;
        let parts = inner.split('/').filter(|_| !inner.is_empty());
        let path = parts.map(part).collect::<Result<_, _>>()?;
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(key)?, decoded(value)?))
        });
        Ok(Self {
            path,
            query: query.collect::<Result<_, &'static str>>()?,
        })
    }

    /// The value of a key in the query.
    pub fn query(&self, key: &str) -> Option<&str> {
        let mut pairs = self.query.iter();
        let found = pairs.find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// A part of a path. Parts that could mean another folder are refused, although none becomes a file's path.
fn part(text: &str) -> Result<String, &'static str> {
    let part = decoded(text)?;
    if matches!(part.as_str(), "" | "." | "..") || part.contains(['/', '\\', '\0']) {
        return Err("invalid path");
    }
    Ok(part)
}

fn decoded(text: &str) -> Result<String, &'static str> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| "the path is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_once_and_never_lead_elsewhere() {
        let check = |path: &str, expected: Result<&[&str], &str>| {
            let uri: Uri = path.parse().unwrap();
            let parsed = SiteRequest::parse(&uri).map(|request| request.path);
            let expected = expected.map(|parts| parts.iter().map(ToString::to_string).collect());
            assert_eq!(parsed, expected, "{path}");
        };
        check("/", Ok(&[]));
        check("/api/runs", Ok(&["api", "runs"]));
        check("/api/runs/a%20b", Ok(&["api", "runs", "a b"]));
        check("/api/%252e%252e", Ok(&["api", "%2e%2e"]));
        for invalid in [
            "/api/../run",
            "/api/%2e%2e/run",
            "/api/..%2frun",
            "/api/a%2fb",
            "/api/a%5cb",
            "/api/a%00b",
            "/api//etc/passwd",
            "//etc/passwd",
            "/api/",
        ] {
            check(invalid, Err("invalid path"));
        }
        check("/api/%ff", Err("the path is not UTF-8"));
        check(
            &format!("/{}", "a".repeat(9_000)),
            Err("the path is too long"),
        );
    }

    #[test]
    fn the_query_is_decoded() {
        let uri: Uri = "/x?from=12&name=a%26b&from=13&flag".parse().unwrap();
        let request = SiteRequest::parse(&uri).unwrap();
        assert_eq!(request.query("from"), Some("12"));
        assert_eq!(request.query("name"), Some("a&b"));
        assert_eq!(request.query("flag"), Some(""));
        assert_eq!(request.query("other"), None);
    }
}
