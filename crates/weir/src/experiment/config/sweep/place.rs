//! Places in a file by their dotted path: `path.wan.loss`, `flow.bulk.cc`, `expect.0.target`.

use crate::experiment::config::diag::{listed, nearest, Fault};
use crate::experiment::plan::matches;
use core::ops::Range;
use std::borrow::Cow;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Returns the elements of an array of tables that `name` in a path stands for. These are the tables with
/// that `id` or `name`, in which `*` is any run of characters, or the one with that number.
fn elements(items: &[Spanned<DeValue>], name: &str) -> Vec<usize> {
    let called = |item: &Spanned<DeValue>, key| {
        let found = item.get_ref().as_table().and_then(|t| t.get(key)?.get_ref().as_str());
        found.is_some_and(|found| matches(name, found))
    };
    let by_name = |i: &usize| called(&items[*i], "id") || called(&items[*i], "name");
    let found: Vec<usize> = (0..items.len()).filter(by_name).collect();
    match found.is_empty() {
        true => name.parse().ok().filter(|n| *n < items.len()).into_iter().collect(),
        false => found,
    }
}

/// Checks that a path can be followed. Missing parts are made, except elements of arrays.
pub(in crate::experiment::config) fn place(table: &DeTable, path: &[String]) -> Result<(), Fault> {
    let mut at = table;
    for (i, part) in path.iter().enumerate() {
        let here = path[..=i].join(".");
        if part.is_empty() {
            return Err(Fault::bare(format!("`sweep.{}` is not a path", path.join("."))));
        }
        let next = match at.get(part.as_str()).map(|v| v.get_ref()) {
            None => return Ok(()),
            Some(value) => value,
        };
        let mut rest = &path[i + 1..];
        if let (DeValue::Array(items), Some(name)) = (next, rest.first()) {
            let found = elements(items, name);
            if found.is_empty() {
                return Err(no_element(&here, items, name));
            }
            rest = &rest[1..];
            if rest.is_empty() {
                let message = format!("`sweep.{}` is a table, not a value", path.join("."));
                return Err(Fault::new(message, format!("name one of its keys: \"{}.KEY\"", path.join("."))));
            }
            let mut tables = found.into_iter().filter_map(|i| items[i].get_ref().as_table());
            return tables.try_for_each(|t| place(t, rest));
        }
        match (next, rest.is_empty()) {
            (DeValue::Table(t), false) => at = t,
            (_, true) => return Ok(()),
            (_, false) => {
                return Err(Fault::bare(format!("`{here}` is not a table, it has no `{}`", rest[0])))
            }
        }
    }
    Ok(())
}

fn no_element(array: &str, items: &[Spanned<DeValue>], name: &str) -> Fault {
    let called = |key| {
        let name = move |t: &Spanned<DeValue>| Some(t.get_ref().get(key)?.get_ref().as_str()?.to_string());
        items.iter().filter_map(name)
    };
    let names: Vec<String> = called("id").chain(called("name")).collect();
    let names = || names.iter().map(String::as_str);
    let guess = nearest(name, names()).map_or(String::new(), |n| format!("did you mean `{n}`? "));
    let help = match names().next() {
        Some(_) => format!("{guess}there is {}", listed(names())),
        None => format!("they have no names: count them from 0, \"{array}.0.KEY\""),
    };
    Fault::new(format!("no `[[{array}]]` is named `{name}`"), help)
}

/// Puts a value in its place, which [`place`] has found. New keys have the place of the path.
pub(in crate::experiment::config) fn set<'a>(
    table: &mut DeTable<'a>,
    path: &[String],
    span: &Range<usize>,
    value: Spanned<DeValue<'a>>,
) {
    let Some((key, rest)) = path.split_first() else { return };
    let made = || Spanned::new(span.clone(), Cow::Owned(key.clone()));
    if rest.is_empty() {
        table.remove(key.as_str());
        table.insert(made(), value);
        return;
    }
    if !table.contains_key(key.as_str()) {
        table.insert(made(), Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
    }
    match table.get_mut(key.as_str()).map(Spanned::get_mut) {
        Some(DeValue::Table(t)) => set(t, rest, span, value),
        Some(DeValue::Array(items)) => {
            for i in elements(items, &rest[0]) {
                if let DeValue::Table(t) = items.as_mut()[i].get_mut() {
                    set(t, &rest[1..], span, value.clone());
                }
            }
        }
        _ => (),
    }
}
