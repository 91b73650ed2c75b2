//! What rules do: instructions, which rules that do the same share, and room for what
//! a compiler has made of them, so that it is made once and found without a search.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use flow::Instructions;

/// Instructions, and what was made of them.
pub struct Deed {
    instructions: Instructions,
    compiled: OnceLock<Compiled>,
}

/// What a compiler has made of instructions.
struct Compiled {
    gist: u64,
    program: Box<dyn Any + Send + Sync>,
}

impl Deed {
    pub(crate) const fn new(instructions: Instructions) -> Self {
        Self {
            instructions,
            compiled: OnceLock::new(),
        }
    }

    /// What was made of the instructions, if a `T` was.
    #[inline]
    #[must_use]
    pub fn compiled<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.compiled.get()?.program.downcast_ref()
    }

    /// What was made of the instructions in a word, which only their compiler
    /// understands; zero if nothing was.
    #[inline]
    #[must_use]
    pub fn gist(&self) -> u64 {
        self.compiled.get().map_or(0, |compiled| compiled.gist)
    }

    /// Has `make` make something of the instructions, and its gist, if nothing was made
    /// yet. It stays as long as they do.
    pub fn compile<T: Any + Send + Sync>(&self, make: impl FnOnce(&Instructions) -> (T, u64)) {
        self.compiled.get_or_init(|| {
            let (program, gist) = make(&self.instructions);
            let program = Box::new(program);
            Compiled { gist, program }
        });
    }
}

impl Deref for Deed {
    type Target = Instructions;

    #[inline]
    fn deref(&self) -> &Instructions {
        &self.instructions
    }
}

/// What was made of instructions says nothing that they do not say.
impl PartialEq for Deed {
    fn eq(&self, other: &Self) -> bool {
        self.instructions == other.instructions
    }
}

impl Eq for Deed {}

impl fmt::Debug for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.instructions.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_first_stays() {
        let deed = Deed::new(Instructions::default());
        assert_eq!((deed.compiled::<u32>(), deed.gist()), (None, 0));
        deed.compile(|_| (7_u32, 70));
        deed.compile(|_| (8_u32, 80));
        assert_eq!((deed.compiled::<u32>(), deed.gist()), (Some(&7), 70));
        assert_eq!(deed.compiled::<u64>(), None);
        assert_eq!(deed, Deed::new(Instructions::default()));
    }
}
