-- The first schema: who waits, who sits where, and what operators decide.
-- Times are milliseconds since the Unix epoch. Keys are ordered by time, because an insert in the
-- middle of a large index costs ten times as much as one at its end.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- The number of the next ticket, kept apart because tickets are deleted and numbers never return.
INSERT INTO meta (key, value) VALUES ('next_ticket', 1);

-- Secrets by which session tokens are signed. The newest signs, all of them are accepted.
CREATE TABLE session_keys (
    number     INTEGER PRIMARY KEY,
    secret     BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- AUTOINCREMENT, so that the number of a topic or a ban never comes to mean another one.
CREATE TABLE topics (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    title      TEXT NOT NULL,
    active     INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE bans (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session    BLOB,
    network    TEXT,
    reason     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    CHECK ((session IS NULL) <> (network IS NULL))
) STRICT;

-- One row for each person who waits, gone when the wait ends. The address is there so that a ban of
-- a network finds the people who wait.
CREATE TABLE tickets (
    number    INTEGER PRIMARY KEY,
    session   BLOB NOT NULL,
    topic_id  INTEGER NOT NULL,
    room_type INTEGER NOT NULL,
    since     INTEGER NOT NULL,
    address   TEXT NOT NULL
) STRICT;

-- Why somebody became idle, kept for some minutes.
CREATE TABLE departures (
    number  INTEGER PRIMARY KEY,
    session BLOB NOT NULL,
    reason  TEXT NOT NULL,
    at      INTEGER NOT NULL
) STRICT;

CREATE TABLE conversations (
    id         BLOB PRIMARY KEY,
    topic_id   INTEGER NOT NULL,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX live_conversations ON conversations (id) WHERE ended_at IS NULL;

CREATE TABLE participants (
    conversation_id BLOB NOT NULL,
    seat            INTEGER NOT NULL,
    session_id      BLOB NOT NULL,
    requested_size  INTEGER NOT NULL,
    joined_at       INTEGER NOT NULL,
    left_at         INTEGER,
    PRIMARY KEY (conversation_id, seat)
) STRICT, WITHOUT ROWID;
