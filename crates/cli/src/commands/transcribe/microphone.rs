//! The microphone: what the system's default input hears in, segments as they end out, until Enter is pressed.

use std::io::Read as _;
use std::sync::mpsc::{self, Receiver, Sender};

use anyhow::{Context as _, bail};
use cpal::traits::{DeviceTrait as _, HostTrait as _, StreamTrait as _};
use cpal::{SampleFormat, StreamConfig};

use super::files::Sink;
use super::live::Live;
use super::stdin::Sound;
use crate::Exit;

pub(super) fn listen(live: &Live<'_>, mut sink: Sink<'_>) -> anyhow::Result<Exit> {
    let device = cpal::default_host().default_input_device().context("the system has no microphone")?;
    let supported = device.default_input_config().context("the microphone tells no format")?;
    let config: StreamConfig = supported.config();
    let rate_hz = supported.sample_rate().0;
    let (sender, receiver) = mpsc::channel();
    let stop = sender.clone();
    let stream = match supported.sample_format() {
        SampleFormat::F32 => open(&device, &config, sender, |value: f32| value)?,
        SampleFormat::I16 => open(&device, &config, sender, |value: i16| f32::from(value) / srf_audio::I16_SCALE)?,
        other => bail!("the microphone gives samples as {other}, expected f32 or i16"),
    };
    stream.play().context("could not start the microphone")?;
    live.out.note(format_args!("listening at {rate_hz} Hz; press Enter to end"));
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0; 64]);
        // Nobody listens any more if this fails.
        let _ = stop.send(Vec::new());
    });
    live.listen(Sound::Microphone(receiver, rate_hz), None, super::live::nameless("microphone"), &mut sink)?;
    Ok(Exit::Done)
}

/// A stream that sends the mean of the channels.
fn open<T: cpal::SizedSample>(
    device: &cpal::Device,
    config: &StreamConfig,
    sender: Sender<Vec<f32>>,
    to_f32: impl Fn(T) -> f32 + Send + 'static,
) -> anyhow::Result<cpal::Stream> {
    let n_channels = usize::from(config.channels.max(1));
    let mix = move |frame: &[T]| frame.iter().map(|value| to_f32(*value)).sum::<f32>() / n_channels as f32;
    let hear = move |samples: &[T], _: &cpal::InputCallbackInfo| {
        let mono: Vec<f32> = samples.chunks_exact(n_channels).map(&mix).collect();
        if !mono.is_empty() {
            // The listener has ended if this fails, and so will this stream.
            let _ = sender.send(mono);
        }
    };
    // What goes wrong with a running device shows as silence; the next one is a new run.
    device.build_input_stream(config, hear, |_| (), None).context("could not open the microphone")
}

/// Gives `take` what comes until nothing does.
pub(super) fn each(
    receiver: &Receiver<Vec<f32>>,
    rate_hz: u32,
    take: &mut dyn FnMut(&[f32], u32) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    while let Ok(samples) = receiver.recv() {
        if samples.is_empty() || !take(&samples, rate_hz)? {
            break;
        }
    }
    Ok(())
}
