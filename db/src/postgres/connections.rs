//! Connections to PostgreSQL that are kept at hand.
//!
//! A pool hands its connections out in turn, and tests each returned connection with a round trip. Here a connection that was returned in
//! good order is used again at once, the last one first: the server's side of it is still warm, and there are as few as are needed. A
//! connection that was not returned, because of an error or because a future was dropped, goes to the pool, which repairs or closes it. The
//! pool also opens connections.
//! also makes connections.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, Error, PgConnection, PgPool, Postgres};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// One that was idle for so long goes back to the pool, which ends it when it stays idle there.
const IDLE_AT_MOST: Duration = Duration::from_secs(300);
/// One that was taken from the pool so long ago goes back to it, which ends those that are old.
const KEPT_AT_MOST: Duration = Duration::from_secs(1800);

/// A pool, and those of its connections that are kept at hand.
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    pool: PgPool,
    wait: Duration,
    tested_after_idle: Duration,
    /// As many as may be lent at one time.
    room: Arc<Semaphore>,
    hands: Mutex<Hands>,
}

/// What is at hand, and who waits because nothing is.
struct Hands {
    /// The last is the warmest.
    idle: VecDeque<Idle>,
    /// The number of callers that wait for the pool. All of the pool's connections may be kept here, except one that it is repairing:
    /// returned connections go to the pool until no caller waits any more.
    waiting: usize,
}

struct Idle {
    connection: PoolConnection<Postgres>,
    taken_at: Instant,
    since: Instant,
}

impl Shared {
    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock()
    }

    /// The warmest; `None` if the caller has to wait for the pool.
    fn pop_or_wait(self: &Arc<Self>) -> Result<Idle, Waiting> {
        let mut hands = self.hands();
        hands.idle.pop_back().ok_or_else(|| {
            hands.waiting += 1;
            Waiting(Arc::clone(self))
        })
    }
}

/// A caller that waits for the pool.
struct Waiting(Arc<Shared>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.hands().waiting -= 1;
    }
}

impl Connections {
    /// How its connections are made.
    pub fn options(&self) -> Arc<PgConnectOptions> {
        self.0.pool.connect_options()
    }

    /// Of a pool with at least so many connections. Who does not get one within `wait` is told that the database is unavailable; one
    /// that was idle for so long is tested before it is used.
    pub fn new(pool: PgPool, connections: u32, wait: Duration, tested_after_idle: Duration) -> Self {
        let room = usize::try_from(connections).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Shared {
            pool,
            wait,
            tested_after_idle,
            room: Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS))),
            hands: Mutex::new(Hands {
                idle: VecDeque::new(),
                waiting: 0,
            }),
        }))
    }

    /// The pool itself, for what holds a connection of its own beside those that are lent.
    pub fn pool(&self) -> &PgPool {
        &self.0.pool
    }

    /// A connection that answers, as far as one can know.
    pub async fn take(&self) -> Result<Lent, Error> {
        let shared = Arc::clone(&self.0);
        let room = timeout(shared.wait, Arc::clone(&shared.room).acquire_owned());
        let room = room.await.map_err(|_| Error::PoolTimedOut)?;
        let room = room.map_err(|_| Error::PoolClosed)?;
        let lent = |connection, taken_at| Lent {
            connection: Some(connection),
            is_in_transaction: false,
            taken_at,
            of: Arc::clone(&shared),
            _room: room,
        };
        let _waiting = loop {
            match shared.pop_or_wait() {
                Ok(mut idle) => {
                    let is_fresh = idle.since.elapsed() < shared.tested_after_idle;
                    if is_fresh || idle.connection.ping().await.is_ok() {
                        return Ok(lent(idle.connection, idle.taken_at));
                    }
                }
                Err(waiting) => break waiting,
            }
        };
        let connection = shared.pool.acquire().await?;
        Ok(lent(connection, Instant::now()))
    }

    /// Begins a transaction.
    pub async fn begin(&self, statement: &'static str) -> Result<OpenTransaction, Error> {
        let mut lent = self.take().await?;
        lent.is_in_transaction = true;
        let mut open = OpenTransaction { lent: Some(lent) };
        sqlx::raw_sql(statement).execute(open.connection()?).await?;
        Ok(open)
    }

    /// Ends all connections.
    pub async fn close(&self) {
        self.0.room.close();
        let closing = self.0.pool.close();
        // Outside of the lock, which other callers need meanwhile.
        let idle = std::mem::take(&mut self.0.hands().idle);
        drop(idle);
        closing.await;
    }
}

impl Clone for Connections {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.pool.fmt(f)
    }
}

/// A connection that a caller has. Dropped without [`Lent::release`], it goes to the pool.
pub(crate) struct Lent {
    connection: Option<PoolConnection<Postgres>>,
    is_in_transaction: bool,
    taken_at: Instant,
    of: Arc<Shared>,
    _room: OwnedSemaphorePermit,
}

impl Lent {
    /// The connection.
    pub fn connection(&mut self) -> Result<&mut PgConnection, Error> {
        let connection = self.connection.as_mut().ok_or(Error::PoolClosed)?;
        Ok(&mut **connection)
    }

    /// Takes it for something else than statements; it does not come back here.
    pub fn detach(mut self) -> Result<PoolConnection<Postgres>, Error> {
        self.connection.take().ok_or(Error::PoolClosed)
    }

    /// Nothing went wrong, and nothing is left to be done on it.
    pub fn release(mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        if self.of.pool.is_closed() || self.taken_at.elapsed() > KEPT_AT_MOST {
            return;
        }
        let mut hands = self.of.hands();
        if hands.waiting > 0 {
            return;
        }
        let is_cold = |idle: &Idle| idle.since.elapsed() > IDLE_AT_MOST;
        while hands.idle.front().is_some_and(is_cold) {
            hands.idle.pop_front();
        }
        hands.idle.push_back(Idle {
            connection,
            taken_at: self.taken_at,
            since: Instant::now(),
        });
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.as_mut().filter(|_| self.is_in_transaction) {
            // The pool would lend it to another caller with the transaction.
            connection.close_on_drop();
        }
    }
}

/// A transaction. Dropped without [`OpenTransaction::commit`], it is rolled back.
pub(crate) struct OpenTransaction {
    lent: Option<Lent>,
}

impl OpenTransaction {
    /// Its connection.
    pub fn connection(&mut self) -> Result<&mut PgConnection, Error> {
        self.lent.as_mut().ok_or(Error::PoolClosed)?.connection()
    }

    /// Makes everything that was done in it last.
    pub async fn commit(mut self) -> Result<(), Error> {
        sqlx::raw_sql("COMMIT").execute(self.connection()?).await?;
        if let Some(mut lent) = self.lent.take() {
            lent.is_in_transaction = false;
            lent.release();
        }
        Ok(())
    }
}

impl Drop for OpenTransaction {
    /// Where nothing can run any more, and where it fails, the connection is closed, which rolls back too.
    fn drop(&mut self) {
        let (Some(lent), Ok(runtime)) = (self.lent.take(), Handle::try_current()) else {
            return;
        };
        runtime.spawn(roll_back(lent));
    }
}

async fn roll_back(mut lent: Lent) {
    let Ok(connection) = lent.connection() else { return };
    if sqlx::raw_sql("ROLLBACK").execute(connection).await.is_ok() {
        lent.is_in_transaction = false;
        lent.release();
    }
}
