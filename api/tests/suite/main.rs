//! Tests of the API alone. Tests with an engine behind it are in `tests/`.

mod openapi;
mod tokens;
