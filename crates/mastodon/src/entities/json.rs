//! Entity as JSON, which other entities and lists embed unchanged.

use serde::Serialize;
use serde_json::Value;

/// Entity: the bytes of a JSON value.
#[derive(Debug)]
pub(crate) struct Json(Vec<u8>);

impl Json {
    /// Makes an entity from the single JSON value that `write` appends.
    pub(crate) fn written(write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<Self> {
        let mut bytes = Vec::new();
        write(&mut bytes).map(|()| Self(bytes))
    }

    /// Adds a field to an object.
    pub(crate) fn with(self, name: &str, value: &impl Serialize) -> Self {
        self.with_field(|out| field(name, value, out))
    }

    /// Adds a field with an entity to an object.
    pub(crate) fn with_entity(self, name: &str, entity: &Self) -> Self {
        self.with_field(|out| {
            start_field(name, out);
            entity.append(out);
        })
    }

    fn with_field(mut self, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let end = self.0.pop();
        debug_assert_eq!(end, Some(b'}'), "only objects have fields");
        write(&mut self.0);
        self.0.push(b'}');
        self
    }

    /// Appends the entity.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Converts the entity to the text of an event.
    pub(crate) fn into_text(self) -> String {
        match String::from_utf8(self.0) {
            Ok(text) => text,
            Err(_) => unreachable!("JSON is text"),
        }
    }

    /// Parses the entity.
    pub(crate) fn into_value(self) -> Value {
        match serde_json::from_slice(&self.0) {
            Ok(value) => value,
            Err(error) => unreachable!("an entity is JSON: {error}"),
        }
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        let mut bytes = Vec::new();
        append(&value, &mut bytes);
        Self(bytes)
    }
}

/// Appends a value as JSON.
pub(crate) fn append(value: &impl Serialize, out: &mut Vec<u8>) {
    if serde_json::to_writer(out, value).is_err() {
        unreachable!("JSON is written to memory");
    }
}

/// Appends a field to an unclosed object that already has a field.
pub(crate) fn field(name: &str, value: &impl Serialize, out: &mut Vec<u8>) {
    start_field(name, out);
    append(value, out);
}

/// Appends the name of a field to an unclosed object that already has a field.
pub(crate) fn start_field(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends an entity to a list of entities. Appends nothing if `write` returns `None`.
pub(crate) fn push(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) {
    let start = out.len();
    if out.last().is_some_and(|byte| *byte != b'[') {
        out.push(b',');
    }
    if write(out).is_none() {
        out.truncate(start);
    }
}

/// Appends an existing entity to a list of entities.
pub(crate) fn push_made(entity: Option<impl Into<Json>>, out: &mut Vec<u8>) {
    push(out, |out| {
        entity?.into().append(out);
        Some(())
    });
}
