//! The scripts: a file for each transition, made of parts.

use std::sync::LazyLock;

use aiseki_mq::Script;

const PARTS: [(&str, &str); 7] = [
    ("lobby", include_str!("lua/parts/lobby.lua")),
    ("seating", include_str!("lua/parts/seating.lua")),
    ("parting", include_str!("lua/parts/parting.lua")),
    ("leaving", include_str!("lua/parts/leaving.lua")),
    ("talk", include_str!("lua/parts/talk.lua")),
    ("rate", include_str!("lua/parts/rate.lua")),
    ("finish", include_str!("lua/parts/finish.lua")),
];

/// Puts the parts of this module in; those of the message queue come in when the script is made.
fn assemble(source: &str) -> String {
    let part = |name: &str| {
        let known = PARTS.iter().find(|(part, _)| *part == name);
        known.unwrap_or_else(|| panic!("no part of a script is named {name}")).1
    };
    let lines = source.lines().map(|line| match line.strip_prefix("--@part ") {
        Some(name) => part(name.trim()).to_owned(),
        None => format!("{line}\n"),
    });
    lines.collect()
}

macro_rules! scripts {
    ($($name:ident = $file:literal),* $(,)?) => {
        $(pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(&assemble(include_str!(concat!("lua/", $file, ".lua")))));)*

        /// Every script as it is sent to the server, with its file's name.
        pub fn all_scripts() -> Vec<(&'static str, String)> {
            vec![$(($file, $name.text().to_owned())),*]
        }
    };
}

scripts! {
    ENTER = "enter",
    CANCEL = "cancel",
    POLL = "poll",
    STATE = "state",
    TOUCH = "touch",
    TICK = "tick",
    CONFIRM = "confirm",
    VACATE = "vacate",
    RESTORE = "restore",
    BLOCK = "block",
    EXPEL = "expel",
    CLOSE_TOPIC = "close_topic",
    QUEUES = "queues",
    ADDRESSES = "addresses",
    RATE = "rate",
    BEGIN = "begin",
    ROUSE = "rouse",
    RUN = "run",
    SET = "set",
    CHECK = "check",
    TALK_VIEW = "talk_view",
    TALK_APPEND = "talk_append",
    TALK_READ = "talk_read",
    TALK_ATTEND = "talk_attend",
    TALK_SWEEP = "talk_sweep",
    DOCTOR = "doctor",
    DOCTOR_QUEUE = "doctor_queue",
    DOCTOR_KEYS = "doctor_keys",
    DOCTOR_SEATS = "doctor_seats",
}
