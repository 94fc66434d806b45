//! Generates bindings from the installed header, by the program bindgen, and links the library that
//! pkg-config finds.

use std::{env, error::Error, fs, path::Path, process::Command};

fn output_of(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let output = command.output().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    let header = Path::new(&out).join("host.h");
    let flags = |which| output_of(Command::new("pkg-config").args([which, "extisolate-python"]));

    fs::write(&header, "#include <extisolate/python.h>\n")?;
    output_of(
        Command::new("bindgen")
            .arg(&header)
            .args(["--allowlist-function", "extipy_.*"])
            .args(["--allowlist-var", "EXTIPY?_.*"])
            .args(["--no-layout-tests", "--no-prepend-enum-name"])
            .args(["-o", &format!("{out}/bindings.rs"), "--"])
            .args(flags("--cflags")?.split_whitespace()),
    )?;
    for flag in flags("--libs")?.split_whitespace() {
        match flag.split_at(2) {
            ("-L", folder) => println!("cargo:rustc-link-search=native={folder}"),
            ("-l", library) => println!("cargo:rustc-link-lib=dylib={library}"),
            _ => println!("cargo:rustc-link-arg={flag}"),
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    Ok(())
}
