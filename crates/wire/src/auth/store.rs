//! The logins that `proctor login` stores: a file outside the repository that only its owner can
//! read.
//!
//! Its main type is [`LoginStore`]. A login belongs to the URL of one server, and its token is sent
//! to no other. Processes lock the file while they renew a token: an authorization server may take a
//! refresh token that is used twice for a theft, and end the login.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proctor_record::json;
use proctor_record::redact::SharedSecrets;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::AuthError;
use super::endpoint::{Grant, OauthClient, TokenEndpoint, protected};
use super::source::no_login;
use crate::network::shown_address;

/// How long another process may hold the lock: longer than a request may take.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A token is not used in the last seconds of its life.
const EARLY: u64 = 10;

/// The file of the logins.
#[derive(Debug, Clone)]
pub struct LoginStore {
    path: PathBuf,
}

/// A stored login.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredLogin {
    pub issuer: String,
    pub(super) token_endpoint: String,
    pub(super) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) client_methods: Vec<String>,
    pub(super) resource: String,
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    /// When the token expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

#[derive(Default, Serialize, Deserialize)]
struct LoginFile {
    logins: BTreeMap<String, StoredLogin>,
}

impl StoredLogin {
    pub(super) fn new(
        issuer: &str,
        token_endpoint: &Url,
        client: &OauthClient,
        client_methods: &[String],
        resource: &str,
        grant: &Grant,
    ) -> Self {
        let mut login = Self {
            issuer: issuer.to_owned(),
            token_endpoint: token_endpoint.to_string(),
            client_id: client.id.clone(),
            client_secret: client.secret.clone(),
            client_methods: client_methods.to_vec(),
            resource: resource.to_owned(),
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
        };
        login.update(grant);
        login
    }

    /// Whether Proctor can get a new token without the user.
    pub fn can_be_renewed(&self) -> bool {
        self.refresh_token.is_some()
    }

    fn update(&mut self, grant: &Grant) {
        self.access_token.clone_from(&grant.access_token);
        self.expires_at = grant
            .lifetime
            .map(|lifetime| now().saturating_add(lifetime.as_secs()));
        // Without a new one, the old one stays valid.
        if grant.refresh_token.is_some() {
            self.refresh_token.clone_from(&grant.refresh_token);
        }
    }

    /// The token, unless it has expired or was refused.
    fn usable(&self, refused: Option<&str>) -> Option<Grant> {
        let left = self.expires_at.map(|end| end.saturating_sub(now()));
        let is_usable = left.is_none_or(|left| left > EARLY) && refused != Some(&self.access_token);
        is_usable.then(|| Grant::new(&self.access_token, left.map(Duration::from_secs)))
    }

    fn secrets(&self) -> Vec<(String, String)> {
        let all = [
            ("access-token", Some(&self.access_token)),
            ("refresh-token", self.refresh_token.as_ref()),
            ("client-secret", self.client_secret.as_ref()),
        ];
        let all = all.into_iter();
        all.filter_map(|(name, value)| Some((name.to_owned(), value?.clone())))
            .collect()
    }

    async fn refreshed(&self, url: &Url) -> Result<Grant, AuthError> {
        let expired = |why: &str| AuthError::Expired {
            url: shown_address(url),
            why: why.to_owned(),
        };
        let Some(refresh_token) = &self.refresh_token else {
            return Err(expired("it has no refresh token"));
        };
        let endpoint = protected("token endpoint", &self.token_endpoint, url)?;
        let client = OauthClient::new(
            &self.client_id,
            self.client_secret.clone(),
            &self.client_methods,
        );
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token),
            ("resource", &self.resource),
        ];
        let grant = TokenEndpoint::new(endpoint, client).ask(&form).await;
        grant.map_err(|error| match error {
            AuthError::Refused(why) => expired(&why),
            other => other,
        })
    }
}

