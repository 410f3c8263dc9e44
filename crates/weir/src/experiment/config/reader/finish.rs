//! End of reading a table: unknown keys, and missing keys.

use super::Section;
use crate::experiment::config::diag::{listed, nearest, Fault};

impl Section<'_> {
    /// Notes a fault for every unknown key, and for every missing key.
    pub fn finish(self) {
        self.check_done();
    }

    /// Notes the same faults as [`Section::finish`], for a section that is only borrowed.
    pub fn check_done(&self) {
        let mut missing = self.missing.take();
        for (key, _) in self.table.iter() {
            let name: &str = key.get_ref();
            if self.asked.borrow().contains(&name) {
                continue;
            }
            let fault = self.unknown(name);
            // A misspelt key is not reported as missing too.
            let meant = self.guess(name);
            missing.retain(|(k, _)| Some(*k) != meant);
            self.sink.push(key.span(), fault);
        }
        for (key, example) in missing {
            self.fault_here(Fault::new(
                format!("missing key `{}`", self.full(key)),
                format!("for example: {key} = {example}"),
            ));
        }
    }

    /// Returns the key that was probably meant, unless it is present.
    fn guess(&self, name: &str) -> Option<&'static str> {
        let asked = self.asked.borrow();
        let absent = asked.iter().copied().filter(|k| !self.is_there(k));
        nearest(name, absent)
    }

    fn unknown(&self, name: &str) -> Fault {
        let full = self.full(name);
        if let Some((_, what, why)) = self.refused.iter().find(|(k, ..)| *k == name) {
            return Fault::new(format!("`{full}` {what}"), *why);
        }
        let guess = self.guess(name).map_or(String::new(), |k| format!("did you mean `{k}`? "));
        let place =
            if self.path.is_empty() { "at the top".to_string() } else { format!("in `{}`", self.path) };
        let known = listed(self.asked.borrow().iter().copied());
        Fault::new(format!("unknown key `{full}`"), format!("{guess}known {place}: {known}"))
    }
}
