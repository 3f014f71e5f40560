//! The rule, seen from outside: one module per part of the contract, and the simulation.

/// Who may not sit together, and the bounds of looking for those who may.
mod companions;
/// What a test says about people, without repeating how the lobby is called.
mod day;
/// What happens by itself, when, and how much of it at once.
mod due;
/// From a reservation to a seat, and back when the room cannot be written.
mod reservations;
/// A lobby loaded from what was stored.
mod restore;
/// Places that are kept for those who came to a room in which others never did.
mod resume;
/// Seats, rooms and topics that end.
mod rooms;
/// Who sits with whom: full rooms, fallback, merge, and the order of arrival.
mod seating;
/// Random days under several policies, each step compared with a second implementation.
mod simulation;
/// Who waits, since when, and why no longer.
mod waiting;
