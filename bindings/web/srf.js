// Speech recognition in the browser, and wherever else WebAssembly runs.
//
//   const recognizer = await Recognizer.load('models/en-phones/');
//   console.log(recognizer.transcribe(samples, 16000).text);
//
//   const stream = recognizer.stream();
//   const { finals, partial } = stream.accept(samples, 48000);
//   const transcript = stream.finish();
//
// Calls compute before they return: run them in a worker (worker.js) where a page must stay responsive.

import { fetchFiles } from './files.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// An error of the recogniser; `hint` says what to do about it, where that is known.
export class RecognizerError extends Error {
  constructor({ message, hint }) {
    super(message);
    this.name = 'RecognizerError';
    this.hint = hint;
  }
}

// The result of a recording: `text`, `segments` and the other fields of the JSON format, and all formats.
export class Transcript {
  #formats;

  constructor({ transcript, formats }) {
    Object.assign(this, transcript);
    this.#formats = formats;
  }

  // The transcript as a file: `txt`, `json`, `srt`, `vtt`, `ctm`, `trn`, `TextGrid` or `csv`.
  format(name) {
    if (!Object.hasOwn(this.#formats, name)) {
      const names = Object.keys(this.#formats).join(', ');
      throw new RecognizerError({ message: `unknown format \`${name}\`, expected one of ${names}` });
    }
    return this.#formats[name];
  }
}

// The functions of a module, with bytes instead of addresses.
class Module {
  #exports;
  #hasStopped = false;

  constructor(instance) {
    this.#exports = instance.exports;
    this.#exports.srf_start();
  }

  // Calls a function with parts of input; its status, or an error if that is 0.
  call(name, parts, ...numbers) {
    if (this.#hasStopped) throw new RecognizerError({ message: 'the recogniser stopped at an earlier error' });
    const exports = this.#exports;
    try {
      const n = parts.reduce((sum, part) => sum + part.byteLength, 0);
      let at = exports.srf_input(n);
      for (const part of parts) {
        new Uint8Array(exports.memory.buffer, at, part.byteLength).set(part);
        at += part.byteLength;
      }
      const status = exports[name](...numbers);
      if (status === 0) throw new RecognizerError(this.json());
      return status;
    } catch (error) {
      if (error instanceof RecognizerError) throw error;
      this.#hasStopped = true;
      const panic = this.#text(exports.srf_panic(), exports.srf_panic_bytes());
      throw new RecognizerError({ message: `internal error: ${panic || error.message}` });
    }
  }

  // A copy of the output of the last call.
  output() {
    const { memory, srf_output: start, srf_output_bytes: length } = this.#exports;
    return new Uint8Array(memory.buffer, start(), length()).slice();
  }

  json() { return JSON.parse(decoder.decode(this.output())); }

  #text(at, length) { return decoder.decode(new Uint8Array(this.#exports.memory.buffer, at, length).slice()); }
}

function bytesOfSamples(samples) {
  if (!(samples instanceof Float32Array)) {
    throw new TypeError(`samples are a ${samples?.constructor?.name ?? typeof samples}, expected a Float32Array`);
  }
  return new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
}

function checkRate(rateHz) {
  if (!Number.isInteger(rateHz) || rateHz < 1 || rateHz > 0xffffffff) {
    throw new TypeError(`the rate is ${rateHz}, expected a whole number of samples per second`);
  }
}

const bytesOf = (value) => encoder.encode(value === undefined ? '' : JSON.stringify(value));

// Compiles the module from where this file is, or from `wasm`: a URL, bytes, or a compiled module.
async function instantiate(wasm = new URL('srf.wasm', import.meta.url)) {
  if (wasm instanceof WebAssembly.Module) return WebAssembly.instantiate(wasm, {});
  if (ArrayBuffer.isView(wasm) || wasm instanceof ArrayBuffer) return (await WebAssembly.instantiate(wasm, {})).instance;
  const response = await fetch(wasm);
  if (!response.ok) throw new RecognizerError({ message: `could not load ${wasm}: status ${response.status}` });
  return (await WebAssembly.instantiate(await response.arrayBuffer(), {})).instance;
}

// A model that is ready to transcribe. Its memory is freed when nothing refers to it or its streams any more.
export class Recognizer {
  #module;

  constructor(module, info) {
    this.#module = module;
    this.info = info;
  }

  // Loads the model in the folder at `url`, which has a list of its files, `files.json`, as `cargo xtask web` writes
  // it. `onProgress(loaded, total)` is called with bytes. The files are kept in the Cache API.
  static async load(url, { onProgress, wasm } = {}) {
    const [instance, files] = await Promise.all([instantiate(wasm), fetchFiles(url, onProgress)]);
    return Recognizer.#open(instance, files);
  }

  // A model from the files of its directory: names to Uint8Array.
  static async fromFiles(files, { wasm } = {}) {
    return Recognizer.#open(await instantiate(wasm), files);
  }

  static #open(instance, files) {
    const module = new Module(instance);
    for (const [name, content] of files instanceof Map ? files : Object.entries(files)) {
      const bytes = encoder.encode(name);
      module.call('srf_add_file', [bytes, content], bytes.byteLength);
    }
    module.call('srf_open', []);
    return new Recognizer(module, module.json());
  }

  // Transcribes samples from -1 to 1.
  transcribe(samples, rateHz, options) {
    checkRate(rateHz);
    const settings = bytesOf(options);
    this.#module.call('srf_transcribe', [settings, bytesOfSamples(samples)], rateHz, settings.byteLength);
    return new Transcript(this.#module.json());
  }

  // Transcribes the bytes of a recording: WAV, FLAC, MP3, Ogg, MP4, Matroska, AIFF or SPHERE.
  transcribeFile(content, name = 'recording', options = undefined) {
    const [settings, id] = [bytesOf(options), encoder.encode(name)];
    this.#module.call('srf_transcribe_file', [settings, id, content], settings.byteLength, id.byteLength);
    return new Transcript(this.#module.json());
  }

  // Starts a stream.
  stream(options) {
    const id = this.#module.call('srf_stream', [bytesOf(options)]);
    return new Stream(this.#module, id, this.info.labels.length);
  }
}

// One speaker's stream.
class Stream {
  #module;
  #id;
  #nClasses;
  #hasFinished = false;

  constructor(module, id, nClasses) {
    this.#module = module;
    this.#id = id;
    this.#nClasses = nClasses;
  }

  // Accepts samples from -1 to 1: the segments that ended, and the current one so far or null.
  accept(samples, rateHz) {
    checkRate(rateHz);
    if (this.#hasFinished) throw new RecognizerError({ message: 'the stream has finished' });
    this.#module.call('srf_accept', [bytesOfSamples(samples)], this.#id, rateHz);
    return this.#module.json();
  }

  // Takes softmax and couplings of the slices since the last call, for streams with the option `slices`: a list of
  // Float32Array for each, one per slice, a value per label; networks without capsules have no couplings.
  takeSlices() {
    const n = this.#module.call('srf_slices', [], this.#id) - 1;
    const values = new Float32Array(this.#module.output().buffer);
    const rows = [];
    for (let at = 0; at < values.length; at += this.#nClasses) rows.push(values.subarray(at, at + this.#nClasses));
    return { posteriors: rows.slice(0, n), couplings: rows.slice(n) };
  }

  // Ends the stream: the transcript of all of it. Only slices can be taken after that.
  finish() {
    this.#module.call('srf_finish', [], this.#id);
    this.#hasFinished = true;
    return new Transcript(this.#module.json());
  }

  // Frees the memory of the stream, which cannot be used after that.
  free() {
    this.#module.call('srf_free', [], this.#id);
    this.#hasFinished = true;
  }
}
