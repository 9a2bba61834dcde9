//! Parameters of a query. **Invariant:** the route knows each parameter, and each is given at most once; other queries
//! are refused with 400.

use std::borrow::Cow;

use axum::http::Uri;
use percent_encoding::percent_decode_str;
use smallvec::SmallVec;

use crate::error::ApiError;
use crate::input::decimal;

/// Parameters of a query; all names are known to the route.
#[derive(Debug)]
pub(crate) struct Query(SmallVec<[(&'static str, Vec<u8>); 3]>);

impl Query {
    /// Parses a query.
    ///
    /// # Errors
    /// `bad_request` if a parameter is unknown or given twice.
    pub(crate) fn parse(uri: &Uri, known: &[&'static str]) -> Result<Self, ApiError> {
        let mut parameters = SmallVec::new();
        for pair in uri.query().unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = percent_decode_str(name).decode_utf8_lossy();
            let Some(name) = known.iter().find(|known| **known == name) else {
                let message = format!("known parameters are: {}", known.join(", "));
                return Err(ApiError::bad_request(message).at(name.into_owned()));
            };
            if parameters.iter().any(|(given, _)| given == name) {
                return Err(ApiError::bad_request("a parameter is given twice").at(*name));
            }
            parameters.push((*name, decoded(value)));
        }
        Ok(Self(parameters))
    }

    /// Takes the value as bytes.
    pub(crate) fn bytes(&mut self, name: &'static str) -> Option<Vec<u8>> {
        let found = self.0.iter_mut().find(|(given, _)| *given == name);
        found.map(|(_, value)| std::mem::take(value))
    }

    /// Takes the value as text.
    ///
    /// # Errors
    /// `bad_request` if the value is not UTF-8.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, ApiError> {
        let text = self.bytes(name).map(String::from_utf8).transpose();
        text.map_err(|_| ApiError::bad_request("a parameter is not UTF-8").at(name))
    }

    /// Takes the value as a number.
    ///
    /// # Errors
    /// `bad_request` if the value is not a decimal number of 64 bits.
    pub(crate) fn number(&mut self, name: &'static str) -> Result<Option<u64>, ApiError> {
        let number = self.bytes(name).map(|text| decimal(std::str::from_utf8(&text).ok()?));
        let wrong = || ApiError::bad_request(format!("{name} must be a number")).at(name);
        number.map(|number| number.ok_or_else(wrong)).transpose()
    }
}

/// Returns all values of a parameter. The route need not know the parameter.
pub(crate) fn values(uri: &Uri, name: &str) -> Vec<Vec<u8>> {
    let pairs =
        uri.query().unwrap_or("").split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let of_name = pairs.filter(|(given, _)| percent_decode_str(given).decode_utf8_lossy() == name);
    of_name.map(|(_, value)| decoded(value)).collect()
}

fn decoded(value: &str) -> Vec<u8> {
    let value = match value.contains('+') {
        true => Cow::Owned(value.replace('+', " ")),
        false => Cow::Borrowed(value),
    };
    percent_decode_str(&value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Result<Query, ApiError> {
        Query::parse(&format!("/?{text}").parse().unwrap(), &["a", "b"])
    }

    #[test]
    fn parameters_are_known_and_given_once() {
        for (text, field) in [("c=1", "c"), ("a=1&b=2&a=1", "a"), ("%61%00=1", "a\0"), ("A=1", "A")]
        {
            let error = query(text).unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), ("bad_request", Some(field)));
        }
        for text in ["", "&", "a=1&", "b=2&a=1"] {
            assert!(query(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn values_are_found_however_their_name_is_written() {
        for (text, expect) in [
            ("", vec![]),
            ("b=1", vec![]),
            ("a=1&%61=2&b=3&a", vec!["1", "2", ""]),
            ("A=1", vec![]),
        ] {
            let found = values(&format!("/?{text}").parse().unwrap(), "a");
            assert_eq!(found, expect.iter().map(|value| value.as_bytes()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn values_are_bytes_text_or_numbers() {
        assert_eq!(query("a=%ff+%2B&b").unwrap().bytes("a"), Some(b"\xff +".to_vec()));
        assert_eq!(query("b").unwrap().text("b").unwrap(), Some(String::new()));
        assert_eq!(query("%61=x").unwrap().text("a").unwrap().as_deref(), Some("x"));
        assert_eq!(query("b=1").unwrap().text("a").unwrap(), None);
        assert_eq!(query("a=18446744073709551615").unwrap().number("a").unwrap(), Some(u64::MAX));
        for text in ["a=", "a=-1", "a=01", "a=1e3", "a=18446744073709551616", "a=%ff"] {
            assert_eq!(query(text).unwrap().number("a").unwrap_err().status, 400, "{text}");
        }
        assert_eq!(query("a=%ff").unwrap().text("a").unwrap_err().status, 400);
    }
}
