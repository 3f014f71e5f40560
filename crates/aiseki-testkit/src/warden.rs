//! The warden: a process that ends a server when the run that started it is gone.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

/// Starts the server, says its process id, and waits for the pipe to close. A run that ended in
/// order says `stop` first and keeps the folder; one that was killed says nothing, and then the
/// folder goes too.
const SCRIPT: &str = r#"
folder=$1; stop=$2; shift 2
"$@" >>"$folder/server.log" 2>&1 </dev/null &
server=$!
echo "$server"
word=
read -r word
kill -CONT "$server" 2>/dev/null
kill -"$stop" "$server" 2>/dev/null
wait "$server" 2>/dev/null
if [ "$word" != stop ]; then rm -rf "$folder"; fi
"#;

/// A server process and the warden that ends it with the run.
#[derive(Debug)]
pub struct Warden {
    shell: Child,
    pipe: Option<ChildStdin>,
    server: Pid,
}

impl Warden {
    /// Starts `program` with `arguments`; its output goes to `server.log` in `folder`.
    pub fn start(program: &Path, arguments: &[String], folder: &Path) -> Result<Self> {
        Self::ending_with("KILL", program, arguments, folder)
    }

    /// The same for a server that is to be ended by another signal, by its name.
    pub fn ending_with(
        signal: &str,
        program: &Path,
        arguments: &[String],
        folder: &Path,
    ) -> Result<Self> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "warden"])
            .arg(folder)
            .arg(signal)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("the warden's shell does not start")?;
        let pipe = shell.stdin.take();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().context("the warden has no output")?)
            .read_line(&mut line)?;
        let id: i32 = line.trim().parse().context("the warden did not name its server")?;
        let server = Pid::from_raw(id).context("a process id is never zero")?;
        Ok(Self { shell, pipe, server })
    }

    /// The server's process id.
    pub fn server_id(&self) -> u32 {
        self.server.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends a signal to the server; a server that is gone already is no error.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.server, signal);
    }

    /// Ends the server and waits until both processes are gone. The folder stays.
    pub fn stop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(b"stop\n");
        }
        let _ = self.shell.wait();
    }

    /// Closes the pipe without a word, as the kernel does for a run that was killed, and waits for
    /// the warden to end the server and remove the folder.
    pub fn abandon(&mut self) {
        self.pipe = None;
        let _ = self.shell.wait();
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        self.stop();
    }
}
