//! A running or future configuration, with its source texts.

use crate::experiment::config::gateway::{self, GatewayFile};
use crate::experiment::config::{engines, Errors, Settings, Source};
use crate::field::setup;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use weir_core::gateway::Compiled;
use weir_io::supervise::Steered;

/// Configuration as files and settings define it.
#[derive(Clone, Debug)]
pub struct Version {
    /// Files: the configuration's, then those that it names.
    pub sources: Vec<Source>,
    /// Settings laid over the files.
    pub settings: Settings,
    /// Configuration that results from both.
    pub file: GatewayFile,
}

impl Version {
    /// Parses texts, without reading any file.
    pub fn parse(sources: Vec<Source>, settings: Settings) -> Result<Version, Errors> {
        let given = |name: &str| {
            let source = sources[1..].iter().find(|source| source.name == name);
            source.cloned().ok_or_else(|| format!("{name}: was not read"))
        };
        let file = gateway::parse_with(&sources[0], &settings, &given)?;
        Ok(Version { sources, settings, file })
    }

    /// Parses a file that has been read, and reads the files that it names.
    pub fn read(source: Source) -> Result<Version, Errors> {
        Version::read_by(source, &|name| Source::read_list(name.as_ref()))
    }

    /// Parses a file that has been read. `read` reads those that it names.
    pub fn read_by(source: Source, read: &dyn Fn(&str) -> Result<Source, String>) -> Result<Version, Errors> {
        let others = RefCell::new(Vec::new());
        let kept = |name: &str| {
            let source = read(name)?;
            others.borrow_mut().push(source.clone());
            Ok(source)
        };
        let file = gateway::parse_with(&source, &Settings::default(), &kept)?;
        let sources = [vec![source], others.into_inner()].concat();
        Ok(Version { sources, settings: Settings::default(), file })
    }

    /// Returns the version of a configuration that has no text.
    pub fn of(file: GatewayFile) -> Version {
        Version { sources: Vec::new(), settings: Settings::default(), file }
    }
}

/// The running configuration.
pub struct Running {
    /// File that the configuration was read from, if any.
    pub path: Option<PathBuf>,
    /// Traffic that the hooks take, fixed at the start.
    pub steered: Steered,
    /// Secret of this host.
    pub seed: u64,
    version: RefCell<Arc<Version>>,
    /// Parts of the same version for the next engines, which take them in their own process.
    parts: RefCell<Vec<Part>>,
}

/// Part of the configuration that one engine runs.
pub struct Part {
    /// The part's configuration.
    pub config: Compiled,
    /// Index in the whole configuration of each class of the part.
    pub places: Vec<usize>,
}

impl Running {
    /// Prepares a version to run with this seed.
    pub fn new(version: Version, path: Option<PathBuf>, seed: u64) -> Running {
        let steered = setup::gateway(&version.file).steered;
        let running = Running {
            path,
            steered,
            seed,
            version: Arc::new(version.clone()).into(),
            parts: Vec::new().into(),
        };
        running.change(version);
        running
    }

    /// Makes `version` the running one.
    pub fn change(&self, version: Version) {
        let config = weir_core::gateway::Config { seed: self.seed, ..version.file.gateway.clone() };
        let parts = engines::split(&config, version.file.driving.engines()).parts;
        let part = |engines::Part { config, places }| Part { config: config.into(), places };
        self.parts.replace(parts.into_iter().map(part).collect());
        self.version.replace(Arc::new(version));
    }

    /// Returns the running version.
    pub fn version(&self) -> Arc<Version> {
        self.version.borrow().clone()
    }

    /// Returns the part of each engine, once; then an empty list. Called in the engines' process.
    pub fn take(&self) -> Vec<Part> {
        self.parts.take()
    }
}
