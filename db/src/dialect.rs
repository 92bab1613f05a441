//! The few places where one text does not do for both databases.

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// Locks the rows that a query reads until the transaction ends. SQLite's only writer holds all of them.
    pub(crate) fn for_update(self) -> &'static str {
        match self {
            Self::Postgres => " FOR UPDATE",
            Self::Sqlite => "",
        }
    }

    /// Locks rows, leaving out those that another transaction has locked.
    pub(crate) fn for_update_skip_locked(self) -> &'static str {
        match self {
            Self::Postgres => " FOR UPDATE SKIP LOCKED",
            Self::Sqlite => "",
        }
    }

    /// What shows whether a row is the one that was read before. SQLite's only writer needs nothing of the kind.
    pub(crate) fn version(self, of: &'static str) -> String {
        match self {
            Self::Postgres => format!("CAST({of}.xmin AS text)"),
            Self::Sqlite => "NULL".to_owned(),
        }
    }

    /// The time at which a row is read. SQLite has that of this machine, and no other writer.
    pub(crate) fn read_at(self) -> &'static str {
        match self {
            Self::Postgres => "clock_timestamp() AS read_at",
            Self::Sqlite => "NULL AS read_at",
        }
    }

    /// A condition: the column is one of the ids or texts bound as `$1`.
    pub(crate) fn in_first_argument(self, column: &'static str) -> String {
        match self {
            Self::Postgres => format!("{column} = ANY($1)"),
            Self::Sqlite => format!("{column} IN (SELECT value FROM json_each($1))"),
        }
    }

    /// The entry whose name is bound as `$2`, of a member of the JSON object in a column of text, as text.
    pub(crate) fn entry_of_second_argument(self, column: &'static str, member: &'static str) -> String {
        match self {
            Self::Postgres => {
                format!("CAST(CAST({column} AS json) -> '{member}' -> CAST($2 AS text) AS text)")
            }
            Self::Sqlite => format!("(SELECT value FROM json_each({column}, '$.{member}') WHERE key = $2)"),
        }
    }

    /// The entries of a member of the JSON object in a column of text, to select from: `key` and `value`.
    pub(crate) fn entries_of(self, column: &'static str, member: &'static str) -> String {
        match self {
            Self::Postgres => format!("json_each(CAST({column} AS json) -> '{member}')"),
            Self::Sqlite => format!("json_each({column}, '$.{member}')"),
        }
    }

    /// A condition: the host has the label whose name and value are bound as `$1` and `$2`.
    pub(crate) fn has_label(self) -> &'static str {
        match self {
            Self::Postgres => "hosts.labels ->> CAST($1 AS text) = CAST($2 AS text)",
            Self::Sqlite => "EXISTS (SELECT 1 FROM json_each(hosts.labels) WHERE key = $1 AND value = $2)",
        }
    }

    /// Joins `operations`: the live one of each host, if there is one.
    ///
    /// PostgreSQL takes statistics while no operation is live, which is nearly always, and then reads every live one for one host. Asked
    /// for one row it goes to the index.
    pub(crate) fn live_operation(self) -> &'static str {
        match self {
            Self::Postgres => {
                "LEFT JOIN LATERAL
                     (SELECT id, kind, status, body, methods FROM operations
                      WHERE operations.host_id = hosts.id AND operations.finished_at IS NULL LIMIT 1) AS operations
                     ON TRUE"
            }
            Self::Sqlite => {
                "LEFT JOIN operations ON operations.host_id = hosts.id AND operations.finished_at IS NULL"
            }
        }
    }

    /// A statement that lets one numbering of events run at a time.
    pub(crate) fn lock_event_numbers(self) -> Option<&'static str> {
        match self {
            Self::Postgres => Some("SELECT pg_advisory_xact_lock(7411938025476)"),
            Self::Sqlite => None,
        }
    }
}
