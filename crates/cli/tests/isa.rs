//! `SRF_ISA` selects the instruction set, and what cannot be selected is an error of one line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn srf(isa: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).arg("recipes").env("SRF_ISA", isa).output().unwrap()
}

#[test]
fn an_unknown_instruction_set_is_reported_in_one_line() {
    let output = srf("fast");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("SRF_ISA is \"fast\", which is no instruction set; expected one of `scalar`"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(srf("scalar").status.success());
}
