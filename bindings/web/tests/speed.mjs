// Real-time factor on one thread: node speed.mjs FOLDER RECORDING [CHROMIUM]
//
// Each model transcribes the recording, repeated to about a minute, five times; the fastest counts.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

import { Browser } from './chromium.mjs';

const [folder, recording, program] = process.argv.slice(2);
const models = JSON.parse(readFileSync(join(folder, 'models/models.json'), 'utf8')).map(({ id }) => id);

// The 16-bit samples of a WAV file whose header has 44 bytes, repeated to a minute.
function minute() {
  const bytes = readFileSync(recording);
  const once = Array.from({ length: (bytes.length - 44) / 2 }, (_, at) => bytes.readInt16LE(44 + 2 * at) / 32768);
  return Float32Array.from({ length: 60 * 16000 }, (_, at) => once[at % once.length]);
}

// Runs here and in the browser, where it is sent as text.
function measure(recognizer, samples) {
  let best = Infinity;
  for (let run = 0; run < 5; run++) {
    const start = performance.now();
    recognizer.transcribe(samples, 16000);
    best = Math.min(best, performance.now() - start);
  }
  return best / (1000 * samples.length / 16000);
}

const print = (where, model, factor) => console.log(`${where} ${model}: real-time factor ${factor.toFixed(4)}`);

async function inNode() {
  const { Recognizer } = await import(pathToFileURL(resolve(folder, 'srf.js')));
  const wasm = readFileSync(join(folder, 'srf.wasm'));
  for (const model of models) {
    const dir = join(folder, 'models', model);
    const list = JSON.parse(readFileSync(join(dir, 'files.json'), 'utf8'));
    const files = new Map(list.map(({ name }) => [name, readFileSync(join(dir, name))]));
    print('node', model, measure(await Recognizer.fromFiles(files, { wasm }), minute()));
  }
}

async function inBrowser() {
  const types = { '.js': 'text/javascript', '.html': 'text/html' };
  const server = createServer(({ url }, response) => {
    const path = new URL(url, 'http://localhost').pathname;
    if (path === '/empty.html') return response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!DOCTYPE html>');
    const content = path === '/samples' ? Buffer.from(minute().buffer) : readFileSync(join(folder, path));
    return response.writeHead(200, { 'Content-Type': types[extname(path)] ?? 'application/octet-stream' }).end(content);
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  const browser = new Browser(program);
  try {
    const page = await browser.open();
    await page.go(`http://127.0.0.1:${server.address().port}/empty.html`);
    await page.until("location.pathname === '/empty.html' && document.readyState === 'complete'");
    for (const model of models) {
      const factor = await page.evaluate(`(async () => {
        const { Recognizer } = await import('/srf.js');
        const samples = new Float32Array(await (await fetch('/samples')).arrayBuffer());
        return (${measure})(await Recognizer.load('/models/${model}/'), samples);
      })()`);
      print('browser', model, factor);
    }
  } finally {
    await browser.close();
    server.close();
  }
}

await (program ? inBrowser() : inNode());
