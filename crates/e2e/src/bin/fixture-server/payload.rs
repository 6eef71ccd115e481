//! `Payload`: the bytes of a message. Repeated parts are not stored, so a gigabyte costs nothing.

use std::borrow::Cow;
use std::io::{self, Write};

const BLOCK: usize = 64 * 1024;

/// The bytes of a message.
#[derive(Clone, Default)]
pub struct Payload(Vec<PayloadPiece>);

#[derive(Clone)]
enum PayloadPiece {
    Bytes(Vec<u8>),
    Repeat(&'static [u8], u64),
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self(vec![PayloadPiece::Bytes(text.into_bytes())])
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self(vec![PayloadPiece::Bytes(bytes.to_vec())])
    }
}

impl Payload {
    /// Returns `unit`, repeated `times` times.
    pub fn repeat(unit: &'static str, times: u64) -> Self {
        Self(vec![PayloadPiece::Repeat(unit.as_bytes(), times)])
    }

    #[must_use]
    pub fn then(mut self, more: impl Into<Self>) -> Self {
        self.0.extend(more.into().0);
        self
    }

    pub fn len(&self) -> u64 {
        let lengths = self.0.iter().map(|piece| match piece {
            PayloadPiece::Bytes(bytes) => bytes.len() as u64,
            PayloadPiece::Repeat(unit, times) => times.saturating_mul(unit.len() as u64),
        });
        lengths.fold(0, u64::saturating_add)
    }

    /// Returns the bytes. Only for small payloads.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.blocks().flat_map(Cow::into_owned).collect()
    }

    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        self.blocks().try_for_each(|block| out.write_all(&block))
    }

    /// Returns the first bytes, for a log.
    pub fn head(&self, limit: usize) -> Vec<u8> {
        let mut head = Vec::new();
        for block in self.blocks() {
            let room = limit.saturating_sub(head.len());
            head.extend_from_slice(&block[..block.len().min(room)]);
            if head.len() == limit {
                break;
            }
        }
        head
    }

    fn blocks(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        self.0.iter().flat_map(PayloadPiece::blocks)
    }
}

impl PayloadPiece {
    fn blocks(&self) -> Box<dyn Iterator<Item = Cow<'_, [u8]>> + '_> {
        match self {
            Self::Bytes(bytes) => Box::new(std::iter::once(Cow::Borrowed(bytes.as_slice()))),
            Self::Repeat(unit, times) => {
                let in_block = (BLOCK / unit.len()).max(1) as u64;
                let block = unit.repeat(usize::try_from(in_block.min(*times)).unwrap_or(BLOCK));
                let rest = unit.repeat(usize::try_from(times % in_block).unwrap_or(0));
                let blocks = (0..times / in_block).map(move |_| Cow::Owned(block.clone()));
                Box::new(blocks.chain(std::iter::once(Cow::Owned(rest))))
            }
        }
    }
}
