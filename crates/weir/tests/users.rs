//! Answers to users: without root, with a wrong program, and in a directory that holds another result.

#![cfg(all(feature = "linux", feature = "experiments"))]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// User and group without any privilege.
const NOBODY: &str = "65534";

/// A directory that everybody can read, with the program.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(&place, PermissionsExt::from_mode(0o755)).unwrap();
        let weir = place.path().join("weir");
        fs::copy(env!("CARGO_BIN_EXE_weir"), &weir).unwrap();
        fs::set_permissions(weir, PermissionsExt::from_mode(0o755)).unwrap();
        Place(place)
    }

    fn weir(&self) -> PathBuf {
        self.0.path().join("weir")
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs the program as a user without privileges.
    fn as_user(&self, args: &[&str]) -> Output {
        let mut command = Command::new("setpriv");
        if rustix::process::geteuid().is_root() {
            command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        }
        command.arg(self.weir()).args(args).current_dir("/").output().unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

const EXPERIMENT: &str = "\
name = 'NAME'
duration = '1s'
path = { rtt = '10ms', wan = { out = { rate = '10Mbit' } } }
flow = [{ id = 'FLOW' }]
";

fn experiment(name: &str, flow: &str) -> String {
    EXPERIMENT.replace("NAME", name).replace("FLOW", flow)
}

#[test]
fn who_is_not_root_is_told_so() {
    let place = Place::new();
    let file = place.file("experiment.toml", &experiment("a", "bulk"));
    let lab = ["lab", file.to_str().unwrap()];
    let commands: [&[&str]; 19] = [
        &["upgrade", "--dev", "wan0"],
        &["ctl", "show"],
        &["ctl", "show", "17"],
        &["ctl", "set", "class/a.rate=1Mbit"],
        &["ctl", "off", "17"],
        &["reload"],
        &["upgrade"],
        &["down"],
        &["down", "--dev", "wan0"],
        &["metrics"],
        &["metrics", "--listen", "127.0.0.1:0"],
        &["metrics", "--textfile", "weir.prom"],
        &["dashboard", "--listen", "127.0.0.1:0"],
        &["run", "--dev", "wan0", "--out-flow-rate", "1Mbit"],
        &["wan", "--dev", "wan0", "--rate", "1Mbit"],
        &["pace", "wan0", "--rate", "1Mbit"],
        &["chirp", "load"],
        &["check", "--host"],
        &lab,
    ];
    for command in commands {
        let output = place.as_user(command);
        let said = said(&output);
        assert!(said.contains("root") && said.contains("try sudo"), "{command:?}: {said}");
        assert_eq!(output.status.code(), Some(3), "{command:?}: {said}");
        assert!(!said.contains("/run/weir"), "{command:?}: {said}");
    }
}

#[test]
fn a_shell_s_program_that_does_not_exist_or_may_not_run() {
    let place = Place::new();
    if !place.as_user(&["shell", "--", "true"]).status.success() {
        return eprintln!("skipped: no network namespaces here");
    }
    let output = place.as_user(&["shell", "--", "nosuchprog"]);
    assert_eq!(output.status.code(), Some(127), "{}", said(&output));
    assert!(said(&output).contains("nosuchprog: no such program"), "{}", said(&output));
    let text = place.file("text", "no program");
    let output = place.as_user(&["shell", "--", text.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(126), "{}", said(&output));
}

#[test]
fn a_device_that_may_not_be_opened_is_not_called_missing() {
    let place = Place::new();
    if !rustix::process::geteuid().is_root() || !place.as_user(&["shell", "--", "true"]).status.success() {
        return eprintln!("skipped: needs root, and network namespaces for users");
    }
    let closed = place.file("tun", "");
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o600)).unwrap();
    let script = format!(
        "mount --bind {} /dev/net/tun && exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {} shell -- true",
        closed.display(),
        place.weir().display()
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("/dev/net/tun may not be opened"), "{}", said(&output));
    assert!(!said(&output).contains("modprobe"), "{}", said(&output));
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_directory_of_results_is_of_one_experiment() {
    let place = Place::new();
    let [first, second] = [("first", "early"), ("second", "late")]
        .map(|(name, flow)| place.file(&format!("{name}.toml"), &experiment(name, flow)));
    let sim = |file: &Path, out: &str, more: &[&str]| {
        let out = place.0.path().join(out);
        let done = Command::new(place.weir()).arg("sim").arg(file).arg("--out").arg(&out).args(more).output();
        assert!(done.as_ref().unwrap().status.success(), "{}", said(&done.unwrap()));
        out
    };
    let alone = names(&sim(&second, "alone", &[]));
    let mixed = sim(&first, "mixed", &["--seeds", "2"]);
    fs::write(mixed.join("notes.txt"), "mine").unwrap();
    sim(&second, "mixed", &[]);
    let mut wanted = alone;
    wanted.push("notes.txt".into());
    wanted.sort();
    assert_eq!(names(&mixed), wanted);
    let flows = fs::read_to_string(mixed.join("flows.csv")).unwrap();
    assert!(flows.contains("late") && !flows.contains("early"), "{flows}");
}
