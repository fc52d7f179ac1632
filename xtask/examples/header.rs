//! Prints the header `srf.h` of the C library, made from its source by cbindgen.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../bindings/c"));
    let config = cbindgen::Config::from_file(dir.join("cbindgen.toml")).map_err(|error| error.clone());
    let source = dir.join("src/lib.rs");
    let bindings = config.and_then(|config| {
        let builder = cbindgen::Builder::new().with_config(config).with_src(source);
        builder.generate().map_err(|error| error.to_string())
    });
    match bindings {
        Ok(bindings) => {
            bindings.write(std::io::stdout());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
