//! Real servers, listed, called and recorded.
