//! Trees of classes: their members and parents.

use super::diag::{listed, nearest, Fault};
use super::reader::Section;
use std::collections::HashMap;

/// Classes by name, and the trees of some of them.
pub(super) struct Parents {
    names: Vec<Option<String>>,
    index: HashMap<String, usize>,
    /// Flags by class: the class is in a tree.
    members: Vec<bool>,
    /// First child in the tree by class: the first class that names it as its parent.
    children: Vec<Option<usize>>,
}

impl Parents {
    /// Returns the classes of these sections; none of them is in a tree yet.
    pub(super) fn of(sections: &[Section]) -> Parents {
        let names: Vec<Option<String>> = sections.iter().map(|s| s.peek("name")).collect();
        let named = names.iter().enumerate().rev();
        let index = named.filter_map(|(i, name)| Some((name.clone()?, i))).collect();
        Parents { index, members: vec![false; names.len()], children: vec![None; names.len()], names }
    }

    /// Returns the class that a section names as the parent, if it exists. Faults are for [`Parents::read`].
    pub(super) fn peek(&self, s: &Section) -> Option<usize> {
        self.index.get(&s.peek::<String>("parent")?).copied()
    }

    /// Puts a class into the tree. Returns false if it was there.
    pub(super) fn join(&mut self, class: usize) -> bool {
        !core::mem::replace(&mut self.members[class], true)
    }

    /// Notes a child of `parent`.
    pub(super) fn add_child(&mut self, parent: usize, class: usize) {
        self.children[parent].get_or_insert(class);
    }

    /// Returns whether the class is in a tree.
    pub(super) fn has(&self, class: usize) -> bool {
        self.members[class]
    }

    /// Returns the name of a child of this class in the tree.
    pub(super) fn child(&self, class: usize) -> Option<&str> {
        self.children[class].and_then(|child| self.names[child].as_deref())
    }

    /// Reads the key `parent`, and returns the number of that class.
    pub(super) fn read(&self, s: &Section) -> Option<usize> {
        s.parsed("parent", |name: String| {
            let names = || self.names.iter().flatten().map(String::as_str);
            self.index.get(&name).copied().ok_or_else(|| {
                let guess =
                    nearest(&name, names()).map_or(String::new(), |n| format!("did you mean `{n}`? "));
                let help = format!("{guess}there is {}", listed(names()));
                Fault::new(format!("no class is named \"{name}\""), help)
            })
        })
    }

    /// Refuses those of `keys` that have no meaning for a class with children.
    pub(super) fn refuse(
        &self,
        s: &Section,
        class: usize,
        keys: impl IntoIterator<Item = &'static str>,
        why: &str,
    ) {
        let Some(child) = self.child(class) else { return };
        for key in keys.into_iter().filter(|&key| s.has(key)) {
            let key_name = s.full(key);
            let message =
                format!("`{key_name}` cannot be combined with a class that is the parent of \"{child}\"");
            s.key_fault(key, Fault::new(message, why));
        }
    }
}
