//! A set of a wave's VGPRs and accumulation VGPRs.
//!
//! Knows: their numbers. Must not know: instructions, rows.

/// VGPRs of one kind.
const KIND: u32 = 256;

/// VGPRs, and accumulation VGPRs after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VgprSet([u64; 8]);

impl VgprSet {
    /// The number of an accumulation VGPR among all.
    pub(crate) const fn accumulation(index: u32) -> u32 {
        KIND + index
    }

    pub(crate) fn insert(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(number as usize / 64) {
            *word |= 1 << (number % 64);
        }
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 8]
    }

    /// Those that the other one has too.
    pub(crate) fn intersection(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// Those that the other one has not.
    pub(crate) fn without(self, other: Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}
