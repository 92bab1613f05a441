//! Connections that are lent, and the threads that they are used on.
//!
//! What waits for the disk, for a lock or for much reading must not hold up a thread on which requests are answered: it is done on threads
//! for such work. Going there and back costs some 50 µs, however much is done there, and most of what is read is read in less. So
//! reading begins where it is asked for, and what is not done within [`AT_ONCE`] is begun again on the other thread; changes wait, and
//! go there together with their commit.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use sqlx::SqlStr;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{block_in_place, spawn_blocking};
use tokio::time::timeout;

use super::connection::{BUSY_TIMEOUT, Connection, Keeps};
use super::row::SqliteRow;
use crate::error::ClientError;
use crate::value::Value;

/// What reading may take on the thread that asks.
const AT_ONCE: Duration = Duration::from_millis(1);
/// Work that takes longer is worth a line in the log.
const SLOW: Duration = Duration::from_secs(1);

/// Connections to one file.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    path: PathBuf,
    keeps: Keeps,
    most: u32,
    /// As many as may be lent at one time.
    room: Arc<Semaphore>,
    /// The last is the warmest.
    idle: Mutex<Vec<Connection>>,
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock()
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("path", &self.0.path)
            .field("most", &self.0.most)
            .finish()
    }
}

impl Connections {
    /// At most so many, the first of which is opened now.
    pub async fn open(path: PathBuf, keeps: Keeps, most: u32) -> Result<Self, ClientError> {
        let connections = Self(Arc::new(Shared {
            path,
            keeps,
            most,
            room: Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1))),
            idle: Mutex::new(Vec::new()),
        }));
        connections.work(|_| Ok(())).await?;
        Ok(connections)
    }

    /// All rows of a statement, outside of a transaction.
    pub async fn rows(&self, sql: SqlStr, values: Vec<Value>) -> Result<Vec<SqliteRow>, ClientError> {
        let mut lent = self.lend().await?;
        if let Some(connection) = &mut lent.connection
            && let Some(rows) = connection.rows_within(AT_ONCE, sql.as_str(), values.clone())?
        {
            return Ok(rows);
        }
        aside(move || lent.connection()?.rows(sql.as_str(), values)).await
    }

    /// Does something with a connection that is free, outside of a transaction.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, ClientError> {
        let mut lent = self.lend().await?;
        // Given back by that thread, also where the caller has gone away meanwhile.
        aside(move || lent.connection().and_then(work)).await
    }

    /// Begins a transaction that may write.
    pub async fn begin(&self) -> Result<OpenTransaction, ClientError> {
        let mut lent = self.lend().await?;
        let has_begun = match &mut lent.connection {
            Some(connection) => connection.begin_at_once()?,
            None => false,
        };
        let mut open = OpenTransaction { lent: Some(lent) };
        if !has_begun {
            open.work(|connection| connection.begin()).await?;
        }
        Ok(open)
    }

    /// Ends all of them, when those that are lent have come back.
    pub async fn close(&self) {
        let all = self.0.room.acquire_many(self.0.most).await;
        self.0.room.close();
        drop(all);
        let idle = std::mem::take(&mut *self.0.idle());
        // The last one copies the log into the file.
        let ended = aside(move || {
            drop(idle);
            Ok(())
        });
        if let Err(error) = ended.await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the database was not closed in order"
            );
        }
    }

    async fn lend(&self) -> Result<Lent, ClientError> {
        let room = timeout(BUSY_TIMEOUT, Arc::clone(&self.0.room).acquire_owned());
        let room = room.await.map_err(|_| ClientError::NoneFree)?;
        Ok(Lent {
            connection: self.0.idle().pop(),
            of: Arc::clone(&self.0),
            _room: room.map_err(|_| ClientError::Closed)?,
        })
    }
}

/// A connection that a caller has, or none as long as it is not opened.
struct Lent {
    connection: Option<Connection>,
    of: Arc<Shared>,
    _room: OwnedSemaphorePermit,
}

