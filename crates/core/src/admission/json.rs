//! Reading of JSON members that may be absent, null or of another type than expected.

use std::borrow::Cow;

use serde_json::Value;

/// A place in a JSON document that may hold nothing. Null counts as nothing, and a read of the wrong type reads nothing:
/// the API server's schema refuses such objects, and it speaks with better words than we could.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Json<'a>(Option<&'a Value>);

impl<'a> Json<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        Self(Some(value).filter(|value| !value.is_null()))
    }

    /// Member `name` of an object.
    pub(crate) fn at(self, name: &str) -> Self {
        self.0
            .and_then(|value| value.get(name))
            .map_or(Self(None), Self::of)
    }

    pub(crate) fn is_present(self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn is_object(self) -> bool {
        self.0.is_some_and(Value::is_object)
    }

    /// The elements if this is an array.
    pub(crate) fn array(self) -> Option<&'a [Value]> {
        self.0.and_then(Value::as_array).map(Vec::as_slice)
    }

    /// The elements; none if this is no array.
    pub(crate) fn items(self) -> impl DoubleEndedIterator<Item = Json<'a>> + ExactSizeIterator {
        self.array().unwrap_or_default().iter().map(Self::of)
    }

    /// The members with their names; none if this is no object.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'a str, Json<'a>)> {
        let members = self.0.and_then(Value::as_object).into_iter().flatten();
        members.map(|(name, value)| (name.as_str(), Self::of(value)))
    }

    /// The number; `None` if this is no integer. What exceeds 64 bits counts as the largest one.
    pub(crate) fn int(self) -> Option<i64> {
        let number = self.0?;
        number
            .as_i64()
            .or_else(|| number.as_u64().map(|_| i64::MAX))
    }

    /// What stands here; null for nothing.
    pub(crate) fn value(self) -> &'a Value {
        self.0.unwrap_or(&Value::Null)
    }

    /// The text; `None` if this is no string.
    pub(crate) fn string(self) -> Option<&'a str> {
        self.0.and_then(Value::as_str)
    }

    /// The text; empty if this is no string.
    pub(crate) fn text(self) -> &'a str {
        self.string().unwrap_or_default()
    }

    /// A string, or a number as it is written.
    pub(crate) fn scalar(self) -> Cow<'a, str> {
        match self.0 {
            Some(Value::String(text)) => Cow::Borrowed(text),
            Some(Value::Number(number)) => Cow::Owned(number.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
                Cow::Borrowed("")
            }
        }
    }
}
