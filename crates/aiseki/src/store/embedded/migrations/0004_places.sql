-- The place in a queue that somebody may take up again, because a room ended in which others never came.
-- A place is named by the number of the ticket to which it belongs first; null is a ticket's own.

ALTER TABLE tickets ADD COLUMN place INTEGER;

-- How somebody stood in the queue before they were seated, and whether they ever came to the room. Null
-- in rows that are older than these columns.
ALTER TABLE participants ADD COLUMN waiting_since INTEGER;
ALTER TABLE participants ADD COLUMN place INTEGER;
ALTER TABLE participants ADD COLUMN came INTEGER;

-- What is offered to whom, for as long as the reason is kept.
ALTER TABLE departures ADD COLUMN offered_room BLOB;
ALTER TABLE departures ADD COLUMN topic_id INTEGER;
ALTER TABLE departures ADD COLUMN room_type INTEGER;
ALTER TABLE departures ADD COLUMN waited INTEGER;
ALTER TABLE departures ADD COLUMN place INTEGER;
