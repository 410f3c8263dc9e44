//! The running configuration, as it is kept when another version of Weir takes over.

use super::Version;
use crate::experiment::config::{Settings, Source};
use serde::{Deserialize, Serialize};

/// Texts of a configuration and the secret of its hashes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    sources: Vec<Source>,
    settings: Settings,
    seed: u64,
}

impl Kept {
    /// Serializes a version. `None` if it has no texts.
    pub fn write(version: &Version, seed: u64) -> Option<String> {
        let (sources, settings) = (version.sources.clone(), version.settings.clone());
        let kept = Kept { sources, settings, seed };
        serde_json::to_string(&kept).ok().filter(|_| !version.sources.is_empty())
    }

    /// Parses what an earlier program has kept. It may have read other keys.
    pub fn read(text: &str) -> Result<(Version, u64), String> {
        let unreadable =
            |why: &dyn std::fmt::Display| format!("the running configuration cannot be read: {why}");
        let Kept { sources, settings, seed } = serde_json::from_str(text).map_err(|e| unreadable(&e))?;
        if sources.is_empty() {
            return Err(unreadable(&"it has no text"));
        }
        let version = Version::parse(sources, settings).map_err(|e| unreadable(&e))?;
        Ok((version, seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_secret_are_kept() {
        let file = "[ports]\ndev = \"wan0\"\n[[gateway.class]]\nname = \"a\"\ndirection = \"out\"\n\
                    ack = { preset = \"ack-shaper\", flow_rate = \"5Mbit\" }\n";
        let version = Version::read(Source::new("gateway.toml", file)).unwrap();
        let mut settings = Settings::default();
        settings.add("class/a.ack.flow_rate=7Mbit").unwrap();
        let version = Version::parse(version.sources, settings).unwrap();
        let (read, seed) = Kept::read(&Kept::write(&version, u64::MAX).unwrap()).unwrap();
        assert_eq!((read.file, seed), (version.file, u64::MAX));
    }

    #[test]
    fn what_this_version_does_not_know_is_said() {
        let kept = Kept {
            sources: vec![Source::new("a.toml", "colour = \"red\"")],
            settings: Settings::default(),
            seed: 1,
        };
        let why = Kept::read(&serde_json::to_string(&kept).unwrap()).unwrap_err();
        assert!(
            why.starts_with("the running configuration cannot be read") && why.contains("colour"),
            "{why}"
        );
        assert!(Kept::read("{}").is_err());
    }
}
