//! Counts listings, in this process or, with a file, in all processes that share it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Mutex;

use crate::lock::lock;

/// The letters of the counted lists.
pub const TOOLS: u8 = b't';
pub const EVALS: u8 = b'e';

/// One letter per listing, in memory or in a file.
pub struct Count(Mutex<Letters>);

enum Letters {
    Here(Vec<u8>),
    File(File),
}

impl Count {
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let letters = match path {
            None => Letters::Here(Vec::new()),
            Some(path) => {
                let mut options = OpenOptions::new();
                Letters::File(options.create(true).read(true).append(true).open(path)?)
            }
        };
        Ok(Self(Mutex::new(letters)))
    }

    /// Counts a listing, and returns the number of earlier ones.
    pub fn add(&self, whose: u8) -> u64 {
        let before = self.letters(|letters| match letters {
            Letters::Here(all) => {
                let before = all.clone();
                all.push(whose);
                Ok(before)
            }
            Letters::File(file) => {
                let before = read(file)?;
                file.write_all(&[whose])?;
                Ok(before)
            }
        });
        number(&before, whose)
    }

    /// Returns the number of listings.
    pub fn of(&self, whose: u8) -> u64 {
        let all = self.letters(|letters| match letters {
            Letters::Here(all) => Ok(all.clone()),
            Letters::File(file) => read(file),
        });
        number(&all, whose)
    }

    fn letters(&self, used: impl FnOnce(&mut Letters) -> io::Result<Vec<u8>>) -> Vec<u8> {
        // If the file can't be used, the count is 0.
        used(&mut lock(&self.0)).unwrap_or_default()
    }
}

fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut all)?;
    Ok(all)
}

fn number(letters: &[u8], whose: u8) -> u64 {
    let those = letters.iter().filter(|letter| **letter == whose);
    those.map(|_| 1).sum()
}
