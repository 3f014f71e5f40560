//! The flags of `aiseki serve`, made from the table of settings.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use super::asked::{Given, Layer, Source};
use super::{Form, SETTINGS};

/// What was asked on the command line: the strongest layer.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    layer: Layer,
    config: Option<String>,
}

impl Flags {
    /// The flags that operator commands share with the server: where the file is, and the token.
    pub fn of_operator(config: Option<String>, admin_token_file: Option<String>) -> Self {
        let source = Source::Flag("--admin-token-file".into());
        let token =
            admin_token_file.map(|text| ("admin_token_file".into(), Given { text, source }));
        Self { layer: token.into_iter().collect(), config }
    }

    /// The flags of an import: where the file is, and the database.
    pub fn of_import(
        config: Option<String>,
        database_url: Option<String>,
        database_url_file: Option<String>,
    ) -> Self {
        let given = |name: &str, flag: &str, text: Option<String>| {
            let source = Source::Flag(flag.into());
            text.map(|text| (name.into(), Given { text, source }))
        };
        let url = given("database_url", "--database-url", database_url);
        let file = given("database_url_file", "--database-url-file", database_url_file);
        Self { layer: url.into_iter().chain(file).collect(), config }
    }

    pub(super) fn layer(&self) -> &Layer {
        &self.layer
    }

    pub(super) fn config(&self) -> Option<&str> {
        self.config.as_deref()
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let mut command = command.arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .help("The configuration file [default: ./aiseki.toml, when it exists]"),
        );
        for setting in SETTINGS {
            let value_name = setting.form.value_name();
            let default = match setting.default {
                "" => String::new(),
                default => format!(" [default: {default}]"),
            };
            let list = matches!(setting.form, Form::List(_));
            let number = matches!(setting.form, Form::Duration | Form::Number);
            let arg = |id: &'static str, long: String| {
                Arg::new(id).long(long).help_heading(setting.group.title())
            };
            let long = setting.flag()[2..].to_owned();
            command = command.arg(
                arg(setting.name, long.clone())
                    .value_name(value_name)
                    .action(if list { ArgAction::Append } else { ArgAction::Set })
                    // So that `-5s` reaches the check that says what a duration is.
                    .allow_hyphen_values(number)
                    .help(format!("{}{default}", setting.help)),
            );
            if let Some(id) = setting.file_name() {
                let help = format!("The file that holds what --{long} would say");
                let arg = arg(setting.name, format!("{long}-file")).id(id);
                command = command.arg(arg.value_name("FILE").help(help));
            }
            if setting.form == Form::OnOff {
                let arg =
                    arg(setting.name, format!("no-{long}")).id(format!("no_{}", setting.name));
                command = command.arg(
                    arg.action(ArgAction::SetTrue)
                        .conflicts_with(setting.name)
                        .help(format!("The same as --{long} off")),
                );
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self { config: matches.get_one("config").cloned(), ..Self::default() };
        let mut give = |key: String, text: String, flag: String| {
            flags.layer.insert(key, Given { text, source: Source::Flag(flag) });
        };
        for setting in SETTINGS {
            let flag = setting.flag();
            if let Some(texts) = matches.get_many::<String>(setting.name) {
                let texts: Vec<&str> = texts.map(String::as_str).collect();
                give(setting.name.into(), texts.join(","), flag.clone());
            }
            if let Some(key) = setting.file_name()
                && let Some(path) = matches.get_one::<String>(&key)
            {
                give(key, path.clone(), format!("{flag}-file"));
            }
            if setting.form == Form::OnOff && matches.get_flag(&format!("no_{}", setting.name)) {
                give(setting.name.into(), "off".into(), format!("--no-{}", &flag[2..]));
            }
        }
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
