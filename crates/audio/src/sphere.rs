//! NIST SPHERE: reads all usual forms, writes 16-bit mono.
//!
//! A text header of `name -type value` lines, padded to the size it states, then the samples: linear of either byte
//! order, u-law or A-law, or any of these as a shorten stream.

mod shorten;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::error::{HeaderProblem, ReadAudioError};
use crate::input::Input;
use crate::pcm::{Checksum, Layout, PcmSource};
use crate::recording::{Container, Encoding, Info, Samples, Source, available, checked_channels, checked_rate};

/// Headers are 1024 bytes, rarely a few times that.
const MAX_HEADER_BYTES: usize = 1 << 20;

pub(crate) fn open(name: &str, mut input: Input) -> Result<(Info, Box<dyn Source>), ReadAudioError> {
    let fields = Fields::read(name, &mut input)?;
    let n_channels = checked_channels(name, Container::Sphere, "channel_count", fields.count_or("channel_count", 1)?)?;
    let rate_hz = checked_rate(name, Container::Sphere, "sample_rate", fields.count("sample_rate")?)?;
    let n_samples = fields.count("sample_count")?;
    let checksum = fields.checksum()?;
    let coding = fields.text("sample_coding").unwrap_or("pcm").to_ascii_lowercase();
    let (stored, packing) = coding.split_once(',').unwrap_or((&coding, ""));
    let layout = fields.layout(stored)?;
    let mut info = Info {
        container: Container::Sphere,
        encoding: layout.encoding(),
        rate_hz,
        n_channels,
        n_samples: Some(n_samples),
        n_missing: 0,
        is_by_ffmpeg: false,
    };
    if packing.starts_with("embedded-shorten") {
        available(name, n_samples, n_samples)?;
        info.encoding = Encoding::Shorten;
        let source = shorten::ShortenSource::open(name, input, &info, layout, checksum)?;
        return Ok((info, Box::new(source)));
    }
    if !packing.is_empty() {
        return Err(fields.coding_error(&coding));
    }
    let sample_bytes = (layout.n_bytes() * n_channels) as u64;
    let n_there = input.n_bytes().saturating_sub(fields.n_bytes) / sample_bytes;
    let (n_samples, n_missing) = available(name, n_there, n_samples)?;
    (info.n_samples, info.n_missing) = (Some(n_samples), n_missing);
    let source = PcmSource::new(name, input, layout, n_channels, fields.n_bytes, n_samples);
    // The checksum is that of all samples.
    Ok((info, Box::new(source.with_checksum(checksum.filter(|_| n_missing == 0)))))
}

/// The header's fields by name.
struct Fields<'a> {
    name: &'a str,
    /// Where the samples start.
    n_bytes: u64,
    values: HashMap<String, String>,
}

impl<'a> Fields<'a> {
    /// Reads the header and leaves `input` at the samples.
    fn read(name: &'a str, input: &mut Input) -> Result<Self, ReadAudioError> {
        let header_error = |problem| header_error(name, problem);
        let io_error = |cause| ReadAudioError::Io { name: name.to_owned(), cause };
        let n_there = input.n_bytes();
        let mut first = [0; 16];
        if input.fill(&mut first).map_err(io_error)? < first.len() {
            return Err(header_error(HeaderProblem::BreaksOff { at: n_there }));
        }
        let size = String::from_utf8_lossy(&first[8..]).trim().to_owned();
        let n_bytes = size.parse().ok().filter(|n| (16..=MAX_HEADER_BYTES).contains(n)).ok_or_else(|| {
            let expected = format!("16 to {MAX_HEADER_BYTES} bytes");
            header_error(HeaderProblem::Value { field: "size", found: size.escape_debug().to_string(), expected })
        })?;
        if n_bytes as u64 > n_there {
            return Err(header_error(HeaderProblem::BreaksOff { at: n_there }));
        }
        let mut bytes = vec![0; n_bytes - first.len()];
        input.fill(&mut bytes).map_err(io_error)?;
        let text = String::from_utf8_lossy(&bytes);
        let end = text.find("end_head").ok_or_else(|| header_error(HeaderProblem::Missing { field: "end_head" }))?;
        let values = text[..end].lines().filter_map(parse_field).collect();
        Ok(Self { name, n_bytes: n_bytes as u64, values })
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.values.get(field).map(String::as_str)
    }

    fn count(&self, field: &'static str) -> Result<u64, ReadAudioError> {
        let found = self.text(field).ok_or_else(|| header_error(self.name, HeaderProblem::Missing { field }))?;
        found.parse().map_err(|_| self.value_error(field, "a count"))
    }

    fn count_or(&self, field: &'static str, default: u64) -> Result<u64, ReadAudioError> {
        if self.text(field).is_some() { self.count(field) } else { Ok(default) }
    }