impl Lent {
    fn connection(&mut self) -> Result<&mut Connection, rusqlite::Error> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(Connection::open(&self.of.path, self.of.keeps)?)),
        }
    }
}

impl Drop for Lent {
    /// One whose transaction cannot be rolled back is closed, which rolls back too.
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        if connection.roll_back().is_ok() && !self.of.room.is_closed() {
            self.of.idle().push(connection);
        }
    }
}

/// A transaction. Dropped without [`OpenTransaction::commit`], it is rolled back. It is gone for good if something that was done in it was not
/// waited for.
pub(crate) struct OpenTransaction {
    lent: Option<Lent>,
}

/// What becomes of a transaction.
pub(crate) enum End<T> {
    /// Everything that was done in it lasts.
    Commit(T),
    /// Nothing of it does.
    RollBack(T),
}

impl OpenTransaction {
    /// All rows of a statement.
    pub async fn rows(&mut self, sql: SqlStr, values: Vec<Value>) -> Result<Vec<SqliteRow>, ClientError> {
        let lent = self.lent.as_mut().ok_or(ClientError::Closed)?;
        if let Some(connection) = &mut lent.connection
            && let Some(rows) = connection.rows_within(AT_ONCE, sql.as_str(), values.clone())?
        {
            return Ok(rows);
        }
        self.work(move |connection| connection.rows(sql.as_str(), values))
            .await
    }

    /// Does something in it.
    pub async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, ClientError> {
        let mut lent = self.lent.take().ok_or(ClientError::Closed)?;
        let (lent, done) = aside(move || {
            let done = lent.connection().and_then(work);
            Ok((lent, done))
        })
        .await?;
        self.lent = Some(lent);
        Ok(done?)
    }

    /// Does the last thing in it, which says how it ends, and ends it, without waiting for another thread. For a task of its own: in a
    /// `LocalSet` there is no other thread to hand other tasks to, and it panics.
    pub async fn end<T: Send + 'static>(
        self,
        last: impl FnOnce(&mut Connection) -> Result<End<T>, rusqlite::Error> + Send + 'static,
    ) -> Result<T, ClientError> {
        in_place(self.ending(last)?).await
    }

    /// Makes everything that was done in it last.
    pub async fn commit(self) -> Result<(), ClientError> {
        aside(self.ending(|_| Ok(End::Commit(())))?).await
    }

    fn ending<T>(
        mut self,
        last: impl FnOnce(&mut Connection) -> Result<End<T>, rusqlite::Error> + Send + 'static,
    ) -> Result<impl FnOnce() -> Result<T, rusqlite::Error> + Send + 'static, ClientError> {
        let mut lent = self.lent.take().ok_or(ClientError::Closed)?;
        Ok(move || {
            let connection = lent.connection()?;
            match last(connection)? {
                End::Commit(done) => connection.commit().map(|()| done),
                End::RollBack(done) => connection.roll_back().map(|()| done),
            }
        })
    }
}

/// Does something on the thread that asks, which hands its other tasks to another thread for as long. A runtime with one thread cannot.
async fn in_place<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, rusqlite::Error> + Send + 'static,
) -> Result<T, ClientError> {
    if Handle::current().runtime_flavor() != RuntimeFlavor::MultiThread {
        return aside(work).await;
    }
    let done = catch_unwind(AssertUnwindSafe(|| block_in_place(|| watched(work))));
    Ok(done.map_err(|_| ClientError::Panicked)??)
}

/// Does something on a thread that may wait.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, rusqlite::Error> + Send + 'static,
) -> Result<T, ClientError> {
    let done = spawn_blocking(move || watched(work));
    Ok(done.await.map_err(ClientError::Thread)??)
}

/// Does something, and tells if it has taken long: the disk is slow, or another process holds the file.
fn watched<T>(work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = work();
    let took = begun.elapsed();
    if took > SLOW {
        tracing::warn!(took_ms = took.as_millis(), "the database took long");
    }
    done
}

