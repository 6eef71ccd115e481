//! The values of `{random.id}` and `{random.port}`.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

const CHARACTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Eight lower-case letters and digits. They only keep trials apart and are not secret.
pub(super) fn id() -> String {
    // Each state has its own keys from the operating system.
    let mut left = RandomState::new().hash_one(());
    let mut id = String::with_capacity(8);
    for _ in 0..8 {
        let at = usize::try_from(left % 36).unwrap_or_default();
        id.push(char::from(CHARACTERS[at]));
        left /= 36;
    }
    id
}

/// A port that is free at this moment.
pub(super) fn free_port() -> Option<u16> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    Some(listener.local_addr().ok()?.port())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_short_and_differ() {
        let ids: BTreeSet<String> = (0..1000).map(|_| id()).collect();
        assert_eq!(ids.len(), 1000);
        let is_fit = |id: &String| id.len() == 8 && id.bytes().all(|b| CHARACTERS.contains(&b));
        assert!(ids.iter().all(is_fit));
    }

    #[test]
    fn a_port_can_be_listened_on() {
        let port = free_port().unwrap();
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }
}
