//! Connections that are lent, and the threads that they are used on.
//!
//! What waits for the disk, for a lock or for much reading must not hold up a thread on which requests are answered: it is done on threads
//! for such work. Going there and back costs some 50 µs, however much is done there, and most of what is read is read in less. So
//! reading begins where it is asked for, and what is not done within [`AT_ONCE`] is begun again on the other thread; changes wait, and
//! go there together with their commit, unless commits are [quick](Pace) at the moment.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::SqlStr;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::connection::{BUSY_TIMEOUT, Committed, Connection, MayChange, noting_commits};
use super::pace::Pace;
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
    most: u32,
    /// As many as may be lent at the same time.
    room: Arc<Semaphore>,
    /// The last is the warmest.
    idle: Mutex<Vec<Connection>>,
    pace: Pace,
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub async fn open(path: PathBuf, most: u32) -> Result<Self, ClientError> {
        let connections = Self(Arc::new(Shared {
            path,
            most,
            room: Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1))),
            idle: Mutex::new(Vec::new()),
            pace: Pace::default(),
        }));
        connections.work(|_| Ok(())).await?;
        Ok(connections)
    }

    /// All rows of a statement, outside of a transaction.
    pub async fn rows(&self, sql: SqlStr, values: Vec<Value>) -> Result<Vec<SqliteRow>, ClientError> {
        let mut lent = self.lend().await?;
        if let Some(connection) = &mut lent.connection
            && let Some(rows) =
                connection.rows_within(AT_ONCE, sql.as_str(), values.clone(), MayChange::No)?
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
        // Given back by that thread, whoever may have gone away meanwhile.
        aside(move || {
            let (done, committed) = noting_commits(|| lent.connection().and_then(work));
            lent.of.pace.note_log(committed);
            done
        })
        .await
    }

    /// Begins a transaction that may write.
    pub async fn begin(&self) -> Result<Open, ClientError> {
        let mut lent = self.lend().await?;
        let has_begun = match &mut lent.connection {
            Some(connection) => connection.begin_at_once()?,
            None => false,
        };
        let mut open = Open {
            lent: Some(lent),
            worked: Duration::ZERO,
        };
        if !has_begun {
            open.work(|connection| connection.begin()).await?;
            // It has waited, and changed nothing.
            open.worked = Duration::ZERO;
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

/// A connection that somebody has, or none as long as it is not opened.
struct Lent {
    connection: Option<Connection>,
    of: Arc<Shared>,
    _room: OwnedSemaphorePermit,
}

impl Lent {
    fn connection(&mut self) -> Result<&mut Connection, rusqlite::Error> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(Connection::open(&self.of.path)?)),
        }
    }

    fn commit(
        &mut self,
        last: impl FnOnce(&mut Connection) -> Result<(), rusqlite::Error>,
    ) -> Result<Committed, rusqlite::Error> {
        let connection = self.connection()?;
        last(connection)?;
        connection.commit()
    }
}

impl Drop for Lent {
    /// One whose transaction cannot be rolled back is closed, which has the same effect.
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        if connection.roll_back().is_ok() && !self.of.room.is_closed() {
            self.of.idle().push(connection);
        }
    }
}

/// A transaction. Dropped without [`Open::commit`], it is rolled back. It is gone for good if something that was done in it was not
/// waited for.
pub(crate) struct Open {
    lent: Option<Lent>,
    /// How long others have worked in it for whoever asks.
    worked: Duration,
}

