//! The columns that rows are read from. A statement names each of them.

/// `table! { "hosts": id, name }` says which columns of a table its rows are read from: `columns!()` is the list for a statement, and
/// `column::name` is what a row is asked by. One that is missing from the list does not compile; one that no query asks for is dead code.
/// With `pub` before the table's name, other modules can read its rows too.
macro_rules! table {
    (pub $table:literal: $($column:ident),+ $(,)?) => {
        $crate::columns::table! { $table: $($column),+ }
        pub(crate) use columns;
    };
    ($table:literal: $first:ident $(, $rest:ident)* $(,)?) => {
        macro_rules! columns {
            () => {
                concat!($table, ".", stringify!($first) $(, ", ", $table, ".", stringify!($rest))*)
            };
        }

        #[expect(non_upper_case_globals, reason = "they are spelled as in the schema")]
        pub(crate) mod column {
            pub const $first: &str = stringify!($first);
            $(pub const $rest: &str = stringify!($rest);)*
        }
    };
}
pub(crate) use table;
