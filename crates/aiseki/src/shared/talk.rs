//! Rooms on shared stores: the live side in the waiting store's log, the record in the database.

use std::sync::Arc;
use std::time::Duration;

use aiseki_lobby::{IdleReason, RoomId, SessionId};

use super::{Leaving, Log, RoomLog, WaitingStore};
use crate::conversations::ConversationStore;
use crate::port::{Pending, Unavailable};
use crate::records::RecordStore;
use crate::rooms::{Appended, Attendance, Closing, Line, NotSaid, RoomStore, Said, View};

/// How often it is looked who is away for too long.
const SWEEP: Duration = Duration::from_millis(500);

/// The rooms of one server.
pub struct SharedRooms {
    log: Arc<dyn RoomLog>,
    waiting: Arc<dyn WaitingStore>,
    records: Arc<dyn RecordStore>,
    conversations: Arc<dyn ConversationStore>,
}

impl SharedRooms {
    /// Rooms on these stores.
    pub fn new(
        log: Arc<dyn RoomLog>,
        waiting: Arc<dyn WaitingStore>,
        records: Arc<dyn RecordStore>,
        conversations: Arc<dyn ConversationStore>,
    ) -> Self {
        Self { log, waiting, records, conversations }
    }

    /// Gives up for ever the seats of people who are away for too long.
    pub async fn keep_away(self: Arc<Self>) {
        loop {
            let _ = self.end_absences().await;
            tokio::time::sleep(SWEEP).await;
        }
    }

    async fn end_absences(&self) -> Result<(), Unavailable> {
        for (room, session) in self.log.overdue().await? {
            match session {
                Some(session) => self.dismiss(room, session, IdleReason::Absent).await?,
                None => self.end_lost(room).await?,
            }
        }
        Ok(())
    }

    /// Somebody loses the seat.
    async fn dismiss(
        &self,
        room: RoomId,
        session: SessionId,
        reason: IdleReason,
    ) -> Result<(), Unavailable> {
        let departure = self.records.give_up_seat(session, room).await?;
        self.waiting.vacate(vec![Leaving::departed(room, session, reason, departure)]).await
    }

    /// What was said in a live room is lost: it never goes on under a new count.
    async fn end_lost(&self, room: RoomId) -> Result<(), Unavailable> {
        let people = self.records.end_room(room).await?.unwrap_or_default();
        self.waiting.vacate(vec![Leaving::ended(room, people)]).await
    }
}

impl RoomStore for SharedRooms {
    fn view(&self, room: RoomId) -> Pending<'_, Option<View>> {
        Box::pin(async move {
            let why = match self.log.view(room).await? {
                Log::Live(members) => return Ok(Some(View::Live(members))),
                Log::None(why) => why,
            };
            let Some(conversation) = self.conversations.conversation(room).await? else {
                return Ok(None);
            };
            if conversation.ended_at.is_some() {
                return Ok(Some(View::Ended(why.unwrap_or(Closing::Closed))));
            }
            self.end_lost(room).await?;
            Ok(Some(View::Ended(Closing::StoreLost)))
        })
    }

    fn append(&self, line: Line) -> Pending<'_, Result<Appended, NotSaid>> {
        self.log.append(line)
    }

    fn read(&self, room: RoomId, after: u64, limit: usize) -> Pending<'_, Vec<Arc<Said>>> {
        Box::pin(async move {
            let page = self.log.read(room, after, limit).await?;
            // Somebody was told more than the log has: its end was lost in a fail-over.
            if page.last > 0 && page.last < after {
                self.end_lost(room).await?;
            }
            Ok(page.said)
        })
    }

    fn attend(&self, connections: Vec<Attendance>) -> Pending<'_, ()> {
        self.log.attend(connections)
    }

    fn depart(&self, connection: Attendance) -> Pending<'_, ()> {
        self.log.depart(connection)
    }

    fn typing(&self, room: RoomId, seat: u8) -> Pending<'_, ()> {
        self.log.typing(room, seat)
    }
}
