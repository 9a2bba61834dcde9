//! What the server answers: written by the encoder, read back by the decoder.

pub(crate) mod decoder;
pub(crate) mod encoder;
pub(crate) mod value;
