//! Every statement of this store. A test prepares each of them on a migrated database.
//!
//! Times are cut to milliseconds when they are written, because that is what everything else counts
//! in, and a time must not change by being read.

/// Every statement by its name.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("WRITE_ROOMS", WRITE_ROOMS),
    ("BURY_ROOMS", BURY_ROOMS),
    ("ROOMS", ROOMS),
    ("SEATS_OF", SEATS_OF),
    ("LIVE_SEATS", LIVE_SEATS),
    ("LOCK_ROOM", LOCK_ROOM),
    ("GIVE_UP_SEAT", GIVE_UP_SEAT),
    ("END_ROOM", END_ROOM),
    ("LATELY_ENDED", LATELY_ENDED),
    ("PEOPLE_OF", PEOPLE_OF),
    ("PING", PING),
    ("CONVERSATION", CONVERSATION),
    ("LIVE_CONVERSATIONS", LIVE_CONVERSATIONS),
    ("TOPICS", TOPICS),
    ("TOPIC", TOPIC),
    ("ADD_TOPIC", ADD_TOPIC),
    ("LOCK_TOPICS", LOCK_TOPICS),
    ("ADD_FIRST_TOPICS", ADD_FIRST_TOPICS),
    ("CHANGE_TOPIC", CHANGE_TOPIC),
    ("BANS", BANS),
    ("ADD_BAN", ADD_BAN),
    ("REMOVE_BAN", REMOVE_BAN),
    ("ADD_BLOCK", ADD_BLOCK),
    ("BLOCKS", BLOCKS),
    ("SAME_REPORT", SAME_REPORT),
    ("LATE_REPORTS", LATE_REPORTS),
    ("ADD_REPORT", ADD_REPORT),
    ("REPORTS", REPORTS),
    ("REPORT", REPORT),
    ("JUDGE_REPORT", JUDGE_REPORT),
    ("SESSION_KEYS", SESSION_KEYS),
    ("FIRST_SESSION_KEY", FIRST_SESSION_KEY),
];

/// Writes rooms ($1 ids, $2 topics, $3 sizes) with their people ($4 rooms, $5 sessions, $6 seats, $7
/// requested sizes) and returns those that were written. Left out is a room that is there already, and
/// one with somebody who holds a seat.
///
/// Rooms are inserted in the order of their ids and people in that of theirs, whatever the batch: two
/// servers that write the same ones wait for each other and never in a circle. `OFFSET 0` keeps the
/// question about a seat as it stands, one look into the index of live seats for each person; as a join
/// it would be planned for the number of rows at that time.
pub(super) const WRITE_ROOMS: &str = "
    WITH room AS (
        SELECT * FROM unnest($1::uuid[], $2::int8[], $3::int2[]) AS room (id, topic_id, size)
    ), person AS (
        SELECT * FROM unnest($4::uuid[], $5::uuid[], $6::int2[], $7::int2[])
            AS person (room_id, session_id, seat, requested_size)
    ), occupied AS (
        SELECT room_id FROM person
        WHERE EXISTS (
            SELECT 1 FROM participants AS held
            WHERE held.session_id = person.session_id AND held.left_at IS NULL
            OFFSET 0
        )
    ), written AS (
        INSERT INTO conversations (id, topic_id, size, created_at)
        SELECT id, topic_id, size, date_trunc('milliseconds', statement_timestamp())
        FROM room WHERE id NOT IN (SELECT room_id FROM occupied)
        ORDER BY id
        ON CONFLICT (id) DO NOTHING
        RETURNING id, created_at
    ), seated AS (
        INSERT INTO participants (conversation_id, session_id, seat, requested_size, joined_at)
        SELECT written.id, session_id, seat, requested_size, written.created_at
        FROM person JOIN written ON written.id = room_id
        ORDER BY session_id
    )
    SELECT id FROM written";

/// Writes tombstones ($1 ids, $2 topics, $3 sizes) and returns those that are new.
pub(super) const BURY_ROOMS: &str = "
    INSERT INTO conversations (id, topic_id, size, created_at, ended_at)
    SELECT id, topic_id, size, at, at
    FROM unnest($1::uuid[], $2::int8[], $3::int2[]) AS room (id, topic_id, size),
        date_trunc('milliseconds', statement_timestamp()) AS at
    ORDER BY id
    ON CONFLICT (id) DO NOTHING
    RETURNING id";

