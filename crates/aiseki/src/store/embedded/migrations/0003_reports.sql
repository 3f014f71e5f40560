-- What people report. The only place where something that was said outlives its room.
CREATE TABLE reports (
    -- AUTOINCREMENT, so that the number of a report never comes to mean another one.
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id BLOB NOT NULL,
    reporter        BLOB NOT NULL,
    reported        BLOB NOT NULL,
    seat            INTEGER NOT NULL,
    reason          TEXT NOT NULL,
    -- The last messages of the room, as JSON.
    said            TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    judged_at       INTEGER,
    ban             INTEGER
) STRICT;

CREATE INDEX reports_of_reporter ON reports (reporter, created_at);

-- Who never sits with whom again, for ever and for both.
CREATE TABLE blocks (
    blocker    BLOB NOT NULL,
    blocked    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (blocker, blocked)
) STRICT, WITHOUT ROWID;
