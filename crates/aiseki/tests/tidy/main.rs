//! Written rules that are also tests: what the code may import, how long a file may be, that nothing
//! lies about that nobody uses, and that the documents say what is true.

/// What is deployed.
mod deploy;
/// Links and commands in the documents.
mod documents;
/// Which module may import which.
mod floors;
/// Sizes, names and words.
mod habits;
/// What nobody refers to.
mod leftovers;
/// The page: that all of it is served, and fetched at once.
mod page;
/// The files of this repository.
mod tree;
