//! Input and output of what is being made that fail once nobody waits for it any more.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::symbolize::Wanted;

/// Bytes between two looks.
const BYTES: usize = 64 << 10;
/// Items between two looks.
const ITEMS: u32 = 4096;

/// `inner`, as long as it is wanted.
pub(super) struct WhileWanted<'w, T> {
    inner: T,
    wanted: &'w Wanted,
    since: usize,
}

impl<'w, T> WhileWanted<'w, T> {
    pub(super) fn new(inner: T, wanted: &'w Wanted) -> Self {
        WhileWanted {
            inner,
            wanted,
            since: 0,
        }
    }

    fn passed(&mut self, bytes: usize) -> io::Result<()> {
        self.since += bytes;
        if self.since >= BYTES {
            self.since = 0;
            check(self.wanted)?;
        }
        Ok(())
    }
}

/// An error if it is not wanted any more.
pub(super) fn check(wanted: &Wanted) -> io::Result<()> {
    if wanted.still() {
        Ok(())
    } else {
        // Not `Interrupted`: that would be tried again.
        Err(io::Error::other("nobody waits for it any more"))
    }
}

impl<T: Write> Write for WhileWanted<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.passed(bytes.len())?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for WhileWanted<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.passed(count)?;
        Ok(count)
    }
}

impl<T: Seek> Seek for WhileWanted<'_, T> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// `items`, and an error instead of the rest once they are not wanted any more.
pub(super) fn items<T>(
    items: impl Iterator<Item = io::Result<T>>,
    wanted: &Wanted,
) -> impl Iterator<Item = io::Result<T>> {
    let mut left = ITEMS;
    items.map(move |item| {
        left -= 1;
        if left == 0 {
            left = ITEMS;
            check(wanted)?;
        }
        item
    })
}

#[cfg(test)]
mod tests {
    use super::{BYTES, ITEMS, WhileWanted, items};
    use crate::symbolize::Wanted;
    use std::io::{self, Read, Write};

    #[test]
    fn what_is_wanted_passes_and_what_is_not_ends_soon() {
        let no = Wanted::while_it(|| false);
        for (wanted, ends) in [(Wanted::default(), false), (no, true)] {
            let zeros = vec![0; 3 * BYTES];
            let mut written = WhileWanted::new(Vec::new(), &wanted);
            assert!(written.write_all(&zeros[..BYTES - 1]).is_ok());
            assert_eq!(written.write_all(&zeros).is_err(), ends);
            let mut read = WhileWanted::new(&zeros[..], &wanted);
            assert_eq!(io::copy(&mut read, &mut io::sink()).is_err(), ends);
            let mut one = [0];
            assert!(read.read(&mut one).is_ok());
            let passed = items((0..2 * ITEMS).map(Ok), &wanted);
            assert_eq!(passed.collect::<io::Result<Vec<_>>>().is_err(), ends);
        }
    }
}
