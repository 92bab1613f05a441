//! The values that hosts give for the parameters of methods: the database keeps a copy beside each host, so that hosts with equal values
//! are found without reading all hosts.

use std::collections::BTreeMap;

use ringfence_core::{HostId, Parameters};

use crate::DbError;
use crate::row::Row;
use crate::run::{Run, fetch_all};
use crate::value::args;

/// Other hosts that give equal values for some method as this host does, at most `limit` of them. A host that does so for several methods
/// may come several times.
pub async fn hosts_with_like_parameters(
    run: &mut impl Run,
    host: HostId,
    limit: u32,
) -> Result<Vec<HostId>, DbError> {
    let sql = "SELECT other.host_id AS host_id FROM host_parameters own
               JOIN host_parameters other
                   ON other.method = own.method AND other.given = own.given AND other.host_id <> own.host_id
               WHERE own.host_id = $1 LIMIT $2";
    let rows = fetch_all(run, sql, args![host.0, limit]).await?;
    rows.iter().map(|row| Ok(HostId(row.id("host_id")?))).collect()
}

/// What each host gives for one method that gives anything.
pub async fn given_for(run: &mut impl Run, method: &str) -> Result<Vec<(HostId, Parameters)>, DbError> {
    let sql = "SELECT hosts.id AS id, hosts.parameters AS parameters FROM host_parameters given
               JOIN hosts ON hosts.id = given.host_id WHERE given.method = $1 ORDER BY hosts.id";
    let rows = fetch_all(run, sql, args![method]).await?;
    let given = |row: &Row| {
        let mut all: BTreeMap<String, Parameters> = row.json("parameters")?;
        Ok((HostId(row.id("id")?), all.remove(method).unwrap_or_default()))
    };
    rows.iter().map(given).collect()
}
