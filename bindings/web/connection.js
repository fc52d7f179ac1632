// The connection of the page to a recogniser: here a worker of the page itself, instead of a server.
//
// The same interface as that of the server's page (crates/server/src/page/connection.js).

// Where the page loads the worklet of the microphone from.
export const WORKLET = 'worklet.js';

// Samples that wait to be recognised are limited to this many.
const MAX_WAITING = 10 * 16000;

const worker = new Worker('worker.js', { type: 'module' });
const listeners = new Set();
const tell = (message) => [...listeners].forEach((listener) => listener(message));
worker.onmessage = ({ data }) => tell(data);
worker.onerror = (event) => tell({ type: 'error', message: event.message || 'the worker of the recogniser stopped' });

let models = null;
const fetchModels = () => models ??= fetch('models/models.json').then((response) => response.json());

const urlOf = (model) => new URL(`models/${model}/`, location.href).href;

// Loads the model; `say` is called with the progress.
function load(model, say) {
  return new Promise((resolve, reject) => {
    const listener = ({ type, model: of, loaded, total, message }) => {
      if (type === 'progress' && of === model) say(`Loading the model ${model}: ${megabytes(loaded)} of ${megabytes(total)} MB.`);
      const isLoaded = type === 'loaded' && of === model;
      if (type === 'error') reject(new Error(message));
      if (isLoaded) resolve();
      if (isLoaded || type === 'error') listeners.delete(listener);
    };
    listeners.add(listener);
    worker.postMessage({ type: 'load', model, url: urlOf(model) });
  });
}

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

// Opens a stream; resolves to the connection when the recogniser is ready for samples.
export async function open({ rate, ...settings }, onMessage, onClose) {
  // None is chosen before the list has come.
  const model = settings.model || (await fetchModels())[0].id;
  await load(model, (text) => onMessage({ type: 'progress', text }));
  let nWaiting = 0;
  const connection = {
    get isBusy() { return nWaiting > MAX_WAITING; },
    send(samples) {
      nWaiting += samples.length;
      worker.postMessage({ type: 'samples', samples }, [samples.buffer]);
    },
    finish() { worker.postMessage({ type: 'finish' }); },
    close() { listeners.delete(listener); onClose(); },
  };
  let listener;
  return new Promise((resolve, reject) => {
    listener = (message) => {
      if (message.type === 'taken') nWaiting -= message.count;
      if (message.type === 'ready') resolve(connection);
      if (message.type === 'error') reject(new Error(message.message));
      onMessage(message);
      if (message.type === 'done' || message.type === 'error') connection.close();
    };
    listeners.add(listener);
    worker.postMessage({ type: 'start', url: urlOf(model), rate, options: { phones: settings.output === 'phones' } });
  });
}

// The models next to the page, the first of which is loaded already, so that a recording starts at once.
export async function listModels(_key, say) {
  if ('serviceWorker' in navigator) await navigator.serviceWorker.register('service-worker.js');
  const found = await fetchModels();
  await load(found[0].id, say);
  return { needsKey: false, models: found };
}