    /// The sum of all samples modulo 2^16; some programs write it as a signed number.
    fn checksum(&self) -> Result<Option<Checksum>, ReadAudioError> {
        let Some(found) = self.text("sample_checksum") else { return Ok(None) };
        let expected: i64 = found.parse().map_err(|_| self.value_error("sample_checksum", "a number"))?;
        Ok(Some(Checksum::new(expected as u16)))
    }

    fn layout(&self, stored: &str) -> Result<Layout, ReadAudioError> {
        let is_linear = stored == "pcm" || stored == "linear";
        let n_bytes = self.count_or("sample_n_bytes", if is_linear { 2 } else { 1 })?;
        match (stored, n_bytes) {
            ("pcm" | "linear", 2) => Ok(Layout::S16 { is_big_endian: self.is_big_endian()? }),
            ("ulaw" | "mu-law", 1) => Ok(Layout::Ulaw),
            ("alaw" | "a-law", 1) => Ok(Layout::Alaw),
            _ => Err(self.coding_error(&format!("{stored} of {n_bytes} bytes"))),
        }
    }

    fn is_big_endian(&self) -> Result<bool, ReadAudioError> {
        let field = "sample_byte_format";
        match self.text(field) {
            Some("01") => Ok(false),
            Some("10") => Ok(true),
            Some(_) => Err(self.value_error(field, "`01` or `10`")),
            None => Err(header_error(self.name, HeaderProblem::Missing { field })),
        }
    }

    fn value_error(&self, field: &'static str, expected: &str) -> ReadAudioError {
        let found = self.text(field).unwrap_or_default().escape_debug().to_string();
        header_error(self.name, HeaderProblem::Value { field, found, expected: expected.to_owned() })
    }

    fn coding_error(&self, found: &str) -> ReadAudioError {
        let found = found.escape_debug().to_string();
        ReadAudioError::Coding { name: self.name.to_owned(), container: Container::Sphere, found }
    }
}

fn header_error(name: &str, problem: HeaderProblem) -> ReadAudioError {
    ReadAudioError::Header { name: name.to_owned(), container: Container::Sphere, problem }
}

/// `name -sN value`, `name -i value` or `name -r value`; other lines are padding or comments.
fn parse_field(line: &str) -> Option<(String, String)> {
    let (field, rest) = line.split_once(' ')?;
    let (kind, value) = rest.trim_start().split_once(' ')?;
    kind.starts_with('-').then(|| (field.to_owned(), value.trim().to_owned()))
}

/// Writes `samples` as a 16-bit mono SPHERE file at `path`; `extra` are further header fields, such as `speaker_id`.
///
/// ```
/// use srf_audio::{Recording, Samples, Selection, sphere};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("a.sph");
/// let samples = Samples { rate_hz: 16_000, values: vec![0.5, -0.25] };
/// sphere::save(&path, &samples, &[("speaker_id", "ann")])?;
/// assert_eq!(Recording::open(&path)?.read(Selection::default())?, samples);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn save(path: impl AsRef<Path>, samples: &Samples, extra: &[(&str, &str)]) -> io::Result<()> {
    let mut output = BufWriter::new(File::create(path)?);
    write(&mut output, samples, extra)?;
    output.flush()
}

/// Writes `samples` as 16-bit mono SPHERE, little end first, with their checksum.
pub fn write(output: &mut impl Write, samples: &Samples, extra: &[(&str, &str)]) -> io::Result<()> {
    let values = samples.to_i16();
    let checksum = values.iter().fold(0u16, |sum, &value| sum.wrapping_add(value as u16));
    let mut header = b"NIST_1A\n   1024\n".to_vec();
    for (field, value) in extra {
        writeln!(header, "{field} -s{} {value}", value.len())?;
    }
    let counts = [
        ("channel_count", 1),
        ("sample_count", values.len() as i64),
        ("sample_rate", i64::from(samples.rate_hz)),
        ("sample_min", values.iter().min().copied().unwrap_or(0).into()),
        ("sample_max", values.iter().max().copied().unwrap_or(0).into()),
        ("sample_n_bytes", 2),
        ("sample_sig_bits", 16),
        ("sample_checksum", checksum.into()),
    ];
    for (field, value) in counts {
        writeln!(header, "{field} -i {value}")?;
    }
    header.extend(b"sample_byte_format -s2 01\nsample_coding -s3 pcm\nend_head\n");
    if header.len() > 1024 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the SPHERE header fields do not fit into 1024 bytes"));
    }
    header.resize(1024, b' ');
    output.write_all(&header)?;
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    output.write_all(&bytes)
}

#[cfg(test)]
mod tests;
