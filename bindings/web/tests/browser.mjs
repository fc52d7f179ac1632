// Opens the page in a headless Chromium: node browser.mjs CHROMIUM FOLDER EXPECTED [SCREENSHOTS]
//
// A file and a fake microphone are recognised with the text of the command, nothing is requested after loading, the
// pictures are drawn, the console stays empty, and the page still works when its server is gone.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';

import { Browser } from './chromium.mjs';

const [program, folder, expectedPath, screenshots] = process.argv.slice(2);
const expected = readFileSync(expectedPath, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const sampleOf = (id) => expected.find(({ path, model }) => path.includes('woman-1') && model === `models/${id}`);
const sample = sampleOf('en-phones');
const work = mkdtempSync(join(tmpdir(), 'srf-web-'));

const MAX_RECORDINGS = 3;
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm', '.json': 'application/json' };

// What the server was asked for, but for the browser's own look for a newer service worker.
const served = [];

// A server of static files, as simple as they come.
function serve() {
  const server = createServer(({ url }, response) => {
    if (url !== '/service-worker.js') served.push(url);
    const path = normalize(new URL(url, 'http://localhost').pathname);
    try {
      const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
      const content = readFileSync(file);
      response.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

// A WAV file of 16 bits.
function wav(samples, rate) {
  const bytes = Buffer.alloc(44 + 2 * samples.length);
  bytes.write('RIFF');
  bytes.writeUInt32LE(36 + 2 * samples.length, 4);
  bytes.write('WAVEfmt ', 8);
  [[16, 4], [1, 2], [1, 2], [rate, 4], [2 * rate, 4], [2, 2], [16, 2]].reduce((at, [value, n]) => bytes.writeUIntLE(value, at, n), 16);
  bytes.write('data', 36);
  bytes.writeUInt32LE(2 * samples.length, 40);
  samples.forEach((value, at) => bytes.writeInt16LE(value, 44 + 2 * at));
  return bytes;
}

// The sample with a second of silence before it, because a browser takes a moment to open its microphone.
function microphone() {
  const bytes = readFileSync(sample.path);
  const values = Array.from({ length: (bytes.length - 44) / 2 }, (_, at) => bytes.readInt16LE(44 + 2 * at));
  const path = join(work, 'microphone.wav');
  writeFileSync(path, wav([...Array(16000).fill(0), ...values, ...Array(16000).fill(0)], 16000));
  return path;
}

const text = "document.getElementById('finals').textContent";
const isDone = "document.getElementById('status').textContent.startsWith('Done')";
const isReady = "document.getElementById('status').textContent === 'Ready.' && document.getElementById('model').options.length > 0";

// Chooses a model, or what it writes.
function choose(page, id, value) {
  return page.evaluate(`(() => {
    const list = document.getElementById('${id}');
    list.value = '${value}';
    list.dispatchEvent(new Event('change'));
    if (list.value !== '${value}') throw new Error('there is no ${value} to choose');
  })()`);
}

// Recognises the sample as a file that is dropped on the page.
async function dropFile(page) {
  const content = readFileSync(sample.path).toString('base64');
  await page.evaluate(`(() => {
    const bytes = Uint8Array.from(atob('${content}'), (character) => character.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], 'sample.wav'));
    document.getElementById('drop').dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, cancelable: true }));
  })()`);
  await page.until(isDone, 120);
  return page.evaluate(text);
}

// Lets the recogniser have only the first samples of a recording, and keeps them: a slow machine stops it late.
const limitRecording = `(() => {
  const post = Worker.prototype.postMessage;
  window.recorded = [];
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message.type === 'samples') {
      if (window.recorded.length >= window.most) return;
      for (const value of message.samples) window.recorded.push(value);
    }
    post.call(this, message, ...rest);
  };
})()`;

// Recognises what the microphone plays.
async function record(page, seconds) {
  await page.evaluate(`window.recorded = []; window.most = 16000 * ${seconds}; document.getElementById('record').click()`);
  await page.until("document.getElementById('status').textContent === 'Listening.'");
  await page.until('window.recorded.length >= window.most', 10 * seconds + 60);
  await page.evaluate("document.getElementById('record').click()");
  await page.until(isDone, 120);
  return { text: await page.evaluate(text), samples: await page.evaluate('window.recorded') };
}

// The text of samples by the same module in node, which the other tests compare with the command.
async function textOf(samples) {
  const { Recognizer } = await import(join(folder, 'srf.js'));
  const list = JSON.parse(readFileSync(join(folder, sample.model, 'files.json'), 'utf8'));
  const files = new Map(list.map(({ name }) => [name, readFileSync(join(folder, sample.model, name))]));
  const recognizer = await Recognizer.fromFiles(files, { wasm: readFileSync(join(folder, 'srf.wasm')) });
  return recognizer.transcribe(Float32Array.from(samples), 16000).text;
}

async function takeScreenshots(page) {
  for (const [name, shape] of Object.entries({
    'narrow-light': { width: 360, height: 800, dark: false },
    'narrow-dark': { width: 360, height: 800, dark: true },
    'wide-light': { width: 1280, height: 900, dark: false },
    'wide-dark': { width: 1280, height: 900, dark: true },
  })) {
    await page.screenshot(shape);
    await dropFile(page);
    await new Promise((resolve) => setTimeout(resolve, 300));
    writeFileSync(join(screenshots, `${name}.png`), await page.screenshot(shape));
  }
}

// The text of the microphone is always that of its samples, and that of the recording unless samples were lost, as
// happens on a machine that is busy: then the recording is played again.
async function checkMicrophone(page) {
  await page.evaluate(limitRecording);
  const texts = [];
  for (let attempt = 0; attempt < MAX_RECORDINGS && !texts.includes(sample.text); attempt++) {
    const { text: found, samples } = await record(page, 1.5 + sample.duration_s);
    assert.equal(found, await textOf(samples), 'the text of the microphone');
    texts.push(found);
  }
  assert.ok(texts.includes(sample.text), `found ${JSON.stringify(texts)}, expected ${sample.text}`);
}

async function check(page, server) {
  const url = `http://127.0.0.1:${server.address().port}/`;
  await page.go(url);
  await page.until(isReady);
  await page.until('navigator.serviceWorker.controller !== null');
  assert.equal(await dropFile(page), sampleOf('en').text, 'words of a file');
  await choose(page, 'output', 'phones');
  const phones = await dropFile(page);
  assert.ok(phones && phones !== sampleOf('en').text, `phones of a file: ${phones}`);
  await choose(page, 'model', 'en-phones');
  assert.equal(await dropFile(page), sample.text, 'the text of a file');
  // Everything is loaded now.
  const [nLoaded, nServed] = [page.requests.length, served.length];
  assert.equal(await dropFile(page), sample.text, 'the text of the file again');
  const drawn = await page.evaluate(`['spectrogram', 'softmax', 'couplings'].map((id) => {
    const canvas = document.getElementById(id);
    const { data } = canvas.getContext('2d').getImageData(canvas.width / 2, 0, canvas.width / 2, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  })`);
  drawn.forEach((nColours) => assert.ok(nColours > 10, `pictures of ${drawn} colours`));

  await checkMicrophone(page);
  // The page asks for the worklet of the microphone when it is first used, and the service worker has it.
  const later = page.requests.slice(nLoaded).filter((request) => !request.endsWith('/worklet.js'));
  assert.deepEqual(later, [], 'requests after loading');
  assert.deepEqual(served.slice(nServed), [], 'requests that reached the server after loading');

  // Without the server.
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await page.go(url);
  await page.until(isReady);
  await choose(page, 'model', 'en-phones');
  assert.equal(await dropFile(page), sample.text, 'the text of a file without a network');
  assert.deepEqual(page.problems, [], 'messages on the console');
}

const server = await serve();
const browser = new Browser(program, microphone());
try {
  const page = await browser.open();
  await check(page, server);
  if (screenshots) await takeScreenshots(page);
  console.log('web: the page recognises files and the microphone, with and without its server');
} finally {
  await browser.close();
  server.close();
  rmSync(work, { recursive: true, force: true });
}
