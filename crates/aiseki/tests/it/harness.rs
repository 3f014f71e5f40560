//! What the tests have in common: every call goes through here, so that a change of the interface
//! touches one place.

mod answer;
mod client;
mod directory;
mod metrics;
mod pair;
mod people;
mod program;
mod server;
mod settings;
mod socket;
mod stream;
mod wait;

pub(crate) use answer::Answer;
pub(crate) use client::Client;
pub(crate) use directory::Directory;
pub(crate) use metrics::Metrics;
pub(crate) use pair::{Pair, Plan, SETTLED};
pub(crate) use people::Person;
pub(crate) use program::{Program, Running};
pub(crate) use server::Server;
pub(crate) use settings::{ADMIN_TOKEN, Settings, redis_url};
pub(crate) use socket::{Frame, Socket};
pub(crate) use stream::{Event, Stream};
pub(crate) use wait::{Since, eventually, pass, within};
