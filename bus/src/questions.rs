//! Questions that wait for their answer.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::limits::MAX_OPEN_QUESTIONS;
use crate::{BusError, Message};

type OpenQuestions = HashMap<Uuid, oneshot::Sender<Message>>;

/// The open questions of one bus, by the id of the message that asked.
#[derive(Default)]
pub(crate) struct Questions(Mutex<OpenQuestions>);

impl Questions {
    /// Opens a question. It is closed when the returned value is dropped.
    pub fn ask(&self, id: Uuid) -> Result<Question<'_>, BusError> {
        let refused = |what| BusError::Refused { what, source: None };
        let mut open = self.lock();
        if open.len() >= MAX_OPEN_QUESTIONS {
            return Err(refused(format!("more than {MAX_OPEN_QUESTIONS} open questions")));
        }
        if open.contains_key(&id) {
            return Err(refused(format!("question {id} is open already")));
        }
        let (sender, answer) = oneshot::channel();
        open.insert(id, sender);
        Ok(Question {
            all: self,
            id,
            answer,
        })
    }

    /// Delivers an answer; `false` if no caller waits for it any more.
    pub fn answer(&self, id: Uuid, answer: Message) -> bool {
        let asker = self.lock().remove(&id);
        asker.is_some_and(|asker| asker.send(answer).is_ok())
    }

    /// Gives up all open questions: their answers can no longer arrive.
    pub fn give_up(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, OpenQuestions> {
        self.0.lock()
    }
}

/// One open question.
pub(crate) struct Question<'a> {
    all: &'a Questions,
    id: Uuid,
    answer: oneshot::Receiver<Message>,
}

impl Question<'_> {
    /// Waits for the answer; `None` if it was given up.
    pub async fn answered(&mut self) -> Option<Message> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.id);
    }
}
