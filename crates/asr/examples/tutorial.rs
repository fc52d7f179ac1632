//! The program of the tutorial, so that it is compiled.
#![allow(clippy::print_stdout, clippy::default_trait_access, reason = "a short program")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recognizer = srf::Recognizer::open("runs/mine/model")?;
    println!("{}", recognizer.transcribe("talk.flac")?.text());
    let mut stream = recognizer.stream(&Default::default())?;
    let second = vec![0.0; 16_000]; // samples from -1 to 1
    stream.accept(&second, 16_000)?;
    for segment in stream.finish() {
        println!("{}", segment.text);
    }
    Ok(())
}