impl Open {
    /// All rows of a statement.
    pub async fn rows(&mut self, sql: SqlStr, values: Vec<Value>) -> Result<Vec<SqliteRow>, ClientError> {
        let lent = self.lent.as_mut().ok_or(ClientError::Closed)?;
        if let Some(connection) = &mut lent.connection {
            let may_change = if lent.of.pace.is_quick() && adds_rows(sql.as_str()) {
                MayChange::Yes
            } else {
                MayChange::No
            };
            let begun = Instant::now();
            let rows = connection.rows_within(AT_ONCE, sql.as_str(), values.clone(), may_change)?;
            lent.of.pace.note_work(begun.elapsed());
            if let Some(rows) = rows {
                return Ok(rows);
            }
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
        let (lent, done, took) = aside(move || {
            let begun = Instant::now();
            let done = lent.connection().and_then(work);
            Ok((lent, done, begun.elapsed()))
        })
        .await?;
        self.lent = Some(lent);
        self.worked += took;
        Ok(done?)
    }

    /// Does the last thing in it, which is little, and makes everything that was done in it last.
    pub async fn commit(
        self,
        last: impl FnOnce(&mut Connection) -> Result<(), rusqlite::Error> + Send + 'static,
    ) -> Result<(), ClientError> {
        let worked = self.worked;
        let is_quick = |lent: &Lent| lent.of.pace.is_quick_after(worked);
        if self.lent.as_ref().is_some_and(is_quick) {
            here(self.committing(last)?)
        } else {
            self.commit_aside(last).await
        }
    }

    /// The same where the last thing is much: never on the thread that asks.
    pub async fn commit_aside(
        self,
        last: impl FnOnce(&mut Connection) -> Result<(), rusqlite::Error> + Send + 'static,
    ) -> Result<(), ClientError> {
        aside(self.committing(last)?).await
    }

    fn committing(
        mut self,
        last: impl FnOnce(&mut Connection) -> Result<(), rusqlite::Error> + Send + 'static,
    ) -> Result<impl FnOnce() -> Result<(), rusqlite::Error> + Send + 'static, ClientError> {
        let mut lent = self.lent.take().ok_or(ClientError::Closed)?;
        Ok(move || {
            let begun = Instant::now();
            let ended = lent.commit(last);
            // One that failed may have been slow as well.
            let committed = ended.as_ref().copied().unwrap_or_default();
            lent.of.pace.note(begun.elapsed(), committed);
            ended.map(|_| ())
        })
    }
}

/// Whether a statement adds the rows that it names. Those that change or remove rows may find any number of them.
fn adds_rows(sql: &str) -> bool {
    sql.trim_start().starts_with("INSERT")
}

