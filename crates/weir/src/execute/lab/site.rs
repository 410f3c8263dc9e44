//! The namespaces of one lab, which are built and removed here.

use super::child::Child;
use super::counters::Counters;
use super::namespace::{batch, Namespace};
use super::offload::{self, switch_off};
use super::state::LabRecord;
use super::topology::{Layout, Place, HOST_PORT, LAN_PORT, WAN_PORT};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest time that interfaces may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A complete lab. Dropping it removes it.
pub struct Site {
    namespaces: BTreeMap<Place, Namespace>,
    record: LabRecord,
}

impl Site {
    /// Builds `layout` under the name `id`.
    pub fn build(id: &str, layout: &Layout) -> Result<Site, String> {
        let mut site = Site { namespaces: BTreeMap::new(), record: LabRecord::open(id)? };
        let name = |place: Place| format!("weir-{id}-{}", place.suffix());
        for &place in &layout.places {
            site.record.namespace(&name(place))?;
            site.namespaces.insert(place, Namespace::create(&name(place))?);
        }
        if layout.wire_frames {
            site.keep_order()?;
        }
        site.namespaces.iter().try_for_each(|(&place, namespace)| set_sysctls(layout, place, namespace))?;
        batch(None, &layout.lay_cables(name))?;
        for (&place, namespace) in &site.namespaces {
            namespace.ip(&layout.set_up(place))?;
            if let Some(rules) = layout.filter().filter(|_| place == Place::Gateway) {
                namespace.nft(&rules)?;
            }
            site.set_offloads(layout, place)?;
        }
        site.wait_until_up()?;
        Ok(site)
    }

    /// Sets receive packet steering, so that a flow's frames stay in order on every cable. Otherwise a
    /// virtual device queues a frame on the sending processor, and a flow whose sender moves between
    /// processors is reordered. Kernels before 6.3 have no default that could be set beforehand.
    fn keep_order(&self) -> Result<(), String> {
        const KEY: &str = "core/rps_default_mask";
        if !Path::new("/proc/sys/net").join(KEY).exists() {
            return Ok(());
        }
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get()).min(32);
        let mask = format!("{:x}", u64::MAX >> (64 - cpus));
        self.namespaces.values().try_for_each(|namespace| namespace.sysctl(KEY, &mask))
    }

    fn wait_until_up(&self) -> Result<(), String> {
        let start = Instant::now();
        for namespace in self.namespaces.values() {
            while !namespace.is_up()? {
                if start.elapsed() > PATIENCE {
                    return Err(format!("{}: an interface does not come up", namespace.name()));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }

    fn set_offloads(&self, layout: &Layout, place: Place) -> Result<(), String> {
        let namespace = &self.namespaces[&place];
        let ports: &[&str] = if place.is_host() { &[HOST_PORT] } else { &[LAN_PORT, WAN_PORT] };
        for port in ports {
            let whole = place == Place::Clients && layout.segmentation.is_some();
            if layout.wire_frames && !whole {
                switch_off(namespace, port, &offload::ALL)?;
            }
        }
        Ok(())
    }

    /// Returns a directory for files of this lab's processes, removed with the lab.
    pub fn directory(&mut self) -> Result<PathBuf, String> {
        self.record.directory()
    }

    /// Returns the namespace at `place`. Panics if the layout has none.
    pub fn namespace(&self, place: Place) -> &Namespace {
        &self.namespaces[&place]
    }

    /// Starts a process at `place`.
    pub fn start(&mut self, place: Place, name: &str, command: Command) -> Result<Child, String> {
        let child = Child::start(name, &self.namespaces[&place], command)?;
        self.record.child(child.id())?;
        Ok(child)
    }

    /// Returns totals of the box's interfaces: towards the clients, unless the box is their host, and towards
    /// the servers.
    pub fn box_counters(&self, layout: &Layout) -> Result<(Option<Counters>, Counters), String> {
        let (place, dev) = layout.gateway();
        let namespace = self.namespace(place);
        let lan = (place == Place::Gateway).then(|| Counters::read(namespace, LAN_PORT)).transpose()?;
        Ok((lan, Counters::read(namespace, dev)?))
    }
}

/// Sets sysctls before there are interfaces, so that these start with them.
fn set_sysctls(layout: &Layout, place: Place, namespace: &Namespace) -> Result<(), String> {
    for (key, value) in layout.sysctls(place) {
        // A feature that the kernel lacks need not be disabled.
        let optional = ["ipv6", "bridge"].into_iter().find(|d| key.starts_with(d));
        if optional.is_none_or(|d| Path::new("/proc/sys/net").join(d).exists()) {
            namespace.sysctl(key, &value)?;
        }
    }
    Ok(())
}
