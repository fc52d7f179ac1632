// The page: records or reads a file, sends samples to the server, shows text and routing as they come.

import { Heatmap, Spectrogram } from './pictures.js';

const RATE_HZ = 16000;
const element = (id) => document.getElementById(id);
const status = element('status');

let socket = null;
let microphone = null;
let pictures = null;
let formats = null;

function say(text, isError = false) {
  status.textContent = text;
  status.classList.toggle('error', isError);
}

function clearResults() {
  element('finals').textContent = '';
  element('partial').textContent = '';
  formats = null;
  for (const button of document.querySelectorAll('#copy, .download')) button.disabled = true;
}

// Opens a stream; resolves when the server is ready for samples.
function connect() {
  clearResults();
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  socket = new WebSocket(`${scheme}://${location.host}/live`);
  socket.binaryType = 'arraybuffer';
  return new Promise((resolve, reject) => {
    socket.onopen = () => {
      const settings = { rate: RATE_HZ, model: element('model').value, routing: true };
      if (element('key').value) settings.key = element('key').value;
      socket.send(JSON.stringify(settings));
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === 'ready') resolve();
      if (message.type === 'error') reject(new Error(message.message));
      handle(message);
    };
    socket.onerror = () => reject(new Error('the server cannot be reached'));
    socket.onclose = () => { stopMicrophone(); socket = null; };
  });
}

const handlers = {
  ready({ labels, slice_s: sliceSeconds }) {
    pictures = {
      spectrogram: new Spectrogram(element('spectrogram'), RATE_HZ),
      softmax: new Heatmap(element('softmax'), labels, sliceSeconds),
      couplings: new Heatmap(element('couplings'), labels, sliceSeconds),
    };
  },
  partial({ text }) { element('partial').textContent = text; },
  final({ text }) {
    element('finals').textContent += (element('finals').textContent ? ' ' : '') + text;
    element('partial').textContent = '';
  },
  slices({ posterior, coupling }) {
    pictures.softmax.push(posterior);
    pictures.couplings.push(coupling);
  },
  done(message) {
    formats = message.formats;
    for (const button of document.querySelectorAll('#copy, .download')) button.disabled = false;
    say(`Done: ${message.duration_s.toFixed(1)} s of speech.`);
    document.body.dataset.done = 'true';
  },
  error({ message }) { say(message, true); },
};

function handle(message) { handlers[message.type]?.(message); }

function send(samples) {
  if (socket?.readyState !== WebSocket.OPEN) return;
  socket.send(samples.buffer);
  pictures?.spectrogram.push(samples);
}

function finish() {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ end: true }));
}

async function startMicrophone() {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
  const context = new AudioContext();
  await context.audioWorklet.addModule('/page/worklet.js');
  const node = new AudioWorkletNode(context, 'recorder');
  node.port.onmessage = ({ data }) => send(data);
  context.createMediaStreamSource(stream).connect(node);
  microphone = { stream, context };
}

function stopMicrophone() {
  microphone?.stream.getTracks().forEach((track) => track.stop());
  microphone?.context.close();
  microphone = null;
  element('record').setAttribute('aria-pressed', 'false');
  element('record-label').textContent = 'Record';
}

async function toggleRecording() {
  if (microphone) {
    stopMicrophone();
    finish();
    return;
  }
  try {
    await connect();
    await startMicrophone();
    element('record').setAttribute('aria-pressed', 'true');
    element('record-label').textContent = 'Stop';
    say('Listening.');
  } catch (error) {
    say(error.message, true);
    socket?.close();
  }
}

// Decodes a file in the browser and sends it in pieces; the server slows the sender down by the socket's buffer.
async function readFile(file) {
  try {
    say(`Reading ${file.name}.`);
    const context = new OfflineAudioContext(1, 1, RATE_HZ);
    const audio = await context.decodeAudioData(await file.arrayBuffer());
    await connect();
    say(`Recognising ${file.name}.`);
    const samples = mono(audio);
    for (let at = 0; at < samples.length && socket; at += RATE_HZ / 5) {
      send(samples.slice(at, at + RATE_HZ / 5));
      while (socket && socket.bufferedAmount > 1 << 20) await new Promise((resolve) => setTimeout(resolve, 10));
      if (at % RATE_HZ === 0) await new Promise((resolve) => setTimeout(resolve));
    }
    finish();
  } catch (error) {
    say(`${file.name}: ${error.message}`, true);
  }
}

function mono(audio) {
  const mixed = new Float32Array(audio.length);
  for (let channel = 0; channel < audio.numberOfChannels; channel++) {
    audio.getChannelData(channel).forEach((value, at) => { mixed[at] += value / audio.numberOfChannels; });
  }
  return mixed;
}

function download(format) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([formats[format]], { type: 'text/plain;charset=utf-8' }));
  link.download = `transcript.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function listModels() {
  const key = element('key').value;
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const response = await fetch('/v1/models', { headers });
  const needsKey = response.status === 401;
  element('key').hidden = !needsKey && !key;
  element('key-label').hidden = element('key').hidden;
  if (needsKey) return say('This server needs a key.', true);
  const { data } = await response.json();
  element('model').replaceChildren(...data.map(({ id }) => new Option(id, id)));
  say('Ready.');
}

element('record').addEventListener('click', toggleRecording);
element('file').addEventListener('change', ({ target }) => target.files[0] && readFile(target.files[0]));
element('key').addEventListener('change', listModels);
element('copy').addEventListener('click', () => navigator.clipboard.writeText(element('finals').textContent));
for (const button of document.querySelectorAll('.download')) {
  button.addEventListener('click', () => download(button.dataset.format));
}
const drop = element('drop');
drop.addEventListener('dragover', (event) => { event.preventDefault(); drop.classList.add('over'); });
drop.addEventListener('dragleave', () => drop.classList.remove('over'));
drop.addEventListener('drop', (event) => {
  event.preventDefault();
  drop.classList.remove('over');
  if (event.dataTransfer.files[0]) readFile(event.dataTransfer.files[0]);
});
listModels().catch((error) => say(error.message, true));
