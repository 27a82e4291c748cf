//! How much memory an instance may hold.

use wasmtime::{Error, ResourceLimiter, Result};

/// What the host keeps for an element of a table, in bytes.
const ELEMENT: usize = 16;

/// Counts the memories and tables of one instance together: a component may have several of each, and each grows.
#[derive(Debug)]
pub struct Limiter {
    limit: usize,
    used: usize,
}

impl Limiter {
    /// At most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { limit, used: 0 }
    }

    /// Bytes that are in use.
    pub const fn used(&self) -> usize {
        self.used
    }

    fn grow(&mut self, bytes: usize) -> Result<bool> {
        let wanted = self.used.saturating_add(bytes);
        if wanted > self.limit {
            let limit = self.limit;
            return Err(Error::msg(format!(
                "it wants {wanted} bytes of memory and may have {limit}"
            )));
        }
        self.used = wanted;
        Ok(true)
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, now: usize, wanted: usize, _: Option<usize>) -> Result<bool> {
        self.grow(wanted.saturating_sub(now))
    }

    fn table_growing(&mut self, now: usize, wanted: usize, _: Option<usize>) -> Result<bool> {
        self.grow(wanted.saturating_sub(now).saturating_mul(ELEMENT))
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        64
    }

    fn memories(&self) -> usize {
        16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_and_tables_share_one_limit() {
        let mut limiter = Limiter::new(1000);
        limiter.memory_growing(0, 400, None).expect("fits");
        limiter.memory_growing(0, 400, None).expect("fits");
        let error = limiter.table_growing(0, 13, None).expect_err("too much");
        assert!(error.to_string().contains("1008 bytes"), "{error}");
        limiter.table_growing(0, 12, None).expect("fits");
        limiter.memory_growing(400, 401, None).expect("fits");
        assert_eq!(limiter.used(), 993);
    }
}
