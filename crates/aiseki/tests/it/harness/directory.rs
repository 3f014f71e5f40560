//! A directory of a test's own. A failed test keeps it and says where it is.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("it-{}-{count}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // What an earlier process of the same number left behind is not this test's.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Where a server keeps its files in here.
    pub(crate) fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Directory {
    #[expect(clippy::print_stderr, reason = "whoever reads the failure has to find the files")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the files of the failed test are in {}", self.0.display());
            return;
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
