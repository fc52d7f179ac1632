// Takes the samples of the microphone, mixes channels, resamples to 16 kHz and posts pieces of 40 ms.
//
// The rate is lowered by a windowed-sinc low-pass filter, so that what is above 8 kHz does not fold back. Its weights are
// computed once: a thread that is late loses samples of the microphone.

const TARGET_HZ = 16000;
const PIECE = 640;
const HALF_TAPS = 16;

function commonDivisor(a, b) { return b === 0 ? a : commonDivisor(b, a % b); }

class Resampler {
  constructor(rate) {
    const divisor = commonDivisor(rate, TARGET_HZ);
    // Output `n` lies at input `n * up / down`, so that only `down` different filters are needed.
    [this.up, this.down] = [rate / divisor, TARGET_HZ / divisor];
    const cutoff = Math.min(1, TARGET_HZ / rate);
    this.half = Math.ceil(HALF_TAPS / cutoff);
    this.filters = Array.from({ length: this.down }, (_, at) => this.filter(at / this.down, cutoff));
    this.buffer = new Float32Array(this.half);
    // The next output, in parts of `1 / down` of an input sample from the start of the buffer.
    this.position = this.half * this.down;
  }

  // Weights of the samples from `half` before to `half` after an output that is `fraction` after a sample.
  filter(fraction, cutoff) {
    return Float32Array.from({ length: 2 * this.half + 1 }, (_, tap) => {
      const x = tap - this.half - fraction;
      const window = Math.abs(x) > this.half ? 0 : 0.5 + 0.5 * Math.cos(Math.PI * x / (this.half + 1));
      const argument = Math.PI * x * cutoff;
      return window * cutoff * (argument === 0 ? 1 : Math.sin(argument) / argument);
    });
  }

  // The samples that `input` completes.
  push(input) {
    const all = new Float32Array(this.buffer.length + input.length);
    all.set(this.buffer);
    all.set(input, this.buffer.length);
    const output = [];
    let at = Math.floor(this.position / this.down);
    while (at + this.half < all.length) {
      output.push(this.weighted(all, at - this.half, this.filters[this.position % this.down]));
      this.position += this.up;
      at = Math.floor(this.position / this.down);
    }
    const keepFrom = Math.max(0, at - this.half);
    this.buffer = all.slice(keepFrom);
    this.position -= keepFrom * this.down;
    return output;
  }

  weighted(samples, first, filter) {
    let sum = 0;
    for (let tap = 0; tap < filter.length; tap++) sum += samples[first + tap] * filter[tap];
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
