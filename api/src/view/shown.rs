//! What is shown, and taken in, as it is in the rules.

/// Converts a part of the rules to what is shown of it, and back. Both have these fields.
macro_rules! shown {
    ($rules:ty, $view:ty: $($field:ident),+ $(,)?) => {
        impl From<$rules> for $view {
            fn from(rules: $rules) -> Self {
                Self { $($field: rules.$field.into()),+ }
            }
        }

        impl Default for $view {
            fn default() -> Self {
                <$rules>::default().into()
            }
        }

        impl From<$view> for $rules {
            fn from(view: $view) -> Self {
                Self { $($field: view.$field.into()),+ }
            }
        }
    };
}
pub(crate) use shown;
