//! The words of enums: what a value is called in the API, the database and messages, declared once.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Visitor};
use strum::VariantArray;

/// Makes the words that `strum` derives for an enum the enum's own, so that each way of writing and reading a value has one word for it.
/// The enum derives `strum::IntoStaticStr` and `strum::VariantArray`.
#[macro_export]
macro_rules! words {
    ($name:ident) => {
        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

            /// The word used in the API, the database and messages.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                self.into()
            }

            /// The value that the word names.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str($crate::Word::default())
            }
        }
    };
}

/// Reads a word without a copy of it; for [`words!`](crate::words!).
#[derive(Debug)]
pub struct Word<T>(PhantomData<T>);

impl<T> Default for Word<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: VariantArray + Copy + Into<&'static str>> Visitor<'_> for Word<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one of ")?;
        for (at, value) in T::VARIANTS.iter().copied().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}`{}`", value.into())?;
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
        let named = T::VARIANTS.iter().copied().find(|value| (*value).into() == word);
        named.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(word), &self))
    }
}
