//! Every parser of bytes from outside as a target for fuzzing: what it must keep whatever it is given.
//!
//! A target panics when that does not hold. Inputs are made from those that are kept in
//! `fuzz/corpus/TARGET`, by a seeded generator that needs no special compiler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use aiseki_lobby::{LARGEST_ROOM, RoomTypes, SMALLEST_ROOM};

use crate::config::Config;
use crate::duration::{self, DAY, Shown};
use crate::http::fuzz as http;
use crate::rate_limit::RateLimit;
use crate::sessions::{SessionKey, Sessions};

/// A parser, and what it must keep.
pub struct Target {
    /// Its name, which is that of the folder of its corpus.
    pub name: &'static str,
    /// Panics when something does not hold.
    pub check: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 9] = [
    Target { name: "join_body", check: http::join_body },
    Target { name: "cookie", check: http::cookie },
    Target { name: "forwarded_for", check: http::forwarded_for },
    Target { name: "room_id", check: http::room_id },
    Target { name: "token", check: token },
    Target { name: "configuration", check: configuration },
    Target { name: "duration", check: duration },
    Target { name: "room_types", check: room_types },
    Target { name: "rate_limit", check: rate_limit },
];

/// The moment at which tokens are checked: the token in the corpus is valid then.
const NOW: u64 = 1_800_000_000_000;

fn token(input: &[u8]) {
    let sessions = Sessions::new(vec![SessionKey { number: 1, secret: [7; 32] }]);
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(verified) = sessions.verify(text, NOW) else { return };
    // Whatever is accepted can be renewed, and is the same person then.
    let renewed = sessions.renew(&verified, NOW);
    let again = sessions.verify(&renewed.token, NOW).expect("a token of our own");
    assert_eq!(again.session, verified.session);
    assert!(text.len() <= 128 && text.is_ascii(), "{text:?} is accepted");
}

fn configuration(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Config::of_file(Path::new("aiseki.toml"), text) {
        Ok(config) => assert!(config.base_path.starts_with('/')),
        Err(error) => {
            let line = error.to_string();
            // Nothing of the file may command a terminal, nor fill it.
            assert!(!line.contains(['\n', '\r', '\u{1b}']), "{line:?}");
            assert!(line.len() < 4_096, "{} characters", line.len());
        }
    }
}

fn duration(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match duration::parse(text, 1..=DAY) {
        Ok(millis) => {
            assert!((1..=DAY).contains(&millis));
            assert_eq!(duration::parse(&Shown(millis).to_string(), 1..=DAY), Ok(millis));
        }
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains('\n') && line.len() < 256, "{line:?}");
        }
    }
}

fn room_types(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(room_types) = text.parse::<RoomTypes>() else { return };
    assert_eq!(room_types.to_string().parse(), Ok(room_types.clone()));
    let mut before = 0;
    for room_type in room_types.iter() {
        assert!(
            (SMALLEST_ROOM..=LARGEST_ROOM).contains(&room_type.size) && room_type.size > before
        );
        assert!(room_type.fallback.is_none_or(|smaller| (2..room_type.size).contains(&smaller)));
        before = room_type.size;
    }
    assert!(before > 0, "{text:?} names no room type");
}

fn rate_limit(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(limit) = text.parse::<RateLimit>() else { return };
    assert!(limit.burst > 0 && limit.per > 0);
    assert_eq!(limit.to_string().parse(), Ok(limit));
}

/// An input on which a target panicked, and what it said.
#[derive(Debug)]
pub struct Found {
    /// The input.
    pub input: Vec<u8>,
    /// The panic's message.
    pub message: String,
}

impl Target {
    /// Checks one input.
    pub fn try_input(&self, input: &[u8]) -> Result<(), Found> {
        catch_unwind(AssertUnwindSafe(|| (self.check)(input))).map_err(|panic| {
            let message = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Found { input: input.to_owned(), message: message.unwrap_or_default() }
        })
    }

    /// Checks so many inputs made from a corpus, and returns the first on which it panics.
    pub fn run(&self, corpus: &[Vec<u8>], seed: u64, inputs: u32) -> Result<(), Found> {
        let mut generator = Generator::new(seed);
        (0..inputs).try_for_each(|_| self.try_input(&generator.input(corpus)))
    }
}

/// Texts that parsers tend to be wrong about.
const SPECIAL: [&str; 32] = [
    "",
    "0",
    "-1",
    "+1",
    "00",
    "1e9",
    "255",
    "256",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\0",
    "\u{1b}[2J",
    "\"",
    "'",
    "\\",
    ",",
    ";",
    "=",
    ".",
    "::",
    "[",
    "]",
    "{",
    ">",
    "/",
    "\u{ff15}",
    "\u{202e}猫",
];
/// Longer inputs are cut: nothing of interest happens beyond, and time is better spent.
const LONGEST: usize = 4_096;

/// Makes inputs from others, the same ones for the same seed.
pub struct Generator(u64);

impl Generator {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).unwrap_or(0)
    }

    /// The next input.
    pub fn input(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = match corpus.len() {
            0 => Vec::new(),
            length => corpus[self.below(length)].clone(),
        };
        for _ in 0..=self.below(6) {
            self.change(&mut input, corpus);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let end = at + self.below((input.len() - at).min(32) + 1);
        match self.below(8) {
            0 => {
                input.drain(at..end);
            }
            1 => {
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            2 | 3 => {
                let special = SPECIAL[self.below(SPECIAL.len())];
                input.splice(at..end, special.bytes());
            }
            4 => {
                let bytes: Vec<u8> = (0..self.below(6)).map(|_| self.byte()).collect();
                input.splice(at..end, bytes);
            }
            5 if !corpus.is_empty() => {
                let other = &corpus[self.below(corpus.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            6 if at < input.len() => input[at] ^= 1 << self.below(8),
            _ => {
                if at < input.len() {
                    input[at] = self.byte();
                }
            }
        }
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or(0)
    }
}
