// The page: records or reads a file, sends samples to the recogniser, shows text and routing as they come.

import { WORKLET, listModels, open } from './connection.js';
import { Heatmap, Spectrogram } from './pictures.js';

const RATE_HZ = 16000;
const element = (id) => document.getElementById(id);
const status = element('status');

let connection = null;
let microphone = null;
let pictures = null;
let formats = null;
let known = [];
let isStarting = false;
// Counts streams, so that what comes late from an earlier one is not taken for the present one's.
let nStreams = 0;

function say(text, isError = false) {
  status.textContent = text;
  status.classList.toggle('error', isError);
}

function clearResults() {
  element('finals').textContent = '';
  element('partial').textContent = '';
  formats = null;
  delete document.body.dataset.done;
  for (const button of document.querySelectorAll('#copy, .download')) button.disabled = true;
}

// Opens a stream; one that is still open ends.
async function connect() {
  clearResults();
  connection?.close();
  connection = null;
  nStreams += 1;
  const number = nStreams;
  const ifCurrent = (action) => (message) => number === nStreams && action(message);
  const settings = {
    rate: RATE_HZ, model: element('model').value, output: element('output')?.value ?? '', key: element('key').value,
  };
  connection = await open(settings, ifCurrent(handle), ifCurrent(closed));
}

function closed() {
  stopMicrophone();
  connection = null;
  const isExplained = document.body.dataset.done || status.classList.contains('error');
  if (!isExplained) say('The connection ended before the result was complete.', true);
}

const handlers = {
  ready({ labels, slice_s: sliceSeconds }) {
    pictures = {
      spectrogram: new Spectrogram(element('spectrogram'), RATE_HZ),
      softmax: new Heatmap(element('softmax'), labels, sliceSeconds),
      couplings: new Heatmap(element('couplings'), labels, sliceSeconds),
    };
  },
  progress({ text }) { say(text); },
  partial({ text }) { element('partial').textContent = text; },
  final({ text }) {
    if (text) element('finals').append((element('finals').textContent ? ' ' : '') + text);
    element('partial').textContent = '';
  },
  slices({ posterior, coupling }) {
    pictures.softmax.push(posterior);
    pictures.couplings.push(coupling);
  },
  done(message) {
    formats = message.formats;
    for (const button of document.querySelectorAll('#copy, .download')) button.disabled = false;
    say(`Done: ${message.duration_s.toFixed(1)} s of audio.`);
    document.body.dataset.done = 'true';
  },
  error({ message }) { say(message, true); },
};

function handle(message) { handlers[message.type]?.(message); }

function send(samples) {
  // First the picture: a connection may take the samples away with it.
  pictures?.spectrogram.push(samples);
  connection?.send(samples);
}

async function startMicrophone() {
  // The recogniser was trained on speech as it is: what helps people on the phone only changes it.
  const audio = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  if (!navigator.mediaDevices) throw new Error('browsers open the microphone only on localhost and https');
  const stream = await navigator.mediaDevices.getUserMedia({ audio });
  const context = new AudioContext();
  await context.audioWorklet.addModule(WORKLET);
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
    connection?.finish();
    return;
  }
  // Impatient clicks do not open two microphones.
  if (isStarting) return;
  isStarting = true;
  try {
    await connect();
    await startMicrophone();
    element('record').setAttribute('aria-pressed', 'true');
    element('record-label').textContent = 'Stop';
    say('Listening.');
  } catch (error) {
    say(error.message, true);
    connection?.close();
  } finally {
    isStarting = false;
  }
}

// Decodes a file in the browser and sends it in pieces; the recogniser slows the sender down by being busy.
async function readFile(file) {
  try {
    stopMicrophone();
    say(`Reading ${file.name}.`);
    const context = new OfflineAudioContext(1, 1, RATE_HZ);
    const audio = await context.decodeAudioData(await file.arrayBuffer());
    await connect();
    say(`Recognising ${file.name}.`);
    const samples = mono(audio);
    for (let at = 0; at < samples.length && connection; at += RATE_HZ / 5) {
      send(samples.slice(at, at + RATE_HZ / 5));
      while (connection?.isBusy) await new Promise((resolve) => setTimeout(resolve, 10));
      if (at % RATE_HZ === 0) await new Promise((resolve) => setTimeout(resolve));
    }
    connection?.finish();
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

async function copy() {
  try {
    if (!navigator.clipboard) throw new Error('browsers copy only on localhost and https');
    await navigator.clipboard.writeText(element('finals').textContent);
    say('Copied.');
  } catch (error) {
    say(error.message, true);
  }
}

function download(format) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([formats[format]], { type: 'text/plain;charset=utf-8' }));
  link.download = `transcript.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function showModels() {
  const key = element('key').value;
  const { needsKey, models } = await listModels(key, say);
  element('key').hidden = !needsKey && !key;
  element('key-label').hidden = element('key').hidden;
  if (needsKey) return say('This server needs a key.', true);
  known = models;
  element('model').replaceChildren(...models.map(({ id }) => new Option(id, id)));
  listOutputs();
  say('Ready.');
}

// What the chosen model can write.
function listOutputs() {
  const model = known.find(({ id }) => id === element('model').value);
  const outputs = model?.has_words ? [new Option('words', 'words'), new Option(model.units, 'phones')] : [new Option(model?.units ?? 'labels', '')];
  // The page without a server has no such choice.
  element('output')?.replaceChildren(...outputs);
}

element('record').addEventListener('click', toggleRecording);
element('file').addEventListener('change', ({ target }) => {
  if (target.files[0]) readFile(target.files[0]);
  // The same file can be chosen again.
  target.value = '';
});
element('key').addEventListener('change', showModels);
element('model').addEventListener('change', listOutputs);
element('copy').addEventListener('click', copy);
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
showModels().catch((error) => say(error.message, true));
