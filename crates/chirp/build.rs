//! Compiles the C core for this machine.

fn main() {
    println!("cargo:rerun-if-changed=src/core");
    cc::Build::new()
        .file("src/core/export.c")
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("weir_chirp");
}
