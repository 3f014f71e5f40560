//! What somebody does in a room: looks at it, talks for a while, leaves.

use std::sync::atomic::Ordering;

use hyper::Method;

use super::super::history::{State, What};
use super::super::phone::{Lost, room_view};
use super::super::stage::count;
use super::{NO_LONGER, Person};

impl Person {
    pub(super) async fn converse(&mut self) {
        let Some((_, State::Matched(seat))) = self.history.last() else { return };
        let room = seat.room.clone();
        count(&self.stage.counts.seated);
        self.look_at(&room).await;
        let most = self.stage.pace.rest * 2;
        self.pause(most / 8, most).await;
        if self.chance.percent(15) {
            self.vanish().await;
        }
        if self.chance.percent(10) {
            // Somebody who wants to be in two rooms.
            self.join().await;
        }
        self.leave(&room).await;
        self.stage.counts.seated.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) async fn look_at(&mut self, room: &str) {
        let asked = self.now();
        let route = format!("/api/rooms/{room}");
        match self.phone.ask(Method::GET, &route, None, NO_LONGER).await {
            Ok(answer) if answer.status == 200 => match room_view(&answer.body) {
                Some(view) => self.note(asked, What::Room(view)),
                None => self.surprised("GET /api/rooms", &answer),
            },
            Ok(answer) if answer.status == 404 => {
                self.note(asked, What::NotMyRoom { room: room.to_owned() });
            }
            Ok(answer) => {
                self.held_off(&answer).await;
            }
            Err(Lost) => self.lost(),
        }
    }

    pub(super) async fn leave(&mut self, room: &str) {
        let asked = self.now();
        let route = format!("/api/rooms/{room}/leave");
        match self.phone.ask(Method::POST, &route, None, NO_LONGER).await {
            Ok(answer) if answer.status == 204 => {
                self.note(asked, What::Left { room: room.to_owned() });
                self.poll(None).await;
            }
            Ok(answer) if answer.status == 404 => {
                self.note(asked, What::NotMyRoom { room: room.to_owned() });
            }
            Ok(answer) => {
                if !self.held_off(&answer).await {
                    self.surprised("POST /api/rooms/leave", &answer);
                }
            }
            Err(Lost) => {
                self.lost();
                self.note(asked, What::LeaveLost { room: room.to_owned() });
                self.poll(None).await;
            }
        }
    }
}
