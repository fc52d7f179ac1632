// Tests of the module in node: `cargo xtask web` runs them with SRF_WEB, the folder of the page, and EXPECTED, what
// the command `srf transcribe --format json` writes for each recording.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const folder = process.env.SRF_WEB;
const module = await import(pathToFileURL(join(folder, 'srf.js')));
const { Recognizer, RecognizerError } = module;
const wasm = await WebAssembly.compile(readFileSync(join(folder, 'srf.wasm')));
const expected = readFileSync(process.env.EXPECTED, 'utf8').trim().split('\n').map((line) => JSON.parse(line));

const MAX_COMPRESSED_BYTES = 1.5e6;

function filesOf(model) {
  const dir = join(folder, model);
  const names = readdirSync(dir).filter((name) => name !== 'files.json');
  return new Map(names.map((name) => [name, readFileSync(join(dir, name))]));
}

const recognizers = new Map();
async function recognizerOf(model) {
  if (!recognizers.has(model)) recognizers.set(model, await Recognizer.fromFiles(filesOf(model), { wasm }));
  return recognizers.get(model);
}

// The samples of a WAV file of 16 bits whose header has 44 bytes.
function samplesOf(path) {
  const bytes = readFileSync(path);
  assert.equal(bytes.toString('latin1', 36, 40), 'data');
  return Float32Array.from({ length: (bytes.length - 44) / 2 }, (_, at) => bytes.readInt16LE(44 + 2 * at) / 32768);
}

const sampleOf = (id) => expected.find(({ path, model }) => path.includes('woman-1') && model === `models/${id}`);
const sample = sampleOf('en-phones');

test('transcripts equal those of the command', async () => {
  assert.ok(expected.length >= 104, `${expected.length} recordings, expected the samples and 100 others`);
  let nTokens = 0;
  for (const { path, model, text, segments } of expected) {
    const recognizer = await recognizerOf(model);
    const found = recognizer.transcribeFile(readFileSync(path), path.split('/').pop());
    assert.equal(found.text, text, path);
    const timed = (list) => list.flatMap(({ tokens }) => tokens.map(({ text, start_s, end_s }) => [text, start_s, end_s]));
    assert.deepEqual(timed(found.segments), timed(segments), path);
    nTokens += timed(segments).length;
  }
  assert.ok(nTokens > 1000, `${nTokens} tokens`);
});

test('confidences are those of the command, but for rounding', async () => {
  for (const { path, model, segments } of expected.slice(0, 12)) {
    const found = (await recognizerOf(model)).transcribeFile(readFileSync(path), path);
    const confidences = (list) => list.flatMap(({ tokens }) => tokens.map(({ confidence }) => confidence));
    const other = confidences(segments);
    confidences(found.segments).forEach((value, at) => assert.ok(Math.abs(value - other[at]) <= 2e-4, `${path}: ${value} ${other[at]}`));
  }
});

test('samples, files and streams in pieces give the same', async () => {
  const recognizer = await recognizerOf(sample.model);
  const samples = samplesOf(sample.path);
  const whole = recognizer.transcribe(samples, 16000);
  assert.equal(whole.text, sample.text);
  for (const size of [1, 160, 3001, samples.length]) {
    const stream = recognizer.stream({ slices: true });
    const finals = [];
    let nSlices = 0;
    const take = () => {
      const { posteriors, couplings } = stream.takeSlices();
      assert.equal(posteriors.length, couplings.length);
      nSlices += posteriors.length;
      for (const row of [...posteriors, ...couplings]) {
        assert.equal(row.length, recognizer.info.labels.length);
        assert.ok(Math.abs(row.reduce((sum, value) => sum + value, 0) - 1) < 1e-3);
      }
    };
    // Pieces of one sample only at the start: a call costs more than a sample.
    const [small, n] = [Math.min(size * 500, samples.length), samples.length];
    for (let at = 0; at < n;) {
      const step = at < small ? size : 4000;
      finals.push(...stream.accept(samples.subarray(at, at + step), 16000).finals);
      if (at % 16 === 0) take();
      at += step;
    }
    const transcript = stream.finish();
    take();
    assert.deepEqual(transcript.segments.map(({ text }) => text), whole.segments.map(({ text }) => text));
    assert.deepEqual(finals.map(({ text }) => text), transcript.segments.slice(0, finals.length).map(({ text }) => text));
    assert.ok(Math.abs(nSlices * recognizer.info.sliceSeconds - transcript.duration_s) < 0.1);
    assert.throws(() => stream.accept(samples, 16000), /the stream has finished/);
    stream.free();
    assert.throws(() => stream.takeSlices(), /the stream was freed/);
  }
});

