//! A path of namespaces: the stack under test, a bridge with a gateway, an emulated WAN, a Linux host.

use crate::{Kind, Options, Role, Stack};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Of a flow, in bits per second.
pub const RATE: u64 = 5_000_000;
/// Beyond the gateway.
const RTT: &str = "20ms";
/// Addresses of the stack under test and of the Linux host.
pub const NEAR: [u8; 4] = [10, 77, 0, 1];
pub const FAR: [u8; 4] = [10, 77, 0, 2];
pub const PORT: u16 = 5_001;
/// The port of the bridge towards the stack under test.
pub const TAP: &str = "lan";
/// Of what waits for an interface, or an end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A preset, and the rest of its class.
pub struct Preset {
    pub name: &'static str,
    /// The class has the rate, and not each flow; with this queue, if it needs one.
    class: Option<&'static str>,
    /// ACKs are controlled; or else the class has its queue alone.
    acks: bool,
}

const QUEUE: &str = "queue = \"1000p\"\n";
const PFQ: &str = "discipline = \"pfq\"\nqueue = \"1000p\"\n";

pub const PRESETS: [Preset; 9] = [
    Preset::new("ack-shaper", None),
    Preset::new("ack-shaper-published", None),
    Preset::new("ack-policer", None),
    Preset::new("ack-reconstruct", None),
    Preset::new("tcr", Some("")),
    Preset::new("postack", Some(QUEUE)),
    Preset::new("postack-pfq", Some(PFQ)),
    Preset::new("postack-number", Some(PFQ)),
    Preset { acks: false, ..Preset::new("pfq", Some(PFQ)) },
];

impl Preset {
    const fn new(name: &'static str, class: Option<&'static str>) -> Preset {
        Preset { name, class, acks: true }
    }

    /// A gateway's configuration with it.
    fn config(&self, direction: &str) -> String {
        let (name, rate) = (self.name, format!("{}Mbit", RATE / 1_000_000));
        let (class, flow_rate) = match self.class {
            Some(queue) => (format!("rate = \"{rate}\"\n{queue}"), String::new()),
            None => (String::new(), format!(", flow_rate = \"{rate}\"")),
        };
        let ack = format!("ack = {{ preset = \"{name}\"{flow_rate} }}\n");
        format!(
            "[ports]\ndev = \"wan\"\n[[gateway.class]]\nname = \"all\"\ndirection = \"{direction}\"\n{class}{}",
            if self.acks { &ack } else { "" }
        )
    }
}

/// What is to be taken away at last.
pub struct Path {
    /// Of the stack under test, of the bridge, and of the Linux host.
    near: String,
    middle: String,
    far: String,
    config: PathBuf,
    programs: Vec<Child>,
}

