//! Tests of all kinds of functions: methods, generic functions, other ABIs.

use std::fmt::Debug;
use std::pin::Pin;
use std::rc::Rc;

use crate::expected::check;

#[derive(Debug, Clone, Default)]
struct Store {
    items: Vec<u32>,
}

trait Load {
    fn load(&mut self, count: u32) -> usize;

    #[heapray::profile]
    fn twice(&mut self, count: u32) -> usize
    where
        Self: Sized,
    {
        self.load(count);
        self.load(count)
    }
}

impl Store {
    #[heapray::profile]
    fn new(first: u32) -> Self {
        Self { items: vec![first] }
    }

    #[heapray::profile]
    pub(crate) fn by_reference(&self) -> &[u32] {
        &self.items
    }

    #[heapray::profile]
    fn by_mutable_reference(&mut self) -> &mut u32 {
        self.items.push(2);
        self.items.last_mut().unwrap()
    }

    #[heapray::profile]
    fn by_value(mut self) -> Vec<u32> {
        self.items.push(3);
        self.items
    }

    #[heapray::profile]
    fn boxed(self: Box<Self>) -> usize {
        self.items.len()
    }

    #[heapray::profile]
    fn counted(self: &Rc<Self>) -> usize {
        Rc::strong_count(self)
    }

    #[heapray::profile]
    fn pinned(self: Pin<&mut Self>) -> usize {
        self.get_mut().items.len()
    }
}

impl Load for Store {
    #[heapray::profile]
    fn load(&mut self, count: u32) -> usize {
        self.items.extend(0..count);
        self.items.len()
    }
}

#[test]
fn methods() {
    check("methods", || {
        let mut store = Store::new(1);
        assert_eq!(store.by_reference(), [1]);
        *store.by_mutable_reference() += 1;
        assert_eq!(store.clone().by_value(), [1, 3, 3]);
        assert_eq!(Box::new(store.clone()).boxed(), 2);
        assert_eq!(Rc::new(store.clone()).counted(), 1);
        assert_eq!(Pin::new(&mut store).pinned(), 2);
        assert_eq!(store.load(1), 3);
    });
    check("trait_methods", || {
        assert_eq!(Store::default().twice(2), 4);
    });
}

#[heapray::profile]
fn generic<'a, T, const N: usize>(items: &'a [T; N], show: impl Fn(&T) -> String) -> (&'a T, String)
where
    T: Debug,
{
    let last = &items[N - 1];
    let array = [0u8; 3];
    (last, format!("{}{}", show(last), array.len()))
}

#[test]
fn generic_functions() {
    let (last, text) = check("generic", || generic(&[1, 2], |n| format!("<{n}>")));
    assert_eq!((*last, text.as_str()), (2, "<2>3"));
}

#[heapray::profile]
unsafe fn dangerous(pointer: *const u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        let value = *pointer;
        value + 1
    }
}

#[heapray::profile]
extern "C" fn for_c(a: u32) -> u32 {
    a + 1
}

#[heapray::profile]
fn lazily(limit: u32) -> impl Iterator<Item = u32> {
    let start = 1;
    (start..limit).map(move |n| {
        let square = n * n;
        square + 1
    })
}

#[test]
fn other_kinds_of_functions() {
    // SAFETY: the pointer is to a live value.
    assert_eq!(check("unsafe", || unsafe { dangerous(&1) }), 2);
    assert_eq!(check("extern", || for_c(1)), 2);
    // The iterator runs after the call, so its lines are not in a table.
    assert_eq!(
        check("impl_trait", || lazily(4).collect::<Vec<_>>()),
        [2, 5, 10]
    );
}

#[heapray::profile(enable = false)]
fn off() -> u32 {
    1
}

#[test]
fn a_function_that_is_not_enabled_prints_nothing() {
    assert_eq!(check("off", off), 1);
}
