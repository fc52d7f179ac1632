// The files of a model from a server, kept in the Cache API so that they are downloaded once.

const CACHE = 'srf-models';

// Downloads the files that `url`/files.json lists as names, bytes and hashes: names to Uint8Array.
export async function fetchFiles(url, onProgress = () => {}) {
  const folder = new URL(url.endsWith('/') ? url : `${url}/`, globalThis.location?.href);
  const cache = await globalThis.caches?.open(CACHE).catch(() => undefined);
  const list = await fetchList(new URL('files.json', folder), cache);
  const total = list.reduce((sum, { bytes }) => sum + bytes, 0);
  let loaded = 0;
  const onBytes = (n) => onProgress(loaded += n, total);
  const files = await Promise.all(list.map(async (file) => [file.name, await fetchFile(file, folder, cache, onBytes)]));
  await forgetOthers(folder, list, cache);
  return new Map(files);
}

// The list as it is now or, without a network, as it was.
async function fetchList(url, cache) {
  let response;
  try {
    response = await fetch(url, { cache: 'no-cache' });
  } catch (error) {
    response = await cache?.match(url);
    if (!response) throw new Error(`could not load ${url}: ${error.message}`);
    return response.json();
  }
  if (!response.ok) throw new Error(`could not load ${url}: status ${response.status}`);
  await cache?.put(url, response.clone());
  return response.json();
}

// Files are kept under their hash, so that a new version is another file.
const keyOf = ({ name, hash }, folder) => new URL(`${name}?${hash}`, folder).href;

async function fetchFile(file, folder, cache, onBytes) {
  const key = keyOf(file, folder);
  const kept = await cache?.match(key);
  if (kept) {
    const content = new Uint8Array(await kept.arrayBuffer());
    onBytes(content.byteLength);
    return content;
  }
  const response = await fetch(key);
  if (!response.ok) throw new Error(`could not load ${key}: status ${response.status}`);
  const content = await read(response, file.bytes, onBytes);
  if (content.byteLength !== file.bytes) {
    throw new Error(`could not load ${key}: found ${content.byteLength} bytes, expected ${file.bytes}`);
  }
  await cache?.put(key, new Response(content));
  return content;
}

async function read(response, nBytes, onBytes) {
  const content = new Uint8Array(nBytes);
  let at = 0;
  for (const reader = response.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return content.subarray(0, at);
    if (at + value.byteLength > nBytes) return new Uint8Array(at + value.byteLength);
    content.set(value, at);
    at += value.byteLength;
    onBytes(value.byteLength);
  }
}

// Earlier versions of the model are deleted.
async function forgetOthers(folder, list, cache) {
  const wanted = new Set([new URL('files.json', folder).href, ...list.map((file) => keyOf(file, folder))]);
  for (const { url } of (await cache?.keys()) ?? []) {
    if (url.startsWith(folder.href) && !wanted.has(url)) await cache.delete(url);
  }
}
