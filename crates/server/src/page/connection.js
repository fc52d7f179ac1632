// The connection of the page to a recogniser: here a WebSocket to the server that the page came from.
//
// A connection has `send(samples)`, `finish()`, `close()` and `isBusy`. It hands `onMessage` objects that have a
// `type`: `ready`, `partial`, `final`, `slices`, `done` and `error`. The page without a server has its own version.

// Where the page loads the worklet of the microphone from.
export const WORKLET = '/page/worklet.js';

// Samples that wait to be sent are limited to this many bytes.
const MAX_WAITING = 1 << 20;

// Opens a stream; resolves to the connection when the server is ready for samples.
export function open(settings, onMessage, onClose) {
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  const socket = new WebSocket(`${scheme}://${location.host}/live`);
  socket.binaryType = 'arraybuffer';
  const isOpen = () => socket.readyState === WebSocket.OPEN;
  const connection = {
    get isBusy() { return isOpen() && socket.bufferedAmount > MAX_WAITING; },
    send(samples) { if (isOpen()) socket.send(samples.buffer); },
    finish() { if (isOpen()) socket.send(JSON.stringify({ end: true })); },
    close() { socket.close(); },
  };
  return new Promise((resolve, reject) => {
    // What is empty is left out.
    const given = Object.entries({ ...settings, routing: true }).filter(([, value]) => value !== '');
    socket.onopen = () => socket.send(JSON.stringify(Object.fromEntries(given)));
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === 'ready') resolve(connection);
      if (message.type === 'error') reject(new Error(message.message));
      onMessage(message);
    };
    socket.onerror = () => reject(new Error('the server cannot be reached'));
    socket.onclose = onClose;
  });
}

// The models, each with its `id`; `needsKey` if the server wants another key.
export async function listModels(key) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const response = await fetch('/v1/models', { headers });
  if (response.status === 401) return { needsKey: true, models: [] };
  const { data } = await response.json();
  return { needsKey: false, models: data };
}
