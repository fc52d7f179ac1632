// Takes the samples of the microphone, mixes channels, resamples to 16 kHz and posts pieces of 40 ms.
//
// The rate is lowered by a windowed-sinc low-pass filter, so that what is above 8 kHz does not fold back.

const TARGET_HZ = 16000;
const PIECE = 640;
const HALF_TAPS = 16;

class Resampler {
  constructor(rate) {
    this.step = rate / TARGET_HZ;
    this.cutoff = Math.min(1, 1 / this.step);
    this.half = Math.ceil(HALF_TAPS / this.cutoff);
    this.buffer = new Float32Array(this.half);
    this.position = this.half;
  }

  // The samples that `input` completes.
  push(input) {
    const all = new Float32Array(this.buffer.length + input.length);
    all.set(this.buffer);
    all.set(input, this.buffer.length);
    const output = [];
    while (this.position + this.half < all.length) {
      output.push(this.at(all, this.position));
      this.position += this.step;
    }
    const keepFrom = Math.max(0, Math.floor(this.position) - this.half);
    this.buffer = all.slice(keepFrom);
    this.position -= keepFrom;
    return output;
  }

  at(samples, position) {
    const first = Math.ceil(position - this.half);
    let sum = 0;
    for (let index = first; index <= position + this.half; index++) {
      const x = index - position;
      const window = 0.5 + 0.5 * Math.cos(Math.PI * x / (this.half + 1));
      const argument = Math.PI * x * this.cutoff;
      const sinc = argument === 0 ? 1 : Math.sin(argument) / argument;
      sum += (samples[index] ?? 0) * window * sinc * this.cutoff;
    }
    return sum;
  }
}

class Recorder extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = sampleRate === TARGET_HZ ? null : new Resampler(sampleRate);
    this.pending = [];
  }

  process(inputs) {
    const channels = inputs[0];
    if (channels.length === 0) return true;
    const mono = Float32Array.from(channels[0], (_, at) => {
      let sum = 0;
      for (const channel of channels) sum += channel[at];
      return sum / channels.length;
    });
    this.pending.push(...(this.resampler ? this.resampler.push(mono) : mono));
    while (this.pending.length >= PIECE) {
      this.port.postMessage(Float32Array.from(this.pending.splice(0, PIECE)));
    }
    return true;
  }
}

registerProcessor('recorder', Recorder);
