-- What is said in live rooms, and why rooms ended.

-- Deleted in the commit in which the room ends.
CREATE TABLE messages (
    conversation_id BLOB NOT NULL,
    seq             INTEGER NOT NULL,
    seat            INTEGER NOT NULL,
    client_id       TEXT NOT NULL,
    text            TEXT NOT NULL,
    at              INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, seq)
) STRICT, WITHOUT ROWID;

ALTER TABLE conversations ADD COLUMN ended_for TEXT;