/// What is there of these rooms: whether each has ended, whether it ever had people, and who holds its
/// seats, by seat.
pub(super) const ROOMS: &str = "
    SELECT id, ended_at IS NOT NULL, ever > 0, coalesce(holders, '{}')
    FROM conversations, LATERAL (
        SELECT count(*) AS ever,
            array_agg(session_id ORDER BY seat) FILTER (WHERE left_at IS NULL) AS holders
        FROM participants WHERE conversation_id = id
    ) AS people
    WHERE id = ANY ($1::uuid[])";

/// The live seats of these people.
pub(super) const SEATS_OF: &str = "
    SELECT session_id, id, topic_id, size, requested_size, created_at
    FROM participants JOIN conversations ON id = conversation_id
    WHERE session_id = ANY ($1::uuid[]) AND left_at IS NULL";

/// At most $2 live seats in the order of their people, from the id $1 on.
pub(super) const LIVE_SEATS: &str = "
    SELECT session_id, id, topic_id, size, requested_size, created_at
    FROM participants JOIN conversations ON id = conversation_id
    WHERE left_at IS NULL AND session_id >= $1
    ORDER BY session_id LIMIT $2";

/// Keeps others from changing a room until this transaction has ended. Whoever changes seats of a room
/// begins with it, so that two who leave at once do so one after the other.
pub(super) const LOCK_ROOM: &str = "
    SELECT ended_at IS NOT NULL FROM conversations WHERE id = $1 FOR UPDATE";

/// The person $2 leaves the room $1; returns whether they had a seat, how many others hold one, and
/// everybody who ever did.
pub(super) const GIVE_UP_SEAT: &str = "
    WITH gone AS (
        UPDATE participants
        SET left_at = date_trunc('milliseconds', clock_timestamp()), left_reason = 'left'
        WHERE conversation_id = $1 AND session_id = $2 AND left_at IS NULL
        RETURNING seat
    )
    SELECT EXISTS (SELECT 1 FROM gone),
        count(*) FILTER (WHERE left_at IS NULL AND session_id <> $2),
        coalesce(array_agg(session_id ORDER BY seat), '{}')
    FROM participants WHERE conversation_id = $1";

/// Ends the room $1, and returns who held a seat until now, by seat. A seat that is held is told by
/// `left_reason`, because the index of live seats, which `left_at` would bring to mind, is by person.
pub(super) const END_ROOM: &str = "
    WITH ended AS (
        UPDATE conversations SET ended_at = date_trunc('milliseconds', clock_timestamp())
        WHERE id = $1 AND ended_at IS NULL
        RETURNING id, ended_at
    ), gone AS (
        UPDATE participants SET left_at = ended.ended_at, left_reason = 'room_closed'
        FROM ended WHERE conversation_id = ended.id AND left_reason IS NULL
        RETURNING seat, session_id
    )
    SELECT session_id FROM gone ORDER BY seat";

/// The people of at most $2 rooms that ended within the last $1 milliseconds, the latest first, and
/// whether they left by themselves. The time of the statement is one for which an index can be asked.
pub(super) const LATELY_ENDED: &str = "
    SELECT id, session_id, coalesce(left_reason = 'left', false)
    FROM (
        SELECT id, ended_at FROM conversations
        WHERE ended_at >= statement_timestamp() - $1::int8 * interval '1 millisecond'
        ORDER BY ended_at DESC LIMIT $2
    ) AS ended JOIN participants ON conversation_id = id
    ORDER BY ended_at DESC, id, seat";

/// The people of the rooms $1, whether they have left, and whether by themselves.
pub(super) const PEOPLE_OF: &str = "
    SELECT conversation_id, session_id, left_at IS NOT NULL, coalesce(left_reason = 'left', false)
    FROM participants WHERE conversation_id = ANY ($1::uuid[])
    ORDER BY conversation_id, seat";

/// Whether the database can only be read: one that follows another, or that an administrator has closed
/// for maintenance.
pub(super) const PING: &str = "SELECT current_setting('transaction_read_only')::boolean";

pub(super) const CONVERSATION: &str = "
    SELECT id, topic_id, size, created_at, ended_at,
        seat, session_id, requested_size, joined_at, left_at
    FROM conversations LEFT JOIN participants ON conversation_id = id
    WHERE id = $1 ORDER BY seat";

/// At most $3 live rooms after $1, of the topic $2 when that is not null, a row for each person.
pub(super) const LIVE_CONVERSATIONS: &str = "
    SELECT id, topic_id, size, created_at, ended_at,
        seat, session_id, requested_size, joined_at, left_at
    FROM (
        SELECT * FROM conversations
        WHERE ended_at IS NULL AND id > $1 AND ($2::int8 IS NULL OR topic_id = $2)
        ORDER BY id LIMIT $3
    ) AS live LEFT JOIN participants ON conversation_id = id
    ORDER BY id, seat";

