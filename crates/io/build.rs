//! Compiles the BPF programs with clang, against the headers of the libbpf that is linked.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Headers and sources of all programs but those of benchmarks.
const SOURCE: &str = "src/bpf";
/// Objects, what each is made of, and what is defined meanwhile.
const PROGRAMS: [(&str, &str, &str); 7] = [
    ("acks", "src/bpf/acks.bpf.c", "-DSEVERAL=0"),
    ("acks_of_several", "src/bpf/acks.bpf.c", "-DSEVERAL=1"),
    ("all", "src/bpf/all.bpf.c", "-DSEVERAL=0"),
    ("probe", "src/bpf/probe.bpf.c", "-DSEVERAL=0"),
    ("chirp", "src/bpf/chirp.bpf.c", "-DLINK=0"),
    ("chirp_linked", "src/bpf/chirp.bpf.c", "-DLINK=1"),
    ("turns", "benches/hooks/turns.bpf.c", "-DSEVERAL=0"),
];

/// Definitions of what lies in memory that outlives engines, beside the BPF programs.
const LAYOUT: [&str; 8] = [
    "src/bpf/abi.rs",
    "../core/src/base/stats.rs",
    "../core/src/flow/record.rs",
    "../core/src/gateway/flows/accounts.rs",
    "../core/src/gateway/flows/stats.rs",
    "../core/src/tcp/steer.rs",
    "../core/src/tcp/steer",
    "../core/src/flow/law.rs",
];

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    // `libbpf-sys` (links = "bpf") tells where its headers are.
    let include = std::env::var("DEP_BPF_INCLUDE").expect("libbpf-sys is vendored");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-changed=benches/hooks");
    // The core of the congestion control.
    println!("cargo:rerun-if-changed=../chirp/src/core");
    for (object, source, define) in PROGRAMS {
        compile(&clang, &include, source, define, &out.join(format!("{object}.bpf.o")));
    }
    println!("cargo:rustc-env=WEIR_LAYOUT={:016x}", layout(&out));
}

/// Returns a number of the layout of maps and records. It changes with the programs and with the definitions.
fn layout(out: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let objects = ["acks", "acks_of_several", "all"].map(|object| out.join(format!("{object}.bpf.o")));
    let definitions = LAYOUT.iter().flat_map(|path| {
        println!("cargo:rerun-if-changed={path}");
        files(Path::new(path))
    });
    for path in objects.into_iter().chain(definitions) {
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns a file, or the files of a folder in their order.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(folder) = std::fs::read_dir(path) else { return vec![path.to_owned()] };
    let mut all: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// Loads keep their order on x86: programs need no barrier between them.
fn ordered_loads() -> Option<&'static str> {
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").expect("set by cargo");
    ["x86", "x86_64"].contains(&arch.as_str()).then_some("-DWEIR_ORDERED_LOADS")
}

fn compile(clang: &str, include: &str, source: &str, define: &str, out: &Path) {
    let status = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-nostdinc"])
        // Debug information that says where it was built would make builds differ.
        .args(["-fdebug-compilation-dir", ".", "-I", include, "-I", SOURCE])
        .arg(define)
        .args(ordered_loads())
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(out)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} failed on {source}: {status}"),
        Err(error) => panic!(
            "cannot run {clang} ({error}): compiling BPF programs needs clang 14 or newer; set CLANG to its path"
        ),
    }
}
