//! Pacing: keys of `[gateway]` that say what its ports are, and of classes that are paced there.
//!
//! A class is paced if its own `pace` says so, or if that of `[gateway]` does and the class has a rate and a queue, no parent and no children.

use super::diag::{listed, Fault};
use super::keys::{self, named, put, set, Key, Written};
use super::reader::Section;
use super::units::Probability;
use super::value::{one_of, FromValue};
use toml::de::DeValue;
use weir_core::class::Spec;
use weir_core::gateway::Config;
use weir_core::pace::{Backend, Class, Counts, Filler, Target, Unsound, RESERVED};
use weir_core::rate::Rate;

/// By what is paced, by name.
const PACES: [(&str, Option<Backend>); 3] =
    [("gap", Some(Backend::Gap)), ("clock", Some(Backend::Clock)), ("none", None)];
/// Millionths of a line are so many trillionths.
const MILLIONTH: u64 = 1_000_000;
/// What a class that is paced has no use for, which is for classes that share a link.
const OF_SHARING: [&str; 6] = ["parent", "ceil", "priority", "weight", "flow_min", "admission"];
/// The rate of a class that follows the windows of its flows.
const WINDOW: &str = "window";
/// The first bytes of a filler's address, as configurations write them.
const LINK_LOCAL: &str = "01:80:c2:00:00:";

/// The rate of the lines that paced classes leave by.
pub(super) const LINE: Key<Config> =
    Key::<Config>::new("line", |g, v| put(&mut g.port.line, Rate::from_value(v)))
        .write(|g| g.port.line.map(Written::quoted))
        .words(|g| g.port.line.map(|line| format!("lines of {line}")));

/// What their holes are filled with.
pub(super) const FILLER: Key<Config> =
    Key::<Config>::new("filler", |g, v| set(&mut g.port.filler, filler(v)))
        .write(|g| Some(Written::quoted(filler_name(g.port.filler))))
        .words(|g| {
            let other = g.port.filler != Filler::Pause;
            other.then(|| format!("holes filled with frames to {}", filler_name(g.port.filler)))
        });

/// What fills holes: PAUSE frames, or frames to a reserved address.
fn filler(value: &DeValue) -> Result<Filler, Fault> {
    let name = String::from_value(value)?;
    let last = name.to_ascii_lowercase().strip_prefix(LINK_LOCAL).map(|last| u8::from_str_radix(last, 16));
    match last {
        None if name == "pause" => Ok(Filler::Pause),
        Some(Ok(last)) if RESERVED.contains(&last) => Ok(Filler::Reserved(last)),
        _ => {
            let free =
                listed(RESERVED.map(|last| filler_name(Filler::Reserved(last))).iter().map(String::as_str));
            Err(Fault::new(
                format!("frames to \"{name}\" could be taken for traffic"),
                format!("\"pause\", or an address that no bridge forwards and no protocol has: {free}"),
            ))
        }
    }
}

fn filler_name(filler: Filler) -> String {
    match filler {
        Filler::Pause => "pause".to_string(),
        Filler::Reserved(last) => format!("{LINK_LOCAL}{last:02x}"),
    }
}

/// The keys of a paced class.
static CLASS: [Key<Class>; 3] = [
    Key::<Class>::new("rate", |c, v| set(&mut c.target, target(v)))
        .write(|c| Some(Written::quoted(target_name(c.target))))
        .words(|c| {
            Some(match c.target {
                Target::Window => "paced at the windows of its flows over their round-trip times".to_string(),
                target => format!("paced at {}", target_name(target)),
            })
        }),
    Key::<Class>::new("pace", |c, v| {
        c.backend = one_of(v, &PACES, &[])?.unwrap_or(c.backend);
        Ok(())
    })
    .write(|c| Some(Written::quoted(c.backend.name())))
    .words(|c| {
        Some(match c.backend {
            Backend::Gap => "by bytes on the line".to_string(),
            Backend::Clock => "by deadlines".to_string(),
        })
    }),
    Key::<Class>::new("counts", |c, v| set(&mut c.counts, one_of(v, &Counts::ALL, &[])))
        .write(|c| named(&Counts::ALL, c.counts))
        .words(|c| {
            Some(match c.counts {
                Counts::Ip => "of IP packets".to_string(),
                Counts::Frame => "of frames with FCS".to_string(),
                Counts::Wire => "of all that the wire carries".to_string(),
            })
        }),
];

