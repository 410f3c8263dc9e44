//! Pacing: keys of `[gateway]` about its ports, and keys of the classes paced there.
//!
//! A class is paced if its own `pace` says so. It is also paced if `[gateway]` has `pace` and the class has a
//! rate and a queue, but no parent and no children.

use super::diag::{listed, Fault};
use super::keys::{self, put, set, Key};
use super::learnt::{self, Kind};
use super::reader::Section;
use super::units::Probability;
use super::value::{int, one_of, FromValue};
use std::collections::HashSet;
use toml::de::DeValue;
use weir_core::class::Spec;
use weir_core::gateway::{ClassConfig, Config};
use weir_core::pace::{Backend, Class, Counts, Each, Filler, Spread, Target, Unsound, RESERVED};
use weir_core::rate::Rate;

/// Back ends of pacing, by name.
const PACES: [(&str, Option<Backend>); 3] =
    [("gap", Some(Backend::Gap)), ("clock", Some(Backend::Clock)), ("none", None)];
/// Number of trillionths in a millionth.
const MILLIONTH: u64 = 1_000_000;
/// Keys without a meaning for a paced class: they are for classes that share a link.
const OF_SHARING: [&str; 6] = ["parent", "ceil", "priority", "weight", "flow_min", "admission"];
/// Name of the rate of a class that follows the windows of its flows.
const WINDOW: &str = "window";
/// First bytes of a filler's address, as configurations write them.
const LINK_LOCAL: &str = "01:80:c2:00:00:";

/// Rate of the lines behind paced classes.
pub(super) const LINE: Key<Config> =
    Key::<Config>::new("line", |g, v| put(&mut g.port.line, Rate::from_value(v)))
        .words(|g| g.port.line.map(|line| format!("lines of {line}")));

/// Filling of the gaps on these lines.
pub(super) const FILLER: Key<Config> =
    Key::<Config>::new("filler", |g, v| set(&mut g.port.filler, filler(v))).words(|g| {
        let other = g.port.filler != Filler::Pause;
        other.then(|| format!("holes filled with frames to {}", filler_name(g.port.filler)))
    });

/// Reads the filler: PAUSE frames, or frames to a reserved address.
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

/// Keys of a paced class.
static CLASS: [Key<Class>; 3] = [
    Key::<Class>::new("rate", |c, v| set(&mut c.target, target(v))).words(|c| {
        Some(match c.target {
            Target::Window => "paced at the windows of its flows over their round-trip times".to_string(),
            target => format!("paced at {}", target_name(target)),
        })
    }),
    Key::<Class>::new("pace", |c, v| {
        c.backend = one_of(v, &PACES, &[])?.unwrap_or(c.backend);
        Ok(())
    })
    .words(|c| {
        Some(match c.backend {
            Backend::Gap => "by bytes on the line".to_string(),
            Backend::Clock => "by deadlines".to_string(),
        })
    }),
    Key::<Class>::new("counts", |c, v| set(&mut c.counts, one_of(v, &Counts::ALL, &[]))).words(|c| {
        Some(match c.counts {
            Counts::Ip => "of IP packets".to_string(),
            Counts::Frame => "of frames with FCS".to_string(),
            Counts::Wire => "of all that the wire carries".to_string(),
        })
    }),
];

/// Numbers of lanes of a class, and the number without `lanes`.
const LANES: core::ops::RangeInclusive<u64> = 2..=4096;
const SOME_LANES: u32 = 64;

/// Keys of a paced class that gives each of something its rate.
static LANE: [Key<Option<Spread>>; 2] = [
    Key::<Option<Spread>>::new("each", |s, v| {
        put(s, one_of(v, &Each::ALL, &[]).map(|each| Spread::Over(each, SOME_LANES)))
    })
    .words(|s| {
        let Some(Spread::Over(each, lanes)) = s else { return None };
        let name = Each::ALL.iter().find(|(_, e)| e == each).map_or("", |(name, _)| *name);
        Some(format!("for each {name}, at most {lanes} of them at once"))
    }),
    Key::<Option<Spread>>::new("lanes", |s, v| {
        let count = int(v, LANES)? as u32;
        if let Some(Spread::Over(_, lanes)) = s {
            *lanes = count;
        }
        Ok(())
    })
    .needs(&["each"], "it is the most flows, hosts or networks that have the rate at once"),
];

/// Accepted targets of a paced class, for messages.
const TARGETS: &str = "a rate like \"20Mbit\", a share of the line's like \"50%\", or \"window\"";

