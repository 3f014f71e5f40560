//! A copy of the store, taken beside the writer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{OpenError, open, schema};

/// Why there is no copy. Its `Display` is one line for an operator.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is nothing to copy.
    #[error("{} has no store: name the server's --data-dir", .0.display())]
    NoStore(PathBuf),
    /// A copy never replaces a file.
    #[error("{} is there already: choose another name", .0.display())]
    Exists(PathBuf),
    /// The copy cannot be written.
    #[error("{}: {source}", .path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The store cannot be read, or not be copied.
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// Copies the store of a directory, whether or not a server has it open, into a new file that holds
/// one commit and all before it. Returns the bytes of the copy.
///
/// The name appears when the copy is complete, and only its owner may read it: it holds the secret by
/// which sessions are signed.
pub fn backup(data_dir: &Path, file: &Path) -> Result<u64, BackupError> {
    let store = data_dir.join(open::FILE);
    if !store.is_file() {
        return Err(BackupError::NoStore(data_dir.to_owned()));
    }
    if file.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(file.to_owned()));
    }
    let mut part = file.as_os_str().to_owned();
    part.push(format!(".part-{}", std::process::id()));
    let part = PathBuf::from(part);
    let written = copy(&store, &part).and_then(|bytes| {
        // A link, unlike a rename, never replaces what came there meanwhile.
        match fs::hard_link(&part, file) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(BackupError::Exists(file.to_owned()))
            }
            Err(source) => Err(BackupError::Write { path: file.to_owned(), source }),
        }
    });
    let _ = fs::remove_file(&part);
    let bytes = written?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let synced = File::open(directory.unwrap_or(Path::new("."))).and_then(|d| d.sync_all());
    synced.map_err(|source| BackupError::Write { path: file.to_owned(), source })?;
    Ok(bytes)
}

fn copy(store: &Path, part: &Path) -> Result<u64, BackupError> {
    let refused = |source| BackupError::Write { path: part.to_owned(), source };
    let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part);
    let target = target.map_err(refused)?;
    let explain = |error| OpenError::sqlite(store, error);
    let connection = schema::open_reader(store).map_err(explain)?;
    schema::recognise(&connection, store)?;
    let name = part.to_str().ok_or_else(|| {
        refused(io::Error::new(ErrorKind::InvalidFilename, "the name has to be UTF-8"))
    })?;
    connection.execute("VACUUM INTO ?", [name]).map_err(explain)?;
    target.sync_all().map_err(refused)?;
    Ok(target.metadata().map_err(refused)?.len())
}
