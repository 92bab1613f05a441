//! What the commands print: tables and details for people, JSON for programs.

mod details;
mod fields;
pub mod progress;
mod screen;
mod table;
mod text;

pub use details::Details;
pub use fields::fields;
pub use screen::{Screen, complain};
pub use table::{Cell, Table};
pub use text::{plain, time, time_of_day};
