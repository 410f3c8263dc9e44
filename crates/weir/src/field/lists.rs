//! Lists of customers and sites of a configuration, in reports and in the log.

use super::Version;
use crate::experiment::config::customers::Customer;
use crate::experiment::config::diag::Located;
use crate::experiment::config::gateway::GatewayFile;
use crate::result::running::{GatewayReport, Notes};
use crate::result::traffic::{Kind, Place};
use std::collections::HashMap;
use std::sync::Arc;
use weir_core::gateway::{ClassConfig, Direction};

/// Most notes that are given one by one.
const MOST: usize = 20;

/// Contents of the lists that reports show.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    notes: Notes,
    /// Identifier of each class's customer, where it differs from the class's name.
    customers: Vec<Option<String>>,
    /// Interface.
    dev: String,
    /// Names of all classes.
    places: Arc<Vec<Place>>,
}

impl Lists {
    pub(super) fn of(version: &Version) -> Lists {
        let GatewayFile { customers, notes, .. } = &version.file;
        let id = |customer: &Customer| (customer.id != customer.label).then(|| customer.id.clone());
        // The first classes are those of customers, two for each.
        let customers = customers.iter().flat_map(|customer| [id(customer), id(customer)]).collect();
        let (dev, places) = (version.file.dev.clone(), Arc::new(places(&version.file)));
        Lists { notes: first(notes), customers, dev, places }
    }

    /// Returns the names of all classes, in the configuration's order.
    pub(super) fn places(&self) -> &Arc<Vec<Place>> {
        &self.places
    }

    /// Adds customers and notes to a report whose classes have their indices.
    pub(super) fn add_to(&self, report: &mut GatewayReport) {
        report.notes = self.notes.clone();
        report.snapshot.dev.clone_from(&self.dev);
        report.snapshot.places = self.places.clone();
        for class in &mut report.classes {
            class.customer = self.customers.get(class.place).cloned().flatten();
        }
    }
}

/// Returns what each class of a file is called: the classes of customers come first, two for each, then those
/// of sites.
fn places(file: &GatewayFile) -> Vec<Place> {
    let sites: HashMap<String, &str> = file
        .sites
        .iter()
        .flat_map(|site| ["up", "down"].map(|ending| (format!("{}-{ending}", site.name), site.name.as_str())))
        .collect();
    let place = |(i, class): (usize, &ClassConfig)| {
        let customer = file.customers.get(i / 2);
        let site = || Some((Kind::Site, sites.get(&class.name)?.to_string(), String::new()));
        let of_list = match customer {
            Some(customer) => Some((Kind::Customer, customer.label.clone(), title(customer))),
            None => site(),
        };
        let (kind, name, title) = of_list.unwrap_or_else(|| (Kind::Class, class.name.clone(), String::new()));
        let parent = class.share.and_then(|share| share.parent).or(class.nested.and_then(|n| n.parent));
        let direction = if class.direction == Direction::In { "in" } else { "out" };
        let off = customer.is_some_and(|customer| customer.off);
        Place { kind, name, title, direction, parent, off }
    };
    file.gateway.classes.iter().enumerate().map(place).collect()
}

/// Returns a customer's name for people: the list's, or the identifier where requests write it otherwise.
fn title(customer: &Customer) -> String {
    match (&customer.name, customer.id == customer.label) {
        (name, _) if !name.is_empty() => name.clone(),
        (_, true) => String::new(),
        (_, false) => customer.id.clone(),
    }
}

/// Returns notes in the form of reports and answers.
pub(super) fn first(notes: &[Located]) -> Notes {
    Notes { count: notes.len(), first: notes.iter().take(MOST).cloned().collect() }
}

/// Logs notes, up to a limit.
pub(super) fn log(notes: &Notes) {
    for Located { file, line, column, message, help } in &notes.first {
        let help = help.as_ref().map_or(String::new(), |help| format!(": {help}"));
        tracing::warn!("{file}:{line}:{column}: {message}{help}");
    }
    let more = notes.count - notes.first.len();
    if more > 0 {
        tracing::warn!("and {more} more notes about these files: `weir check` has them all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::{Settings, Source};
    use crate::result::running::GatewayClass;

    #[test]
    fn reports_have_the_identifiers_and_the_notes_of_lists() {
        let toml = "[ports]\ndev = \"eth1\"\n[gateway.customers]\nfile = \"c.csv\"\n";
        let list =
            "id,prefixes,down,up\n7,,1Mbit,1Mbit\n12 Main/B,10.0.0.1,1Mbit,1Mbit\n8,10.0.0.2,1Mbit,1Mbit\n";
        let sources = vec![Source::new("g.toml", toml), Source::new("c.csv", list)];
        let version = Version::parse(sources, Settings::default()).unwrap();
        assert_eq!(version.file.gateway.classes[1].name, "12_Main_B-down");
        let class = |place| GatewayClass { place, ..GatewayClass::default() };
        let mut report = GatewayReport { classes: (0..4).map(class).collect(), ..GatewayReport::default() };
        Lists::of(&version).add_to(&mut report);
        let customers: Vec<_> = report.classes.iter().map(|class| class.customer.as_deref()).collect();
        assert_eq!(customers, [Some("12 Main/B"), Some("12 Main/B"), None, None]);
        assert_eq!((report.notes.count, report.notes.first[0].line), (1, 2));
    }
}