pub(super) const TOPICS: &str = "SELECT id, title, active FROM topics ORDER BY id";

pub(super) const TOPIC: &str = "SELECT id, title, active FROM topics WHERE id = $1";

pub(super) const ADD_TOPIC: &str = "
    INSERT INTO topics (title, active) VALUES ($1, $2) RETURNING id, title, active";

pub(super) const LOCK_TOPICS: &str = "LOCK TABLE topics IN EXCLUSIVE MODE";

/// Adds topics ($1 titles) unless there is one.
pub(super) const ADD_FIRST_TOPICS: &str = "
    INSERT INTO topics (title, active)
    SELECT title, true FROM unnest($1::text[]) WITH ORDINALITY AS given (title, position)
    WHERE NOT EXISTS (SELECT FROM topics) ORDER BY position
    RETURNING id, title, active";

pub(super) const CHANGE_TOPIC: &str = "
    UPDATE topics SET title = coalesce($2, title), active = coalesce($3, active)
    WHERE id = $1 RETURNING id, title, active";

pub(super) const BANS: &str = "
    SELECT id, session_id, network::text, reason, created_at, expires_at FROM bans ORDER BY id";

pub(super) const ADD_BAN: &str = "
    INSERT INTO bans (session_id, network, reason, expires_at)
    VALUES ($1, $2::text::inet, $3, $4)
    RETURNING id, session_id, network::text, reason, created_at, expires_at";

pub(super) const REMOVE_BAN: &str = "DELETE FROM bans WHERE id = $1";

pub(super) const ADD_BLOCK: &str = "
    INSERT INTO blocks (blocker, blocked) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// At most $3 blocks in their order, after the pair $1 and $2.
pub(super) const BLOCKS: &str = "
    SELECT blocker, blocked FROM blocks WHERE (blocker, blocked) > ($1, $2)
    ORDER BY blocker, blocked LIMIT $3";

/// Whether the person $1 has reported the seat $3 of the room $2 for the reason $4.
pub(super) const SAME_REPORT: &str = "
    SELECT FROM reports
    WHERE reporter = $1 AND conversation_id = $2 AND seat = $3 AND reason = $4 LIMIT 1";

/// How many reports the person $1 made within $2 milliseconds, and for how long the oldest counts.
pub(super) const LATE_REPORTS: &str = "
    SELECT count(*), coalesce(ceil(1000 * extract(epoch FROM
        min(created_at) + $2::int8 * interval '1 millisecond' - statement_timestamp()))::int8, 0)
    FROM reports
    WHERE reporter = $1 AND created_at > statement_timestamp() - $2::int8 * interval '1 millisecond'";

pub(super) const ADD_REPORT: &str = "
    INSERT INTO reports (conversation_id, reporter, reported, seat, reason, said, created_at)
    VALUES ($1, $2, $3, $4, $5, $6::text::json, date_trunc('milliseconds', statement_timestamp()))";

/// At most $2 reports numbered below $1, the newest first; with $3 those that nobody has judged.
pub(super) const REPORTS: &str = "
    SELECT id, conversation_id, reporter, reported, seat, reason, said::text, created_at, judged_at, ban
    FROM reports WHERE id < $1 AND NOT ($3 AND judged_at IS NOT NULL)
    ORDER BY id DESC LIMIT $2";

pub(super) const REPORT: &str = "
    SELECT id, conversation_id, reporter, reported, seat, reason, said::text, created_at, judged_at, ban
    FROM reports WHERE id = $1";

/// The report $1 is judged, and answered by the ban $2 when that is not null.
pub(super) const JUDGE_REPORT: &str = "
    UPDATE reports SET
        judged_at = coalesce(judged_at, date_trunc('milliseconds', statement_timestamp())),
        ban = coalesce(ban, $2)
    WHERE id = $1
    RETURNING id, conversation_id, reporter, reported, seat, reason, said::text, created_at,
        judged_at, ban";

pub(super) const SESSION_KEYS: &str = "SELECT number, secret FROM session_keys ORDER BY number";

/// Makes the first key, unless another server has.
pub(super) const FIRST_SESSION_KEY: &str = "
    INSERT INTO session_keys (number, secret) VALUES ($1, $2) ON CONFLICT (number) DO NOTHING";
