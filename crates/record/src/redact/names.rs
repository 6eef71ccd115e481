//! Names whose values are secrets.

/// Words that mark a secret anywhere in a name, even within another word: `PGPASSWORD`.
const INSIDE: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "credential",
    "cookie",
    "apikey",
    "accesskey",
    "authorization",
];

/// Words that mark a secret only as a whole part: `MONKEY` and `AUTHOR` are not secrets.
const ALONE: [&str; 6] = ["key", "keys", "auth", "private", "pat", "jwt"];

/// Last parts of names whose value is the location of a secret, not the secret.
const PLACES: [&str; 5] = ["file", "path", "dir", "sock", "socket"];

/// Whether a variable, header or parameter of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let spaced = spaced(name);
    spaced.split_ascii_whitespace().any(|part| {
        ALONE.contains(&part)
            // The plural counts the tokens of a model: `MAX_TOKENS`.
            || part.ends_with("token")
            || INSIDE.iter().any(|word| part.contains(word))
    })
}

/// Whether the value is the location of a secret: `SSH_AUTH_SOCK`, `TOKEN_FILE`.
pub(super) fn holds_a_path(name: &str) -> bool {
    let last = spaced(name);
    let last = last.split_ascii_whitespace().next_back();
    last.is_some_and(|part| PLACES.contains(&part))
}

/// The parts of `API_KEY`, `x-api-key` and `apiKey`, in lower case and with spaces between them.
fn spaced(name: &str) -> String {
    let mut spaced = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && after_lower {
            spaced.push(' ');
        }
        after_lower = c.is_lowercase();
        if c.is_alphanumeric() {
            spaced.extend(c.to_lowercase());
        } else {
            spaced.push(' ');
        }
    }
    spaced
}