#[cfg(test)]
mod tests {
    use sqlx::SqlSafeStr;
    use tempfile::TempDir;

    use super::*;
    use crate::value::args;

    async fn connections(most: u32) -> (TempDir, Connections) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let connections = Connections::open(path, Keeps::Lasting, most).await.unwrap();
        let table = connections.work(|connection| connection.script("CREATE TABLE t (n integer)"));
        table.await.unwrap();
        (folder, connections)
    }

    async fn numbers(connections: &Connections) -> i64 {
        let rows = connections.rows("SELECT count(*) AS n FROM t".into_sql_str(), args![]);
        rows.await.unwrap()[0].int("n").unwrap().unwrap()
    }

    fn insert(connection: &mut Connection) -> Result<End<()>, rusqlite::Error> {
        connection.change("INSERT INTO t VALUES (1)", args![])?;
        Ok(End::Commit(()))
    }

    const MUCH: &str = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < $1) SELECT sum(n) AS n FROM c";

    const MANY: &str =
        "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < $1) SELECT n FROM c";

    #[test]
    fn reading_ends_when_its_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(&folder.path().join("t.db"), Keeps::Lasting).unwrap();
        for endless in [MUCH, MANY] {
            let found = connection.rows_within(Duration::from_millis(1), endless, args![1_000_000_000_i64]);
            assert!(found.unwrap().is_none());
        }
        let rows = connection.rows(MUCH, args![3_000_000_i64]).unwrap();
        assert_eq!(rows[0].int("n"), Ok(Some(4_500_001_500_000)));
    }

    /// On one thread: the other tasks of that thread go on meanwhile.
    #[tokio::test(flavor = "current_thread")]
    async fn much_reading_holds_up_nobody() {
        let (_folder, connections) = connections(1).await;
        let much = tokio::spawn({
            let connections = connections.clone();
            async move { connections.rows(MUCH.into_sql_str(), args![3_000_000_i64]).await }
        });
        let mut turns = 0_u64;
        while !much.is_finished() {
            turns += 1;
            tokio::task::yield_now().await;
        }
        let rows = much.await.unwrap().unwrap();
        assert_eq!(rows[0].int("n"), Ok(Some(4_500_001_500_000)));
        assert!(turns > 10, "{turns}");
    }

    #[tokio::test]
    async fn a_statement_that_changes_and_reads_does_both_once() {
        let (_folder, connections) = connections(1).await;
        let both = "INSERT INTO t (n) VALUES ($1) RETURNING n";
        let rows = connections.rows(both.into_sql_str(), args![5_i64]).await.unwrap();
        assert_eq!(rows[0].int("n"), Ok(Some(5)));
        assert_eq!(numbers(&connections).await, 1);
    }

    #[tokio::test]
    async fn a_transaction_that_is_dropped_changes_nothing_and_gives_its_turn_back() {
        let (_folder, connections) = connections(1).await;
        let mut open = connections.begin().await.unwrap();
        open.work(|connection| insert(connection).map(|_| ()))
            .await
            .unwrap();
        drop(open);
        assert_eq!(numbers(&connections).await, 0);
        let open = connections.begin().await.unwrap();
        open.end(insert).await.unwrap();
        assert_eq!(numbers(&connections).await, 1);
    }

    #[tokio::test]
    async fn a_transaction_that_ends_itself_without_a_commit_changes_nothing() {
        let (_folder, connections) = connections(1).await;
        let open = connections.begin().await.unwrap();
        let why = open.end(|connection| {
            insert(connection)?;
            Ok(End::RollBack("a device is leased"))
        });
        assert_eq!(why.await.unwrap(), "a device is leased");
        assert_eq!(numbers(&connections).await, 0);
    }

    #[tokio::test]
    async fn a_commit_whose_caller_has_gone_away_is_made_or_not_and_the_connection_comes_back() {
        let (_folder, connections) = connections(1).await;
        let open = connections.begin().await.unwrap();
        let commit = open.end(|connection| {
            std::thread::sleep(Duration::from_millis(50));
            insert(connection)
        });
        assert!(timeout(Duration::from_millis(5), commit).await.is_err());
        assert_eq!(numbers(&connections).await, 1);
    }

    #[tokio::test]
    async fn the_log_is_copied_when_it_is_long() {
        let (folder, connections) = connections(1).await;
        let longest = u64::from(super::super::connection::CHECKPOINT_PAGES) * 4200;
        for _ in 0..60 {
            let open = connections.begin().await.unwrap();
            let much = "INSERT INTO t VALUES (zeroblob(1000000))";
            let commit = open.end(move |connection| connection.change(much, args![]).map(End::Commit));
            commit.await.unwrap();
        }
        let size = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
        let (log, file) = (size("t.db-wal"), size("t.db"));
        assert!(log < longest + longest / 4 && file > longest / 2, "{log} {file}");
    }

    /// The commit waits for another task of the runtime, which has one thread for tasks.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_commit_that_waits_holds_up_no_other_task() {
        let (_folder, connections) = connections(1).await;
        let (tell, told) = std::sync::mpsc::channel();
        let committing = tokio::spawn({
            let connections = connections.clone();
            async move {
                let open = connections.begin().await.unwrap();
                tokio::spawn(async move { tell.send(()).unwrap() });
                let last = move |connection: &mut Connection| {
                    told.recv_timeout(Duration::from_secs(20)).unwrap();
                    insert(connection)
                };
                open.end(last).await.unwrap();
            }
        });
        committing.await.unwrap();
        assert_eq!(numbers(&connections).await, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_commit_that_panics_on_the_thread_that_asks_is_a_passing_error() {
        let (_folder, connections) = connections(1).await;
        let failed = tokio::spawn({
            let connections = connections.clone();
            async move {
                let open = connections.begin().await.unwrap();
                let last = |connection: &mut Connection| -> Result<End<()>, _> {
                    insert(connection)?;
                    panic!("on purpose")
                };
                open.end(last).await.unwrap_err()
            }
        });
        let error = crate::DbError::from_client("t", failed.await.unwrap());
        assert!(error.is_passing(), "{error:?}");
        assert_eq!(numbers(&connections).await, 0);
    }

    #[tokio::test]
    async fn work_that_panics_is_a_passing_error_and_nothing_of_it_stays() {
        let (_folder, connections) = connections(1).await;
        let mut open = connections.begin().await.unwrap();
        let failed = open.work(|connection| -> Result<(), _> {
            insert(connection)?;
            panic!("on purpose")
        });
        let error = crate::DbError::from_client("t", failed.await.unwrap_err());
        assert!(error.is_passing(), "{error:?}");
        let error = crate::DbError::from_client("t", open.work(|_| Ok(())).await.unwrap_err());
        assert!(error.is_passing(), "{error:?}");
        let failed = connections
            .begin()
            .await
            .unwrap()
            .end(|connection| -> Result<End<()>, _> {
                insert(connection)?;
                panic!("on purpose")
            });
        let error = crate::DbError::from_client("t", failed.await.unwrap_err());
        assert!(error.is_passing(), "{error:?}");
        assert_eq!(numbers(&connections).await, 0);
    }

    #[tokio::test]
    async fn closing_waits_for_what_is_lent_and_lends_nothing_more() {
        let (folder, connections) = connections(2).await;
        let open = connections.begin().await.unwrap();
        let closing = tokio::spawn({
            let connections = connections.clone();
            async move { connections.close().await }
        });
        tokio::task::yield_now().await;
        open.end(insert).await.unwrap();
        closing.await.unwrap();
        assert!(matches!(connections.begin().await, Err(ClientError::Closed)));
        assert!(!folder.path().join("t.db-wal").exists(), "the log is in the file");
    }
}
