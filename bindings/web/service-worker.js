// Keeps the page's own files, so that it opens without a network. Models are kept by files.js.

// Written by `cargo xtask web`: a hash of all files, and their names.
const VERSION = 'VERSION';
const FILES = ['FILES'];

self.addEventListener('install', (event) => {
  event.waitUntil((async () => {
    const cache = await caches.open(VERSION);
    await cache.addAll(FILES.map((name) => new Request(name, { cache: 'no-cache' })));
    await self.skipWaiting();
  })());
});

self.addEventListener('activate', (event) => {
  event.waitUntil((async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith('srf-page-') && name !== VERSION);
    await Promise.all(old.map((name) => caches.delete(name)));
    await self.clients.claim();
  })());
});

self.addEventListener('fetch', (event) => {
  event.respondWith((async () => {
    const cache = await caches.open(VERSION);
    const kept = await cache.match(event.request);
    if (kept) return kept;
    try {
      return await fetch(event.request);
    } catch {
      // Without a network the model that was loaded before will do.
      return (await caches.match(event.request)) ?? Response.error();
    }
  })());
});
