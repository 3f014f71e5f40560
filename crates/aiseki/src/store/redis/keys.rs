//! The keys of a namespace, all in one slot, in the order in which the scripts receive them.

use aiseki_lobby::Queue;

/// The keys of a namespace.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// `{namespace}`.
    base: String,
    /// For the scripts of people: see `lua/parts/lobby.lua`.
    pub(super) lobby: Vec<String>,
}

impl Keys {
    pub(super) fn new(namespace: &str) -> Self {
        let base = format!("{{{namespace}}}");
        let own = [
            "matching:state",
            "matching:queues",
            "matching:unsettled",
            "matching:alarms",
            "matching:reservations",
            "recorder",
        ];
        let mut lobby: Vec<String> = own.iter().map(|part| format!("{base}:{part}")).collect();
        lobby.extend(aiseki_mq::lists_keys(&format!("{base}:mq:rooms")));
        Self { base, lobby }
    }

    /// The name of the message queue of formed rooms.
    pub(super) fn rooms(&self) -> String {
        format!("{}:mq:rooms", self.base)
    }

    pub(super) fn state(&self) -> &str {
        &self.lobby[0]
    }

    pub(super) fn queues(&self) -> &str {
        &self.lobby[1]
    }

    pub(super) fn reservations(&self) -> &str {
        &self.lobby[4]
    }

    pub(super) fn recorder(&self) -> &str {
        &self.lobby[5]
    }

    /// The run of the server whose live seats are here.
    pub(super) fn seats(&self) -> String {
        format!("{}:seats", self.base)
    }

    /// There while a server reads the live seats back.
    pub(super) fn read_back(&self) -> String {
        format!("{}:seats:reading", self.base)
    }

    /// The version of this layout.
    pub(super) fn layout(&self) -> String {
        format!("{}:layout", self.base)
    }

    /// How the last server that began seats people.
    pub(super) fn policy(&self) -> String {
        format!("{}:matching:policy", self.base)
    }

    /// The channel of announcements.
    pub(super) fn announcements(&self) -> String {
        format!("{}:matching:announcements", self.base)
    }

    /// The channel on which servers tell each other what is new in rooms.
    pub(super) fn talk(&self) -> String {
        format!("{}:rooms", self.base)
    }

    /// The bucket of an address.
    pub(super) fn address_rate(&self, group: &str) -> String {
        format!("{}:matching:rate:address:{group}", self.base)
    }
}

/// A queue as the keys and scripts write it.
pub(super) fn queue_name(queue: Queue) -> String {
    format!("{}:{}", queue.topic.0, queue.room_type)
}
