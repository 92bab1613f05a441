//! What the commands print: tables and details for people, JSON for programs.

mod details;
pub mod progress;
mod screen;
mod table;
mod text;

pub use details::Details;
pub use screen::{Screen, complain};
pub use table::{Cell, Table};
pub use text::{plain, time, time_of_day};
