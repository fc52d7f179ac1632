//! `srf sclite` against the reports of NIST's own tests, and against those of NIST's program for generated cases.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn srf(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).arg("sclite").args(arguments).current_dir(directory).output().unwrap()
}

/// A report without the date it was made on.
fn without_date(bytes: &[u8]) -> String {
    let mut kept = String::new();
    for line in String::from_utf8_lossy(bytes).split_inclusive('\n') {
        match line.split_once(" creation_date=\"") {
            Some((before, after)) => kept.extend([before, after.split_once('"').unwrap().1.trim_start()]),
            None if line.starts_with("Creation date:") => {}
            // The expected files have two blanks where the date was.
            None => kept.push_str(&line.replace("\"  format=", "\"format=")),
        }
    }
    kept
}

fn nist(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../score/tests/nist").join(name)
}

#[test]
fn nists_own_tests_come_out_byte_for_byte() {
    let cases = fs::read(nist("cases.json.gz")).expect("NIST's test cases are part of the sources");
    let cases: serde_json::Value = serde_json::from_reader(flate2::read::GzDecoder::new(&cases[..])).unwrap();
    let work = tempfile::tempdir().unwrap();
    for (name, text) in cases["inputs"].as_object().unwrap() {
        fs::write(work.path().join(name), text.as_str().unwrap()).unwrap();
    }
    fs::create_dir(work.path().join("OUT")).unwrap();
    let mut n_reports = 0;
    for test in cases["tests"].as_array().unwrap() {
        let arguments: Vec<&str> = test["arguments"].as_str().unwrap().split_whitespace().collect();
        let output = srf(work.path(), &arguments);
        let reports = test["reports"].as_object().unwrap();
        assert_eq!(output.status.success(), !reports.is_empty(), "{}: {output:?}", test["id"]);
        for (name, key) in reports {
            let ours = without_date(&fs::read(work.path().join("OUT").join(name)).unwrap());
            let theirs = without_date(cases["reports"][key.as_str().unwrap()].as_str().unwrap().as_bytes());
            assert!(ours == theirs, "{name} differs from NIST's");
            n_reports += 1;
        }
    }
    assert_eq!(n_reports, 61);
}

/// Random numbers that are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 12] =
            ["a", "the", "Cat", "dog", "um", "(uh)", "th-", "-at", "that", "well-known", "it's", "hat"];
        WORDS[self.below(12) as usize]
    }

    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(15) {
            let word = self.word();
            if self.below(8) == 0 {
                let _ = write!(text, "{{ {word} / {} {} / @ }} ", self.word(), self.word());
            } else {
                let _ = write!(text, "{word} ");
            }
        }
        text
    }

    /// The same text with some words missing, wrong or added.
    fn heard(&mut self, text: &str) -> String {
        let mut heard = String::new();
        for word in text.split_whitespace().filter(|word| !"{/@}".contains(word)) {
            let _ = match self.below(8) {
                0 => Ok(()),
                1 => write!(heard, "{} ", self.word()),
                2 => write!(heard, "{word} {} ", self.word()),
                _ => write!(heard, "{word} "),
            };
        }
        heard
    }
}

fn write_transcripts(directory: &Path, random: &mut Random) {
    let (mut reference, mut hypothesis) = (String::new(), String::new());
    for utterance in 0..12 {
        let text = random.text();
        let id = format!("(spk{}-{utterance:02})", random.below(3));
        let _ = writeln!(hypothesis, "{}{id}", random.heard(&text));
        let _ = writeln!(reference, "{text}{id}");
    }
    fs::write(directory.join("r.trn"), reference).unwrap();
    fs::write(directory.join("h.trn"), hypothesis).unwrap();
}

fn write_segments(directory: &Path, random: &mut Random) {
    let (mut reference, mut hypothesis) = (String::new(), String::new());
    for channel in ["A", "B"] {
        let mut start_s = 0.5;
        for _ in 0..5 {
            let text = random.text();
            let words = random.heard(&text);
            let words: Vec<&str> = words.split_whitespace().collect();
            let end_s = start_s + 0.25 * (words.len() + 1) as f64;
            let _ = writeln!(reference, "f {channel} s{} {start_s:.2} {end_s:.2} {text}", random.below(3));
            for (at, word) in words.iter().enumerate() {
                let (start_s, confidence) = (start_s + 0.25 * at as f64, random.below(1000) as f64 / 1000.0);
                let _ = writeln!(hypothesis, "f {channel} {start_s:.2} 0.20 {word} {confidence:.3}");
            }
            start_s = end_s;
        }
        let _ = writeln!(hypothesis, "f {channel} {start_s:.2} 0.20 end 0.5");
    }
    fs::write(directory.join("r.stm"), reference).unwrap();
    fs::write(directory.join("h.ctm"), hypothesis).unwrap();
}

