//! Compiles the BPF programs with clang, against the headers of the libbpf that is linked.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Objects, what each is made of, and what is defined meanwhile.
const PROGRAMS: [(&str, &str, &str); 6] = [
    ("acks", "acks", "-DSEVERAL=0"),
    ("acks_of_several", "acks", "-DSEVERAL=1"),
    ("all", "all", "-DSEVERAL=0"),
    ("probe", "probe", "-DSEVERAL=0"),
    ("chirp", "chirp", "-DLINK=0"),
    ("chirp_linked", "chirp", "-DLINK=1"),
];

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    // `libbpf-sys` (links = "bpf") tells where its headers are.
    let include = std::env::var("DEP_BPF_INCLUDE").expect("libbpf-sys is vendored");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-changed=src/bpf");
    // The core of the congestion control.
    println!("cargo:rerun-if-changed=../chirp/src/core");
    for (object, name, define) in PROGRAMS {
        compile(&clang, &include, Path::new("src/bpf"), name, define, &out.join(format!("{object}.bpf.o")));
    }
}

/// Loads keep their order on x86: programs need no barrier between them.
fn ordered_loads() -> Option<&'static str> {
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").expect("set by cargo");
    ["x86", "x86_64"].contains(&arch.as_str()).then_some("-DWEIR_ORDERED_LOADS")
}

fn compile(clang: &str, include: &str, source: &Path, name: &str, define: &str, out: &Path) {
    let status = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-nostdinc"])
        // Debug information that says where it was built would make builds differ.
        .args(["-fdebug-compilation-dir", ".", "-I", include, "-I"])
        .arg(source)
        .arg(define)
        .args(ordered_loads())
        .arg("-c")
        .arg(source.join(format!("{name}.bpf.c")))
        .arg("-o")
        .arg(out)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} failed on {name}.bpf.c: {status}"),
        Err(error) => panic!(
            "cannot run {clang} ({error}): compiling BPF programs needs clang 14 or newer; set CLANG to its path"
        ),
    }
}
