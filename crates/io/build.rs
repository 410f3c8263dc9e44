//! Compiles the BPF programs with clang, against the headers of the libbpf that is linked.

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
