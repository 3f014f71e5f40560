//! Runs the program in a directory of its own, with no environment but what a test gives it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, gone when the test has passed.
pub(crate) struct Program {
    directory: PathBuf,
    variables: Vec<(String, String)>,
}

/// What a finished program left behind.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cli-{}-{count}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&directory).expect("a directory for the test");
        Self { directory, variables: Vec::new() }
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.directory.join(name), text).expect("a file for the test");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aiseki"));
        command.args(arguments).current_dir(&self.directory).env_clear().stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let Output { status, stdout, stderr } =
            self.command(arguments).output().expect("the program starts");
        Ended {
            code: status.code(),
            stdout: String::from_utf8(stdout).expect("UTF-8"),
            stderr: String::from_utf8(stderr).expect("UTF-8"),
        }
    }

    /// Runs what must be refused as wrong usage, and returns the one line that says why.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let Ended { code, stdout, stderr } = self.run(arguments);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
        let line = stderr.strip_suffix('\n').expect("the line ends");
        assert!(!line.contains('\n'), "more than one line: {stderr}");
        line.strip_prefix("aiseki: ").expect("the program's name first").to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}
