//! The values that hosts give for the parameters of methods: the database keeps a copy beside each host, so that hosts with equal values
//! are found without reading all hosts.

use ringfence_core::HostId;

use crate::DbError;
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
