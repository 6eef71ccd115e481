//! A secret, every form in which it may travel, and the search for it.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};
use proctor_e2e::session::{Session, SessionOutcome};

pub(crate) const NAME: &str = "CANARY_API_KEY";

/// A secret, and what must not be found.
pub(crate) struct Canary {
    pub(crate) secret: String,
    forms: Vec<(String, Vec<u8>)>,
}

impl Canary {
    /// Letters and digits.
    pub(crate) fn plain() -> Self {
        let mut bytes = [0; 32];
        let mut random = fs::File::open("/dev/urandom").unwrap();
        random.read_exact(&mut bytes).unwrap();
        let alphabet = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
        let letter = |byte: &u8| char::from(alphabet[usize::from(*byte) % alphabet.len()]);
        Self::of(bytes.iter().map(letter).collect())
    }

    /// With characters that every encoding writes in another way.
    pub(crate) fn awkward() -> Self {
        let plain = Self::plain().secret;
        Self::of(format!(r#"{}"\/+&<%{}"#, &plain[..12], &plain[12..24]))
    }

    pub(crate) fn of(secret: String) -> Self {
        let mut forms = vec![("plain".to_owned(), secret.clone().into_bytes())];
        let json = serde_json::to_string(&secret).unwrap();
        let json = json.trim_matches('"').to_owned();
        let twice = serde_json::to_string(&json).unwrap();
        forms.push(("JSON in JSON".to_owned(), twice.trim_matches('"').into()));
        forms.push(("JSON".to_owned(), json.into()));
        forms.push(("percent".to_owned(), percent(&secret).into()));
        let bytes = secret.bytes();
        let every: Vec<String> = bytes.map(|byte| format!("%{byte:02x}")).collect();
        let every = every.concat();
        forms.push(("percent for every byte".to_owned(), every.into()));
        let hex = data_encoding::HEXLOWER.encode(secret.as_bytes());
        forms.push(("HEX".to_owned(), hex.to_uppercase().into()));
        let (head, tail) = hex.split_at(hex.len() / 2);
        let mixed = format!("{}{tail}", head.to_uppercase());
        forms.push(("hex in mixed case".to_owned(), mixed.into()));
        let base64 = data_encoding::BASE64.encode(secret.as_bytes());
        for (width, ending) in [(16, "\n"), (19, "\r\n"), (16, "\\n"), (19, "\\r\\n")] {
            let lines = base64.as_bytes().chunks(width);
            let lines: Vec<&str> = lines.map(|line| str::from_utf8(line).unwrap()).collect();
            let name = format!("base64 wrapped at {width} with {ending:?}");
            forms.push((name, lines.join(ending).into()));
        }
        forms.push(("hex".to_owned(), hex.into()));
        for (name, escaped) in escaped(&secret) {
            forms.push((
                format!("{name} in JSON"),
                escaped.replace('\\', r"\\").into(),
            ));
            forms.push((name.to_owned(), escaped.into()));
        }
        for before in 0..3 {
            // The characters that are the same whatever stands around the secret.
            let mut bytes = vec![b' '; before];
            bytes.extend_from_slice(secret.as_bytes());
            let kept = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
            for encoding in [&BASE64_NOPAD, &BASE64URL_NOPAD] {
                let form = encoding.encode(&bytes)[kept.clone()].to_owned();
                forms.push((format!("base64 after {before}"), form.into()));
            }
        }
        Self { secret, forms }
    }

    /// Not even a part of it may be found.
    pub(crate) fn with_parts(mut self) -> Self {
        let parts = self.secret.as_bytes().windows(12);
        let parts: Vec<_> = parts
            .map(|part| ("a part".to_owned(), part.to_vec()))
            .collect();
        self.forms.extend(parts);
        self
    }

    pub(crate) fn in_env(&self, session: Session) -> Session {
        session.env(NAME, &self.secret)
    }

    /// A text with the secret in every form.
    pub(crate) fn in_all_forms(&self) -> String {
        let forms = self
            .forms
            .iter()
            .map(|(_, form)| str::from_utf8(form).unwrap());
        forms.collect::<Vec<_>>().join(" - ")
    }

    /// Looks at everything that the run left and printed, and at what is shown of it later.
    pub(crate) fn check(&self, seen: &SessionOutcome) {
        self.look("stdout", seen.stdout.as_bytes());
        self.look("stderr", seen.stderr.as_bytes());
        let files = files(&seen.record);
        assert!(files.len() > 3, "there is a record: {}", seen.stderr);
        for file in files {
            let name = file.display().to_string();
            self.look("a file's name", name.as_bytes());
            self.look(&name, &fs::read(&file).unwrap());
        }
        for format in ["text", "json"] {
            let shown = Command::new(proctor_e2e::proctor())
                .args(["result", "view", "-o", format])
                .arg(&seen.record)
                .output()
                .unwrap();
            assert!(shown.status.success(), "the run can be shown");
            self.look("a view's stdout", &shown.stdout);
            self.look("a view's stderr", &shown.stderr);
        }
    }

    pub(crate) fn look(&self, place: &str, bytes: &[u8]) {
        for (name, form) in &self.forms {
            assert!(
                !bytes.windows(form.len()).any(|part| part == form),
                "the secret is in {place} ({name}): {}",
                String::from_utf8_lossy(bytes)
            );
        }
    }
}

/// As encoders of JSON may write it: any character as an escape, in any case.
pub(crate) fn escaped(secret: &str) -> Vec<(&'static str, String)> {
    let lower = |c: char| format!("\\u{:04x}", u32::from(c));
    let upper = |c: char| format!("\\u{:04X}", u32::from(c));
    let some = |(at, c): (usize, char)| match at % 3 {
        0 => upper(c),
        _ => match serde_json::to_string(&c).unwrap().trim_matches('"') {
            "" => "\\\"".to_owned(),
            "/" => "\\/".to_owned(),
            text => text.to_owned(),
        },
    };
    vec![
        ("escapes in lower case", secret.chars().map(lower).collect()),
        ("escapes in upper case", secret.chars().map(upper).collect()),
        (
            "escapes of some",
            secret.chars().enumerate().map(some).collect(),
        ),
    ]
}

fn percent(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Every file of a run, which only its owner may read.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder), 0o700, "{}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            found.push(path);
        }
    }
    found
}