impl LoginStore {
    /// The logins of the user with this environment; `None` without a home folder.
    pub fn of_user(environment: &BTreeMap<String, String>) -> Option<Self> {
        let folder = |name: &str| {
            let path = environment.get(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let state = folder("XDG_STATE_HOME");
        let state = state.or_else(|| Some(folder("HOME")?.join(".local/state")))?;
        Some(Self {
            path: state.join("proctor/logins.json"),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The stored logins, by URL.
    pub fn list(&self) -> Result<BTreeMap<String, StoredLogin>, AuthError> {
        Ok(self.read()?.logins)
    }

    pub(super) fn find(&self, url: &Url) -> Result<Option<StoredLogin>, AuthError> {
        Ok(self.read()?.logins.remove(&shown_address(url)))
    }

    /// Stores a login in place of an earlier one.
    pub async fn save(&self, url: &Url, login: StoredLogin) -> Result<(), AuthError> {
        let _lock = self.lock().await?;
        let mut file = self.read()?;
        file.logins.insert(shown_address(url), login);
        self.write(&file)
    }

    /// Removes a login; returns whether there was one.
    pub async fn remove(&self, url: &Url) -> Result<bool, AuthError> {
        let _lock = self.lock().await?;
        let mut file = self.read()?;
        let was_there = file.logins.remove(&shown_address(url)).is_some();
        if was_there {
            self.write(&file)?;
        }
        Ok(was_there)
    }

    /// The token of a login, renewed if it has expired or is the one that the server refused.
    pub(super) async fn grant(
        &self,
        url: &Url,
        refused: Option<&str>,
        secrets: &SharedSecrets,
    ) -> Result<Grant, AuthError> {
        let _lock = self.lock().await?;
        let mut file = self.read()?;
        let login = file.logins.get_mut(&shown_address(url));
        let login = login.ok_or_else(|| no_login(url))?;
        secrets.learn(login.secrets());
        // Another process may have renewed it.
        if let Some(grant) = login.usable(refused) {
            return Ok(grant);
        }
        let grant = login.refreshed(url).await?;
        secrets.learn(grant.secrets());
        login.update(&grant);
        self.write(&file)?;
        Ok(grant)
    }

    fn read(&self) -> Result<LoginFile, AuthError> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(LoginFile::default());
            }
            Err(error) => return Err(self.failed("read", &error)),
        };
        let found = file
            .metadata()
            .map_err(|error| self.failed("read", &error))?;
        if found.mode() & 0o077 != 0 {
            let path = self.path.display();
            return Err(AuthError::Store(format!(
                "other users can read the logins in `{path}`; run `chmod 600 {path}`"
            )));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|error| self.failed("read", &error))?;
        json::from_slice(&bytes).map_err(|_| {
            let path = self.path.display();
            AuthError::Store(format!(
                "the logins in `{path}` are damaged; remove the file"
            ))
        })
    }

    /// Replaces the file in one step. It is readable by its owner only from its first byte.
    fn write(&self, file: &LoginFile) -> Result<(), AuthError> {
        let written = || -> io::Result<()> {
            let mut new = tempfile::NamedTempFile::new_in(self.folder())?;
            serde_json::to_writer_pretty(&mut new, file)?;
            new.write_all(b"\n")?;
            new.as_file().sync_all()?;
            new.persist(&self.path)?;
            Ok(())
        };
        written().map_err(|error| self.failed("write", &error))
    }

    async fn lock(&self) -> Result<File, AuthError> {
        let failed = |error: &io::Error| self.failed("lock", error);
        (DirBuilder::new().recursive(true).mode(0o700))
            .create(self.folder())
            .map_err(|error| failed(&error))?;
        let path = self.path.with_extension("lock");
        let file = (OpenOptions::new().write(true).create(true).truncate(false))
            .mode(0o600)
            .open(path)
            .map_err(|error| failed(&error))?;
        let deadline = tokio::time::Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
                Err(TryLockError::WouldBlock) => {}
            }
            if tokio::time::Instant::now() > deadline {
                let held = io::Error::other("another process holds the lock");
                return Err(failed(&held));
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn failed(&self, verb: &str, error: &io::Error) -> AuthError {
        let path = self.path.display();
        AuthError::Store(format!("can't {verb} the logins in `{path}`: {error}"))
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn login(token: &str, expires_at: Option<u64>) -> StoredLogin {
        StoredLogin {
            issuer: "https://as.example".to_owned(),
            token_endpoint: "https://as.example/token".to_owned(),
            client_id: "me".to_owned(),
            client_secret: None,
            client_methods: Vec::new(),
            resource: "https://api.example/mcp".to_owned(),
            access_token: token.to_owned(),
            refresh_token: None,
            expires_at,
        }
    }

    fn store(home: &Path) -> LoginStore {
        let home = home.display().to_string();
        LoginStore::of_user(&BTreeMap::from([("HOME".to_owned(), home)])).unwrap()
    }

    #[test]
    fn the_file_is_in_the_users_state_folder() {
        let path = |variables: &[(&str, &str)]| {
            let pairs = variables.iter();
            let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let store = LoginStore::of_user(&pairs.collect());
            store.map(|store| store.path.display().to_string())
        };
        let own = Some("/s/proctor/logins.json".to_owned());
        let default = Some("/h/.local/state/proctor/logins.json".to_owned());
        assert_eq!(path(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), own);
        // A relative path could be inside the repository.
        assert_eq!(path(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]), default);
        assert_eq!(path(&[]), None);
    }

    #[tokio::test]
    async fn a_login_is_for_its_owner_and_for_its_url_only() {
        let home = tempfile::tempdir().unwrap();
        let store = store(home.path());
        let url = |text: &str| Url::parse(text).unwrap();
        let own = url("https://api.example/mcp");
        store
            .save(&own, login("a-token-of-mine", None))
            .await
            .unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(store.path()), 0o600);
        assert_eq!(mode(store.folder()), 0o700);
        for other in [
            "https://api.example/mcp/2",
            "https://api.example",
            "http://api.example/mcp",
            "https://api.example:444/mcp",
            "https://api.example.evil/mcp",
        ] {
            assert!(store.find(&url(other)).unwrap().is_none(), "{other}");
        }
        assert!(
            store
                .find(&url("https://u@api.example/mcp?a#b"))
                .unwrap()
                .is_some()
        );
        assert!(store.remove(&own).await.unwrap());
        assert!(!store.remove(&own).await.unwrap());
    }

    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let store = store(home.path());
        let url = Url::parse("https://api.example/mcp").unwrap();
        store
            .save(&url, login("a-token-of-mine", None))
            .await
            .unwrap();
        fs::set_permissions(store.path(), fs::Permissions::from_mode(0o640)).unwrap();
        let error = store.find(&url).err().unwrap().to_string();
        assert!(error.contains("other users can read the logins"), "{error}");
    }

    #[test]
    fn a_token_is_used_until_it_expires_or_is_refused() {
        let usable = |expires_at, refused| login("one", expires_at).usable(refused).is_some();
        assert!(usable(None, None));
        assert!(usable(Some(now() + 60), Some("another")));
        assert!(!usable(Some(now() + 5), None));
        assert!(!usable(Some(0), None));
        assert!(!usable(None, Some("one")));
    }
}
