//! The C core under the address and undefined-behaviour sanitizers, called in any order with any numbers
//! (`drive.c`).

use std::path::Path;
use std::process::Command;

#[test]
fn nothing_is_undefined_whatever_it_is_told() {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drive");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let built = Command::new(&compiler)
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all"])
        .args(["-fsanitize=address,undefined", "tests/drive.c", "-o"])
        .arg(&program)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(built.is_ok_and(|status| status.success()), "{compiler} cannot build it with sanitizers");
    let ran = Command::new(&program).output().expect("it was built");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