/// Reads a target: a rate, a share of the line's rate, or the windows of the flows.
fn target(value: &DeValue) -> Result<Target, Fault> {
    learnt::kind(|| Kind::Text);
    if matches!(value, DeValue::String(text) if text == WINDOW) {
        return Ok(Target::Window);
    }
    let share = matches!(value, DeValue::String(text) if text.trim_end().ends_with('%'));
    if !share {
        let fault = |fault: Fault| Fault::new(fault.message, TARGETS);
        return Rate::from_value(value).map(Target::Rate).map_err(fault);
    }
    let share = Probability::from_value(value)
        .map_err(|_| Fault::new("more than the line has, or no share", TARGETS));
    match share?.trillionths() / MILLIONTH {
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

/// Defaults of `[gateway]` for all classes that can be paced.
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

    /// Returns whether a class is paced, if no other class borrows from it.
    pub(super) fn paces(&self, s: &Section, queued: bool) -> bool {
        match s.peek::<String>("pace") {
            Some(name) => name != "none",
            None => self.backend.is_some() && queued && s.is_there("rate") && !s.is_there("parent"),
        }
    }

    /// Reads the pacing of a class; `None` if a required key is missing.
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

    /// Reads what each of has the rate of a paced class.
    pub(super) fn spread(&self, s: &Section) -> Option<Spread> {
        let mut spread = None;
        keys::read(&LANE, &[s], &mut spread);
        if spread.is_some() && s.has("ack") {
            let help = "leave `each` out, or control ACKs in a class for each host";
            s.fault("each", Fault::new("`each` cannot be combined with `ack`", help));
        }
        spread
    }
}

/// Target before it is read.
const NO_TARGET: Target = Target::Share(1_000_000);

/// Returns the place of a paced class.
pub(super) fn spec(class: Class) -> Spec {
    let rate = match class.target {
        Target::Rate(rate) => Some(rate),
        Target::Share(_) | Target::Window => None,
    };
    Spec { rate, pace: Some(class), ..Spec::of(None) }
}

/// Refuses the keys of lanes for a class that is not paced.
pub(super) fn refuse_lanes(s: &Section) {
    for key in LANE.iter().map(|key| key.name).filter(|&key| s.has(key)) {
        let message = format!("`{}` cannot be combined with a class that is not paced", s.full(key));
        s.key_fault(
            key,
            Fault::new(message, "a paced class has a rate, a queue, and pace = \"gap\" or \"clock\""),
        );
    }
}

/// Describes the pacing of a class in words.
pub(super) fn words(class: &Class, spread: Option<Spread>) -> Vec<String> {
    [keys::words(&CLASS, class), keys::words(&LANE, &spread)].concat()
}

/// Adds the further lanes of classes that have them. Their numbers follow the name of the first.
pub(super) fn spread(sections: &[Section], classes: &mut Vec<ClassConfig>) {
    let mut names: HashSet<String> = classes.iter().map(|class| class.name.clone()).collect();
    for i in 0..classes.len() {
        let Some((share, Spread::Over(_, count))) = classes[i].share.and_then(|s| Some((s, s.spread?)))
        else {
            continue;
        };
        for number in 2..=count {
            let name = format!("{}-{number}", classes[i].name);
            if !names.insert(name.clone()) {
                let message = format!("class \"{name}\" would be a lane of \"{}\" too", classes[i].name);
                sections[i].fault("name", Fault::new(message, "give one of the two another name"));
                break;
            }
            let share = Some(Spec { spread: Some(Spread::Lane), ..share });
            classes.push(ClassConfig { name, matches: Vec::new(), share, ..classes[i].clone() });
        }
    }
}

/// Returns the faulty key of a class that cannot be paced, and the accepted values.
pub(super) fn help(why: &Unsound) -> (&'static str, &'static str) {
    match why {
        Unsound::TwoBackends(_) => ("pace", "give all paced classes of a direction the same `pace`"),
        Unsound::NoLine(_) => ("pace", "set it: line = \"1Gbit\" in [gateway]; or pace = \"clock\""),
        Unsound::ShareOfNothing(_) => ("rate", "set it: line = \"1Gbit\" in [gateway]; or give a rate"),
        Unsound::AboveLine(..) => ("rate", "a class has the line's rate at most: \"100%\""),
        Unsound::FillerTooShort(_) => ("pace", "pace = \"clock\" needs no fillers"),
    }
}

/// Returns whether the fault is an unknown rate of the line, which the interface may report.
pub(super) fn is_about_the_line(why: &Unsound) -> bool {
    matches!(why, Unsound::NoLine(_) | Unsound::ShareOfNothing(_))
}
