//! Codecs that we do not decode, such as Opus, decoded by the program `ffmpeg` where it is installed.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// More is not decoded: nine hours at 16 kHz.
const MAX_BYTES: u64 = 1 << 30;

/// The file as WAV; `None` if the program is not there or cannot decode it.
pub(crate) fn decode(path: &Path) -> Option<Vec<u8>> {
    // With the protocol in front a name cannot be taken for an address or an option.
    let mut input = OsString::from("file:");
    input.push(path);
    let mut child = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-i"])
        .arg(input)
        .args(["-vn", "-c:a", "pcm_s16le", "-f", "wav", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut bytes = Vec::new();
    let read = child.stdout.take()?.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    if bytes.len() as u64 > MAX_BYTES {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let is_good = child.wait().ok()?.success() && read.is_ok() && bytes.len() as u64 <= MAX_BYTES;
    is_good.then_some(bytes)
}