/// Does something on the thread that asks. A panic in it is its own, as on another thread.
fn here<T>(work: impl FnOnce() -> Result<T, rusqlite::Error>) -> Result<T, ClientError> {
    let done = catch_unwind(AssertUnwindSafe(|| watched(work)));
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
        connections_in(tempfile::tempdir().unwrap(), most).await
    }

    /// On a disk that is as quick as memory.
    async fn quick_connections() -> (TempDir, Connections) {
        connections_in(tempfile::tempdir_in("/dev/shm").unwrap(), 1).await
    }

    async fn connections_in(folder: TempDir, most: u32) -> (TempDir, Connections) {
        let connections = Connections::open(folder.path().join("t.db"), most).await.unwrap();
        let table = connections.work(|connection| connection.script("CREATE TABLE t (n integer)"));
        table.await.unwrap();
        (folder, connections)
    }

    async fn numbers(connections: &Connections) -> i64 {
        let rows = connections.rows("SELECT count(*) AS n FROM t".into_sql_str(), args![]);
        rows.await.unwrap()[0].int("n").unwrap().unwrap()
    }

    const MUCH: &str = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < $1) SELECT sum(n) AS n FROM c";

    const MANY: &str =
        "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < $1) SELECT n FROM c";

    #[test]
    fn reading_ends_when_its_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(&folder.path().join("t.db")).unwrap();
        let much = connection.rows_within(
            Duration::from_millis(1),
            MUCH,
            args![1_000_000_000_i64],
            MayChange::No,
        );
        assert!(much.unwrap().is_none());
        let many = connection.rows_within(
            Duration::from_millis(1),
            MANY,
            args![1_000_000_000_i64],
            MayChange::No,
        );
        assert!(many.unwrap().is_none());
        let rows = connection.rows(MUCH, args![3_000_000_i64]).unwrap();
        assert_eq!(rows[0].int("n"), Ok(Some(4_500_001_500_000)));
    }

    /// On one thread: whoever else is on it gets on meanwhile.
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
        let change = |connection: &mut Connection| connection.change("INSERT INTO t VALUES (1)", args![]);
        open.work(change).await.unwrap();
        drop(open);
        assert_eq!(numbers(&connections).await, 0);
        let open = connections.begin().await.unwrap();
        open.commit(move |connection| change(connection).map(|_| ()))
            .await
            .unwrap();
        assert_eq!(numbers(&connections).await, 1);
    }

    #[tokio::test]
    async fn a_commit_whose_caller_has_gone_away_is_made_or_not_and_the_connection_comes_back() {
        let (_folder, connections) = connections(1).await;
        let open = connections.begin().await.unwrap();
        let commit = open.commit(|connection| {
            std::thread::sleep(Duration::from_millis(50));
            connection.change("INSERT INTO t VALUES (1)", args![]).map(|_| ())
        });
        assert!(timeout(Duration::from_millis(5), commit).await.is_err());
        assert_eq!(numbers(&connections).await, 1);
    }

    /// As many commits as make the next one be made where it is asked for.
    async fn make_quick_commits(connections: &Connections) {
        for _ in 0..200 {
            if connections.0.pace.is_quick() {
                return;
            }
            let open = connections.begin().await.unwrap();
            let change = |connection: &mut Connection| {
                connection.change("INSERT INTO t VALUES (1)", args![]).map(|_| ())
            };
            open.commit(change).await.unwrap();
        }
        panic!("200 commits, and never some quick ones in a row");
    }

    #[tokio::test]
    async fn quick_commits_are_made_where_they_are_asked_for_until_one_is_slow() {
        let (_folder, connections) = quick_connections().await;
        let asker = std::thread::current().id();
        let made_by = async |pause: Duration| {
            let (tell, told) = std::sync::mpsc::channel();
            let open = connections.begin().await.unwrap();
            let commit = open.commit(move |connection| {
                std::thread::sleep(pause);
                tell.send(std::thread::current().id()).unwrap();
                connection.change("INSERT INTO t VALUES (1)", args![]).map(|_| ())
            });
            commit.await.unwrap();
            told.recv().unwrap()
        };
        assert_ne!(made_by(Duration::ZERO).await, asker, "nothing is known yet");
        make_quick_commits(&connections).await;
        let open = connections.begin().await.unwrap();
        open.commit_aside(move |_| {
            assert_ne!(std::thread::current().id(), asker, "much is never made here");
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(made_by(Duration::from_millis(20)).await, asker);
        assert_ne!(made_by(Duration::ZERO).await, asker, "the last one was slow");
    }

    #[tokio::test]
    async fn what_took_long_elsewhere_is_made_to_last_elsewhere() {
        let (_folder, connections) = quick_connections().await;
        let asker = std::thread::current().id();
        for (pause, is_here) in [(Duration::ZERO, true), (Duration::from_millis(20), false)] {
            make_quick_commits(&connections).await;
            let mut open = connections.begin().await.unwrap();
            let work = move |_: &mut Connection| {
                std::thread::sleep(pause);
                Ok(())
            };
            open.work(work).await.unwrap();
            // A busy machine may have taken its time for the first.
            let is_here = is_here && open.worked < Duration::from_millis(2);
            open.commit(move |_| {
                assert_eq!(std::thread::current().id() == asker, is_here);
                Ok(())
            })
            .await
            .unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_committed_by_the_way_lengthens_the_log_as_well() {
        let (_folder, connections) = quick_connections().await;
        make_quick_commits(&connections).await;
        assert!(connections.0.pace.is_quick());
        let much = "INSERT INTO t VALUES (zeroblob(31600000))";
        let change = |connection: &mut Connection| connection.change(much, args![]);
        connections.work(change).await.unwrap();
        assert!(!connections.0.pace.is_quick(), "the next one may copy the log");
    }

    #[tokio::test]
    async fn in_a_transaction_what_changes_and_reads_is_done_where_it_is_asked_for_until_it_is_slow() {
        const SLOW: &str = "INSERT INTO t WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < $1) \
            SELECT sum(n) FROM c RETURNING n";
        let (_folder, connections) = quick_connections().await;
        make_quick_commits(&connections).await;
        let before = numbers(&connections).await;
        let mut open = connections.begin().await.unwrap();
        let rows = open.rows(SLOW.into_sql_str(), args![3_i64]).await.unwrap();
        assert_eq!(rows[0].int("n"), Ok(Some(6)));
        drop(open);
        assert_eq!(
            numbers(&connections).await,
            before,
            "it is a part of the transaction"
        );
        let mut open = connections.begin().await.unwrap();
        let rows = open
            .rows(SLOW.into_sql_str(), args![1_000_000_i64])
            .await
            .unwrap();
        assert_eq!(rows[0].int("n"), Ok(Some(500_000_500_000)));
        // What was done on another thread tells nothing of this one.
        assert!(!connections.0.pace.is_quick());
        open.commit(|_| Ok(())).await.unwrap();
        assert_eq!(numbers(&connections).await, before + 1);
    }

    #[tokio::test]
    async fn in_a_transaction_what_may_be_about_many_rows_is_never_done_where_it_is_asked_for() {
        let (_folder, connections) = quick_connections().await;
        // On a busy machine the first step may be a slow one as well.
        for _ in 0..20 {
            make_quick_commits(&connections).await;
            let mut open = connections.begin().await.unwrap();
            let much = format!("UPDATE t SET n = n + 1 WHERE n < ({MUCH}) RETURNING n");
            let rows = open.rows(sqlx::AssertSqlSafe(much).into_sql_str(), args![100_000_i64]);
            assert_eq!(rows.await.unwrap()[0].int("n"), Ok(Some(2)));
            // It took long, which on another thread says nothing of this one.
            if connections.0.pace.is_quick() {
                return;
            }
        }
        panic!("it was done on the thread that asked");
    }

    #[tokio::test]
    async fn a_commit_that_panics_where_it_is_asked_for_is_a_passing_error_and_nothing_of_it_stays() {
        let (_folder, connections) = quick_connections().await;
        make_quick_commits(&connections).await;
        let before = numbers(&connections).await;
        let open = connections.begin().await.unwrap();
        let failed = open.commit(|connection| {
            connection.change("INSERT INTO t VALUES (1)", args![])?;
            panic!("on purpose")
        });
        let error = crate::DbError::from_client("t", failed.await.unwrap_err());
        assert!(error.is_passing(), "{error:?}");
        assert_eq!(numbers(&connections).await, before);
    }

    #[tokio::test]
    async fn the_log_is_copied_when_it_is_long() {
        let (folder, connections) = connections(1).await;
        let longest = u64::from(super::super::connection::CHECKPOINT_PAGES) * 4200;
        for _ in 0..60 {
            let open = connections.begin().await.unwrap();
            let much = "INSERT INTO t VALUES (zeroblob(1000000))";
            let commit = open.commit(move |connection| connection.change(much, args![]).map(|_| ()));
            commit.await.unwrap();
        }
        let size = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
        let (log, file) = (size("t.db-wal"), size("t.db"));
        assert!(log < longest + longest / 4 && file > longest / 2, "{log} {file}");
    }

    #[tokio::test]
    async fn work_that_panics_is_a_passing_error_and_nothing_of_it_stays() {
        let (_folder, connections) = connections(1).await;
        let mut open = connections.begin().await.unwrap();
        let failed = open.work(|connection| -> Result<(), _> {
            connection.change("INSERT INTO t VALUES (1)", args![])?;
            panic!("on purpose")
        });
        let error = crate::DbError::from_client("t", failed.await.unwrap_err());
        assert!(error.is_passing(), "{error:?}");
        let error = crate::DbError::from_client("t", open.work(|_| Ok(())).await.unwrap_err());
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
        let change =
            |connection: &mut Connection| connection.change("INSERT INTO t VALUES (1)", args![]).map(|_| ());
        open.commit(change).await.unwrap();
        closing.await.unwrap();
        assert!(matches!(connections.begin().await, Err(ClientError::Closed)));
        assert!(!folder.path().join("t.db-wal").exists(), "the log is in the file");
    }
}
