//! A msgpack document of untrusted origin as a tree.
//!
//! Knows: msgpack's types, a depth limit. Must not know: which keys mean what.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Deepest nesting that is read; real metadata nests 5 deep.
pub(super) const MAX_DEPTH: usize = 32;

/// Any msgpack value. Maps keep their order and may have keys of any type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// nil.
    Nil,
    /// true or false.
    Bool(bool),
    /// An integer; wide enough for both signs.
    Int(i128),
    /// A float, as the bits of an f64.
    Float(u64),
    /// A string of UTF-8.
    Str(String),
    /// Binary data, or a string that is not UTF-8.
    Bin(Vec<u8>),
    /// An array.
    Array(Vec<Value>),
    /// A map.
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// What the value is, for messages.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Str(_) => "a string",
            Self::Bin(_) => "binary data",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
        }
    }

    /// Reads one document; bytes after it are ignored, as LLVM's reader does.
    pub(super) fn from_msgpack(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
        deserializer.set_max_depth(MAX_DEPTH);
        Self::deserialize(&mut deserializer)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a msgpack value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Int(v.into()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::Int(v.into()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Float(v.to_bits()))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::Str(v.to_owned()))
    }

    fn visit_bytes<E>(self, v: &[u8]) -> Result<Value, E> {
        Ok(Value::Bin(v.to_vec()))
    }

    // The announced lengths are not trusted: vectors grow as elements really arrive.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, _: D) -> Result<Value, D::Error> {
        Err(de::Error::custom(
            "extension types are not used in metadata",
        ))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nil => serializer.serialize_unit(),
            Self::Bool(v) => serializer.serialize_bool(*v),
            Self::Int(v) => match (i64::try_from(*v), u64::try_from(*v)) {
                (Ok(v), _) => serializer.serialize_i64(v),
                (_, Ok(v)) => serializer.serialize_u64(v),
                // msgpack has no wider integers, so this arm is never taken
                (Err(_), Err(_)) => serializer.serialize_str(&v.to_string()),
            },
            Self::Float(bits) => serializer.serialize_f64(f64::from_bits(*bits)),
            Self::Str(v) => serializer.serialize_str(v),
            Self::Bin(v) => serializer.serialize_bytes(v),
            Self::Array(v) => serializer.collect_seq(v),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    // JSON wants string keys, and AMD's are; anything else is shown as it prints
                    match key {
                        Self::Str(key) => map.serialize_entry(key, value)?,
                        other => map.serialize_entry(&format!("{other:?}"), value)?,
                    }
                }
                map.end()
            }
        }
    }
}