/// What a paced class can be paced at.
const TARGETS: &str = "a rate like \"20Mbit\", a share of the line's like \"50%\", or \"window\"";

/// A rate, a share of the line's, or what the windows of flows say.
fn target(value: &DeValue) -> Result<Target, Fault> {
    if matches!(value, DeValue::String(text) if text == WINDOW) {
        return Ok(Target::Window);
    }
    let share = matches!(value, DeValue::String(text) if text.trim_end().ends_with('%'));
    if !share {
        let fault = |fault: Fault| Fault::new(fault.message, TARGETS);
        return Rate::from_value(value).map(Target::Rate).map_err(fault);
    }
    match Probability::from_value(value)?.trillionths() / MILLIONTH {
        0 => Err(Fault::bare("less than a millionth of the line")),
        millionths => Ok(Target::Share(millionths as u32)),
    }
}

fn target_name(target: Target) -> String {
    match target {
        Target::Rate(rate) => rate.to_string(),
        Target::Window => WINDOW.to_string(),
        Target::Share(millionths) => {
            let percent = format!("{}.{:04}", millionths / 10_000, millionths % 10_000);
            format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

/// What `[gateway]` says of all classes that can be paced.
#[derive(Clone, Copy)]
pub(super) struct Defaults {
    backend: Option<Backend>,
    counts: Counts,
}

impl Defaults {
    /// Reads `pace` and `counts` of `[gateway]`.
    pub(super) fn read(s: &Section) -> Defaults {
        let backend = s.choice("pace", &PACES, &[]).flatten();
        Defaults { backend, counts: s.choice("counts", &Counts::ALL, &[]).unwrap_or_default() }
    }

    /// Is a class paced, which others do not borrow from?
    pub(super) fn paces(&self, s: &Section, queued: bool) -> bool {
        match s.peek::<String>("pace") {
            Some(name) => name != "none",
            None => self.backend.is_some() && queued && s.is_there("rate") && !s.is_there("parent"),
        }
    }

    /// Reads how a class is paced; `None` if a key that it needs is missing.
    pub(super) fn class(&self, s: &Section) -> Class {
        for key in OF_SHARING.into_iter().filter(|key| s.has(key)) {
            let message = format!("`{}` cannot be combined with a class that is paced", s.full(key));
            s.key_fault(key, Fault::new(message, "it is for classes that share a link: pace = \"none\""));
        }
        s.need("rate", "\"500Mbit\"");
        let backend = self.backend.unwrap_or(Backend::Gap);
        let mut class = Class { target: NO_TARGET, counts: self.counts, backend };
        keys::read(&CLASS, &[s], &mut class);
        class
    }
}

/// Before it is read.
const NO_TARGET: Target = Target::Share(1_000_000);

/// The place of a paced class.
pub(super) fn spec(class: Class) -> Spec {
    let rate = match class.target {
        Target::Rate(rate) => Some(rate),
        Target::Share(_) | Target::Window => None,
    };
    Spec { rate, pace: Some(class), ..Spec::of(None) }
}

/// How a class is paced, as a file has it.
pub(super) fn assignments(class: &Class) -> Vec<String> {
    // Of a target, a back end and a way of counting that no class has together, so that all are written.
    let all = CLASS.iter().filter(|key| key.name != "counts" || class.counts != Counts::default());
    all.filter_map(|key| Some(format!("{} = {}", key.name, key.written(class)?))).collect()
}

/// How a class is paced, in words.
pub(super) fn words(class: &Class) -> Vec<String> {
    keys::words(&CLASS, class)
}

/// The key that is at fault where a class cannot be paced, and what would be accepted.
pub(super) fn help(why: &Unsound) -> (&'static str, &'static str) {
    match why {
        Unsound::TwoBackends(_) => ("pace", "give all paced classes of a direction the same `pace`"),
        Unsound::NoLine(_) => ("pace", "say it: line = \"1Gbit\" in [gateway]; or pace = \"clock\""),
        Unsound::ShareOfNothing(_) => ("rate", "say it: line = \"1Gbit\" in [gateway]; or give a rate"),
        Unsound::AboveLine(..) => ("rate", "a class has the line's rate at most: \"100%\""),
        Unsound::FillerTooShort(_) => ("pace", "pace = \"clock\" needs no fillers"),
    }
}

/// Is it the line's rate that is not known yet, which the interface may tell?
pub(super) fn is_about_the_line(why: &Unsound) -> bool {
    matches!(why, Unsound::NoLine(_) | Unsound::ShareOfNothing(_))
}
