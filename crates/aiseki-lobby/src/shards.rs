//! A hash map in many parts, so that growing and shrinking never stops the lobby for long: each part
//! moves by itself, and holds a small share of a million people.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash, Hasher};

/// With a million people a part moves a few thousand of them when it grows.
const PARTS: usize = 256;

/// A map of ids that nobody outside can choose.
pub(crate) struct Shards<K, V> {
    hash: Mixing,
    parts: Box<[HashMap<K, V, Mixing>]>,
    len: usize,
}

impl<K: Eq + Hash, V> Shards<K, V> {
    /// An empty map; `seed` makes collisions unpredictable.
    pub(crate) fn new(seed: u64) -> Self {
        let hash = Mixing(seed);
        let parts = (0..PARTS).map(|_| HashMap::with_hasher(hash)).collect();
        Self { hash, parts, len: 0 }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.parts[self.part(key)].get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let part = self.part(key);
        self.parts[part].get_mut(key)
    }

    /// Answers the value that was there before.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let part = self.part(&key);
        let before = self.parts[part].insert(key, value);
        self.len += usize::from(before.is_none());
        before
    }

    /// The value of `key`, which is put there first when it is missing.
    pub(crate) fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let part = self.part(&key);
        match self.parts[part].entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.len += 1;
                entry.insert(V::default())
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let part = self.part(key);
        let part = &mut self.parts[part];
        let value = part.remove(key)?;
        self.len -= 1;
        // Memory is given back after a great many people have gone.
        if part.capacity() > 64 && part.len() < part.capacity() / 8 {
            part.shrink_to(part.len() * 2);
        }
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// In no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.parts.iter().flatten()
    }

    /// The bits that choose the part are none of those by which a part finds its places.
    fn part(&self, key: &K) -> usize {
        usize::try_from(self.hash.hash_one(key) >> 40).unwrap_or(0) % PARTS
    }
}

/// Makes the hasher: keys are random already, or few, so a multiplication spreads them enough.
#[derive(Clone, Copy)]
struct Mixing(u64);

struct MixingHasher(u64);

impl BuildHasher for Mixing {
    type Hasher = MixingHasher;

    fn build_hasher(&self) -> MixingHasher {
        MixingHasher(self.0)
    }
}

impl MixingHasher {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        let (high, low) = ((product >> 64) & u128::from(u64::MAX), product & u128::from(u64::MAX));
        self.0 = u64::try_from(high ^ low).unwrap_or(0);
    }
}

impl Hasher for MixingHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_i64(&mut self, word: i64) {
        self.mix(word.cast_unsigned());
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(u64::from(word));
    }

    // The length of an array is the same for every key.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map() {
        let mut shards: Shards<u64, u64> = Shards::new(7);
        for key in 0..100_000 {
            assert_eq!(shards.insert(key, key), None);
        }
        assert_eq!(shards.insert(5, 6), Some(5));
        *shards.get_or_default(5) += 1;
        *shards.get_or_default(100_000) += 1;
        assert_eq!((shards.get(&5), shards.get(&100_000)), (Some(&7), Some(&1)));
        assert_eq!((shards.len(), shards.iter().count()), (100_001, 100_001));
        for key in 0..=100_000 {
            assert!(shards.get_mut(&key).is_some());
            assert!(shards.remove(&key).is_some());
            assert_eq!(shards.remove(&key), None);
        }
        assert_eq!((shards.len(), shards.iter().count()), (0, 0));
    }

    #[test]
    fn no_part_holds_much_more_than_its_share_also_of_consecutive_keys() {
        let mut shards: Shards<[u8; 16], bool> = Shards::new(7);
        for key in 0..100_000_u128 {
            shards.insert(key.to_be_bytes(), true);
        }
        let largest = shards.parts.iter().map(HashMap::len).max();
        assert!(largest < Some(600), "{largest:?} of a hundred thousand");
    }

    #[test]
    fn memory_is_given_back() {
        let mut shards: Shards<u64, [u8; 64]> = Shards::new(7);
        (0..50_000).for_each(|key| assert!(shards.insert(key, [0; 64]).is_none()));
        (100..50_000).for_each(|key| assert!(shards.remove(&key).is_some()));
        let places: usize = shards.parts.iter().map(HashMap::capacity).sum();
        assert!(places < 20_000, "room for {places} is kept for a hundred");
    }
}