impl Path {
    /// With a gateway of this preset, and the place for a stack.
    pub fn new(options: &Options, kind: Kind, role: Role, preset: &Preset) -> Result<Path, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let n = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |part| format!("wstacks-{}-{n}-{part}", std::process::id());
        let config = std::env::temp_dir().join(name("gateway.toml"));
        let (near, middle, far) = (name("near"), name("box"), name("far"));
        let mut path = Path { near, middle, far, config, programs: Vec::new() };
        path.wire(kind)?;
        let direction = if role == Role::Sender { "out" } else { "in" };
        std::fs::write(&path.config, preset.config(direction)).map_err(|e| e.to_string())?;
        let config = path.config.display().to_string();
        let gateway = path.start(&path.middle, &[&options.weir, "run", &config])?;
        path.programs.push(gateway);
        let emulator = path.start(&path.far, &[&options.weir, "wan", "--dev", "eth", "--rtt", RTT])?;
        path.programs.push(emulator);
        Ok(path)
    }

    /// Namespaces and interfaces.
    fn wire(&self, kind: Kind) -> Result<(), String> {
        let Path { near, middle, far, .. } = self;
        for namespace in [near, middle, far] {
            run("ip", &["netns", "add", namespace])?;
            let sysctl = "net.ipv6.conf.default.disable_ipv6=1";
            run("ip", &["netns", "exec", namespace, "sysctl", "-qw", sysctl])?;
        }
        let [a, b, c, d] = FAR;
        let mut lines = vec![
            format!("-n {middle} link add name br type bridge"),
            format!("-n {middle} link set dev br up"),
            format!("-n {middle} link add name wan type veth peer name eth netns {far}"),
            format!("-n {middle} link set dev wan master br up"),
            format!("-n {far} address add {a}.{b}.{c}.{d}/24 dev eth"),
            format!("-n {far} link set dev eth up"),
        ];
        let [a, b, c, d] = NEAR;
        if kind == Kind::Linux {
            lines.extend([
                format!("-n {middle} link add name {TAP} type veth peer name eth netns {near}"),
                format!("-n {near} address add {a}.{b}.{c}.{d}/24 dev eth"),
                format!("-n {near} link set dev eth up"),
            ]);
        } else {
            lines.push(format!("-n {middle} tuntap add mode tap name {TAP}"));
        }
        lines.push(format!("-n {middle} link set dev {TAP} master br up"));
        lines.iter().try_for_each(|line| run("ip", &line.split(' ').collect::<Vec<_>>()))?;
        let started = Instant::now();
        while !up(middle, "wan") || !up(far, "eth") {
            if started.elapsed() > PATIENCE {
                return Err("an interface does not come up".into());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// A program inside a namespace, once it says that it is ready.
    fn start(&self, inside: &str, command: &[&str]) -> Result<Child, String> {
        let mut child = spawn(inside, command, Stdio::null())?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut reader = BufReader::new(stdout);
        let mut line = String::new();
        reader.read_line(&mut line).map_err(|e| e.to_string())?;
        child.stdout = Some(reader.into_inner());
        if line.trim() != "ready" {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{}: it is not ready, but says {line:?}", command.join(" ")));
        }
        Ok(child)
    }

    /// Runs a connection between the stack and Linux; the bytes that its receiver counts.
    pub fn run(&self, options: &Options, stack: Stack, role: Role) -> Result<u64, String> {
        let me = std::env::current_exe().map_err(|e| e.to_string())?.display().to_string();
        let control = if stack.kind == Kind::Linux { stack.control } else { "cubic" };
        let far = self.start(&self.far, &[&me, "end", "listen", role.other().name(), control])?;
        let odd = options.odd.then(|| self.start(&self.far, &[&me, "end", "odd"])).transpose()?;
        let (name, control) = (role.name(), stack.control);
        let netstack = options.netstack.as_deref().unwrap_or_default();
        let near = match stack.kind {
            Kind::Linux => spawn(&self.near, &[&me, "end", "linux", name, control], Stdio::inherit()),
            Kind::Smoltcp => spawn(&self.middle, &[&me, "end", "smoltcp", name, control], Stdio::inherit()),
            Kind::Netstack => spawn(&self.middle, &[netstack, name, control], Stdio::inherit()),
        }?;
        let (near, far) = (number(near), number(far));
        odd.map(number).transpose()?;
        let of = |e: String| format!("{stack} as {name}: {e}");
        if role == Role::Sender {
            far.map_err(of)
        } else {
            near.map_err(of)
        }
    }
}

fn spawn(inside: &str, command: &[&str], errors: Stdio) -> Result<Child, String> {
    let mut ip = Command::new("ip");
    ip.args(["netns", "exec", inside])
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors);
    ip.spawn().map_err(|e| format!("{}: {e}", command[0]))
}

/// The number that a program prints last, when it ends.
fn number(child: Child) -> Result<u64, String> {
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().last().and_then(|line| line.trim().parse().ok());
    last.filter(|_| output.status.success()).ok_or(format!("the end failed: {text:?}"))
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let done = Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("{program} {}: {}", args.join(" "), said.trim()))
}

/// Does an interface carry frames?
fn up(namespace: &str, interface: &str) -> bool {
    let path = format!("/sys/class/net/{interface}/operstate");
    let mut child = match spawn(namespace, &["cat", &path], Stdio::null()) {
        Ok(child) => child,
        Err(_) => return false,
    };
    let mut state = String::new();
    let read = child.stdout.take().is_some_and(|mut out| out.read_to_string(&mut state).is_ok());
    let _ = child.wait();
    read && state.trim() == "up"
}

impl Drop for Path {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = run("kill", &["-TERM", &program.id().to_string()]);
            let _ = program.wait();
        }
        for namespace in [&self.near, &self.middle, &self.far] {
            let _ = run("ip", &["netns", "del", namespace]);
        }
        let _ = std::fs::remove_file(&self.config);
    }
}
