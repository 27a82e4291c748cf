//! Numbers that only look random, so that a seed makes the same ones again.

/// A generator of the kind `SplitMix64`.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another generator, whose numbers do not depend on how many are taken from this one.
    pub const fn fork(&mut self) -> Self {
        Self(self.next())
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// One of the things.
    pub fn pick<T: Copy>(&mut self, things: &[T]) -> T {
        let index = usize::try_from(self.below(things.len() as u64)).unwrap_or(0);
        things[index]
    }
}
