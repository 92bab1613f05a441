//! The API by itself. What it does with an engine behind it is in the stories over the whole stack.

mod openapi;
mod tokens;