const ENDINGS: [&str; 5] = ["sys", "raw", "pra", "prf", "sgml"];

/// The hashes of the reports that a program writes, or nothing if it refuses.
fn hashes(mut program: Command, directory: &Path, case: &[&str]) -> Vec<String> {
    let output = program.args(case).args(["-o", "all", "prf", "sgml", "-f", "0", "-n", "out"]);
    if !output.current_dir(directory).output().unwrap().status.success() {
        return Vec::new();
    }
    let read = |ending| without_date(&fs::read(directory.join(format!("out.{ending}"))).unwrap());
    ENDINGS.map(|ending| format!("{:016x}", srf_base::random::hash_of(&read(ending)))).into()
}

/// The expected hashes are of the reports of NIST's program; `SRF_SCLITE=/usr/lib/sctk/bin/sclite` writes them again.
#[test]
fn nists_program_writes_the_same_files() {
    let work = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    let cases: [&[&str]; 6] = [
        &["-r", "r.trn", "-h", "h.trn", "-i", "spu_id"],
        &["-r", "r.trn", "-h", "h.trn", "-i", "wsj", "-s", "-F", "-D"],
        &["-r", "r.trn", "-h", "h.trn", "-i", "rm", "-c", "DH"],
        &["-r", "r.stm", "stm", "-h", "h.ctm", "ctm"],
        &["-r", "r.stm", "stm", "-h", "h.ctm", "ctm", "-F", "-D", "-m", "ref", "hyp"],
        &["-r", "r.stm", "stm", "-h", "h.ctm", "ctm", "-c", "-s"],
    ];
    let nists_program = std::env::var_os("SRF_SCLITE");
    let expected = fs::read(nist("random.json")).expect("the hashes of NIST's reports are part of the sources");
    let expected: Vec<Vec<String>> = serde_json::from_slice(&expected).unwrap();
    let mut found = Vec::new();
    for round in 0..10 {
        write_transcripts(work.path(), &mut random);
        write_segments(work.path(), &mut random);
        for case in cases {
            let program = if let Some(path) = &nists_program {
                Command::new(path)
            } else {
                let mut program = Command::new(env!("CARGO_BIN_EXE_srf"));
                program.arg("sclite");
                program
            };
            let ours = hashes(program, work.path(), case);
            let theirs = expected.get(found.len()).filter(|_| nists_program.is_none());
            if let Some(theirs) = theirs.filter(|theirs| !theirs.is_empty()) {
                let differs: Vec<&str> = ENDINGS
                    .into_iter()
                    .zip(ours.iter().zip(theirs))
                    .filter(|(_, (a, b))| a != b)
                    .map(|(e, _)| e)
                    .collect();
                assert!(
                    ours.len() == theirs.len() && differs.is_empty(),
                    "round {round}: {differs:?} of {case:?} differ from NIST's"
                );
            }
            found.push(ours);
        }
    }
    if nists_program.is_some() {
        fs::write(nist("random.json"), serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
    }
    assert_eq!(found.len(), expected.len());
    assert!(expected.iter().filter(|hashes| !hashes.is_empty()).count() > 40, "NIST's program refused most cases");
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("r.trn"), "a (s-1)\n").unwrap();
    let refused: [(&[&str], &str); 5] = [
        (&["-d"], "alignment by diff"),
        (&["-S", "algo1", "lexicon"], "guessing where words begin"),
        (&["-L", "model"], "weights of words"),
        (&["-e", "gb"], "convert the files to UTF-8"),
        (&["-x"], "there is no argument `-x`"),
    ];
    for (flags, expected) in refused {
        let output = srf(work.path(), &[&["-r", "r.trn", "-h", "r.trn", "-i", "rm"], flags].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2));
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn the_default_report_goes_to_stdout() {
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("r.trn"), "a b (s-1)\n").unwrap();
    fs::write(work.path().join("h.trn"), "a c (s-1)\n").unwrap();
    let output = srf(work.path(), &["-r", "r.trn", "-h", "h.trn", "-i", "rm", "-f", "0"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("| Sum/Avg|    1      2 | 50.0   50.0    0.0    0.0   50.0  100.0 |"), "{shown}");
}
