//! A configuration that runs, or that may run next, with the texts that it comes from.

use crate::experiment::config::gateway::{self, GatewayFile};
use crate::experiment::config::{engines, Errors, Settings, Source};
use crate::field::setup;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use weir_core::gateway::Compiled;
use weir_io::supervise::Steered;

/// What files and settings say.
#[derive(Clone, Debug)]
pub struct Version {
    /// The files: the configuration's, then those that it names.
    pub sources: Vec<Source>,
    /// What is laid over them.
    pub settings: Settings,
    /// What they say together.
    pub file: GatewayFile,
}

impl Version {
    /// Parses texts, without a look at any file.
    pub fn parse(sources: Vec<Source>, settings: Settings) -> Result<Version, Errors> {
        let given = |name: &str| {
            let source = sources[1..].iter().find(|source| source.name == name);
            source.cloned().ok_or_else(|| format!("{name}: was not read"))
        };
        let file = gateway::parse_with(&sources[0], &settings, &given)?;
        Ok(Version { sources, settings, file })
    }

    /// Parses a file that has been read, and reads those that it names.
    pub fn read(source: Source) -> Result<Version, Errors> {
        let others = RefCell::new(Vec::new());
        let read = |name: &str| {
            let source = Source::read(name.as_ref())?;
            others.borrow_mut().push(source.clone());
            Ok(source)
        };
        let file = gateway::parse_with(&source, &Settings::default(), &read)?;
        let sources = [vec![source], others.into_inner()].concat();
        Ok(Version { sources, settings: Settings::default(), file })
    }

    /// What has no file.
    pub fn of(file: GatewayFile) -> Version {
        let source = Source::new("command line", file.to_toml());
        Version { sources: vec![source], settings: Settings::default(), file }
    }
}

/// What runs.
pub struct Running {
    /// The file that it was read from, if any.
    pub path: Option<PathBuf>,
    /// What the hooks do: it was decided at the start.
    pub steered: Steered,
    /// A secret of this host.
    pub seed: u64,
    version: RefCell<Arc<Version>>,
    /// The same for the next engines, which take it in their own process.
    parts: RefCell<Vec<Part>>,
}

/// What one engine runs.
pub struct Part {
    /// Its configuration.
    pub config: Compiled,
    /// For each of its classes the place in the whole configuration.
    pub places: Vec<usize>,
}

impl Running {
    /// What is to run with this seed.
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

    /// This runs from now on.
    pub fn change(&self, version: Version) {
        let config = weir_core::gateway::Config { seed: self.seed, ..version.file.gateway.clone() };
        let parts = engines::split(&config, version.file.driving.engines()).parts;
        let part = |engines::Part { config, places }| Part { config: config.into(), places };
        self.parts.replace(parts.into_iter().map(part).collect());
        self.version.replace(Arc::new(version));
    }

    /// What runs.
    pub fn version(&self) -> Arc<Version> {
        self.version.borrow().clone()
    }

    /// In the engines' process: what each of them runs, once; nothing after that.
    pub fn take(&self) -> Vec<Part> {
        self.parts.take()
    }
}