test('streams give partial results before the end', async () => {
  const recognizer = await recognizerOf(sample.model);
  assert.ok(recognizer.info.canStream);
  const stream = recognizer.stream();
  const samples = samplesOf(sample.path);
  const { partial } = stream.accept(samples.subarray(0, samples.length / 2), 16000);
  assert.ok(partial.text.length > 0 && partial.tokens.length > 0);
  stream.free();
});

test('formats and options', async () => {
  const recognizer = await recognizerOf(sample.model);
  const samples = samplesOf(sample.path);
  const transcript = recognizer.transcribe(samples, 16000, { beam: 16, nBest: 3, evidence: true });
  assert.equal(transcript.format('txt').trim(), transcript.text);
  assert.match(transcript.format('srt'), /^1\n00:00:00/);
  assert.match(transcript.format('vtt'), /^WEBVTT/);
  assert.equal(JSON.parse(transcript.format('json')).text, transcript.text);
  assert.equal(transcript.segments[0].alternatives.length, 2);
  assert.ok(transcript.segments[0].tokens[0].evidence.posterior > 0);
  assert.throws(() => transcript.format('docx'), /unknown format `docx`, expected one of .*\bsrt\b/);
});

test('a model with words writes words, or its labels', async () => {
  const { path, model, text } = sampleOf('en');
  const recognizer = await recognizerOf(model);
  assert.ok(recognizer.info.writesWords);
  const samples = samplesOf(path);
  const words = recognizer.transcribe(samples, 16000);
  assert.equal(words.text, text);
  assert.ok(words.segments[0].words.length > 0);
  const labels = recognizer.transcribe(samples, 16000, { phones: true }).text.split(' ');
  assert.ok(labels.length > words.text.split(' ').length && labels.every((label) => recognizer.info.labels.includes(label)));
});

test('bad input is an error with a message', async () => {
  const recognizer = await recognizerOf(sample.model);
  const fails = (run, message) => assert.throws(run, (error) => error instanceof RecognizerError && message.test(error.message));
  fails(() => recognizer.transcribe(new Float32Array(9), 16000, { width: 3 }), /options: unknown field `width`/);
  fails(() => recognizer.transcribe(new Float32Array(9), 16000, { beam: 0 }), /the beam is 0, expected 1 to /);
  fails(() => recognizer.stream({ nBest: 0 }), /0 hypotheses were asked for, expected 1 to /);
  fails(() => recognizer.transcribeFile(new Uint8Array(99), 'noise.wav'), /noise\.wav/);
  fails(() => recognizer.transcribe(new Float32Array(9), 1), /rate/);
  assert.throws(() => recognizer.transcribe([0, 1], 16000), /samples are a Array, expected a Float32Array/);
  assert.throws(() => recognizer.transcribe(new Float32Array(9), 44100.5), /the rate is 44100.5/);
  const files = filesOf(sample.model);
  files.delete('labels.txt');
  await assert.rejects(Recognizer.fromFiles(files, { wasm }), /could not read `labels.txt`/);
  // The recogniser still works.
  assert.equal(recognizer.transcribe(samplesOf(sample.path), 16000).text, sample.text);
});

test('the types name what the module exports', () => {
  const types = readFileSync(join(folder, 'srf.d.ts'), 'utf8');
  const named = [...types.matchAll(/export class (\w+)/g)].map(([, name]) => name);
  assert.deepEqual(named.sort(), Object.keys(module).sort());
  for (const name of named) {
    const [, body] = types.match(new RegExp(`export class ${name}[^{]*\\{([\\s\\S]*?)\\n\\}`));
    for (const [, method] of body.matchAll(/^ {2}(?:static )?(\w+)\(/gm)) {
      if (method === 'constructor') continue;
      const owner = module[name];
      assert.equal(typeof (owner[method] ?? owner.prototype[method]), 'function', `${name}.${method}`);
    }
  }
});

test('the module is small', () => {
  const compressed = gzipSync(readFileSync(join(folder, 'srf.wasm')), { level: 9 }).length;
  console.log(`the module has ${compressed} bytes compressed`);
  assert.ok(compressed < MAX_COMPRESSED_BYTES, `${compressed} bytes`);
});
