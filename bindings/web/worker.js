// A recogniser in a worker: takes messages of the page (`load`, `start`, `samples`, `finish`) and answers with objects
// that have a `type`: `progress`, `loaded`, `ready`, `partial`, `final`, `slices`, `taken`, `done` and `error`.

import { Recognizer } from './srf.js';

const recognizers = new Map();
let current = null;

// How dark a coupling is that is as large as all others; twice that is as dark as it gets.
const EQUAL_SHARE = 0.2;

// 256 steps of darkness, as the server sends them: more cannot be seen.
function shades(rows, shade) {
  const step = (value) => Math.round(255 * Math.min(1, Math.max(0, shade(value))));
  return rows.map((row) => Uint8Array.from(row, step));
}

function showSlices() {
  const { posteriors, couplings } = current.stream.takeSlices();
  if (posteriors.length === 0) return;
  const share = (value) => EQUAL_SHARE + (value * posteriors[0].length - 1) * (1 - EQUAL_SHARE);
  postMessage({ type: 'slices', posterior: shades(posteriors, Math.sqrt), coupling: shades(couplings, share) });
}

const handlers = {
  async load({ model, url }) {
    if (!recognizers.has(url)) {
      const onProgress = (loaded, total) => postMessage({ type: 'progress', model, loaded, total });
      recognizers.set(url, Recognizer.load(url, { onProgress }));
      // Another attempt may succeed.
      recognizers.get(url).catch(() => recognizers.delete(url));
    }
    await recognizers.get(url);
    postMessage({ type: 'loaded', model });
  },

  async start({ url, rate, options }) {
    const recognizer = await recognizers.get(url);
    current?.stream.free();
    current = { stream: recognizer.stream({ slices: true, ...options }), rate, lastText: '', nFinals: 0 };
    const { labels, sliceSeconds } = recognizer.info;
    postMessage({ type: 'ready', labels, slice_s: sliceSeconds });
  },

  samples({ samples }) {
    const { finals, partial } = current.stream.accept(samples, current.rate);
    for (const { text } of finals) postMessage({ type: 'final', text });
    current.nFinals += finals.length;
    const text = partial?.text ?? '';
    if (text !== current.lastText) postMessage({ type: 'partial', text });
    current.lastText = text;
    showSlices();
    postMessage({ type: 'taken', count: samples.length });
  },

  finish() {
    const transcript = current.stream.finish();
    for (const { text } of transcript.segments.slice(current.nFinals)) postMessage({ type: 'final', text });
    showSlices();
    const formats = Object.fromEntries(['srt', 'vtt', 'json', 'TextGrid', 'txt'].map((name) => [name, transcript.format(name)]));
    current.stream.free();
    current = null;
    postMessage({ type: 'done', duration_s: transcript.duration_s, text: transcript.text, formats });
  },
};

// Messages are handled one after another, though loading a model waits for the network.
let queue = Promise.resolve();
onmessage = ({ data }) => {
  queue = queue.then(() => handlers[data.type](data)).catch((error) => {
    const hint = error.hint ? `; ${error.hint}` : '';
    postMessage({ type: 'error', message: `${error.message}${hint}` });
  });
};
