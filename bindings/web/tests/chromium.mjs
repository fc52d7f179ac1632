// A headless Chromium, controlled through its debugging pipe: nothing needs to be installed but the browser.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ARGUMENTS = [
  '--headless=new', '--remote-debugging-pipe', '--no-first-run', '--disable-gpu', '--mute-audio',
  '--disable-background-networking', '--disable-component-update', '--disable-default-apps', '--disable-sync',
  '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream', '--autoplay-policy=no-user-gesture-required',
];

export class Browser {
  #process;
  #profile = mkdtempSync(join(tmpdir(), 'srf-chromium-'));
  #waiting = new Map();
  #listeners = [];
  #lastId = 0;

  // `microphone` is a WAV file that is played once as the microphone's sound.
  constructor(program, microphone) {
    const root = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
    const sound = microphone ? [`--use-file-for-fake-audio-capture=${microphone}%noloop`] : [];
    const args = [...ARGUMENTS, ...root, ...sound, `--user-data-dir=${this.#profile}`, 'about:blank'];
    this.#process = spawn(program, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    let pending = '';
    this.#process.stdio[4].setEncoding('utf8').on('data', (text) => {
      const parts = (pending + text).split('\0');
      pending = parts.pop();
      for (const part of parts) this.#receive(JSON.parse(part));
    });
    // Writing to a browser that is gone is reported by the call that waits for its answer.
    this.#process.stdio[3].on('error', () => {});
    this.#process.on('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the browser ended'));
      this.#waiting.clear();
    });
  }

  #receive(message) {
    const call = this.#waiting.get(message.id);
    if (!call) return this.#listeners.forEach((listener) => listener(message));
    this.#waiting.delete(message.id);
    if (message.error) call.reject(new Error(`${call.method}: ${message.error.message}`));
    else call.resolve(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.#lastId;
    this.#process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject, method }));
  }

  // Opens a tab and collects its requests, and what it and its workers write to the console.
  async open() {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId);
    this.#listeners.push((message) => page.receive(message));
    await page.watch(sessionId);
    return page;
  }

  async close() {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    await this.send('Browser.close').catch(() => {});
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), 5000);
    await ended;
    clearTimeout(timer);
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

class Page {
  requests = [];
  problems = [];
  #sessions = new Set();

  constructor(browser, sessionId) {
    this.browser = browser;
    this.sessionId = sessionId;
  }

  async watch(sessionId) {
    this.#sessions.add(sessionId);
    const calls = ['Runtime.enable', 'Network.enable', 'Log.enable', 'Page.enable'];
    // Workers do not have all of these.
    await Promise.all(calls.map((method) => this.browser.send(method, {}, sessionId).catch(() => {})));
    const attach = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true };
    await this.browser.send('Target.setAutoAttach', attach, sessionId).catch(() => {});
  }

  receive({ method, params, sessionId }) {
    if (!this.#sessions.has(sessionId)) return;
    if (method === 'Target.attachedToTarget') this.watch(params.sessionId);
    if (method === 'Network.requestWillBeSent' && !params.request.url.startsWith('data:')) this.requests.push(params.request.url);
    if (method === 'Runtime.exceptionThrown') this.problems.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type)) {
      this.problems.push(params.args.map(({ value, description }) => value ?? description).join(' '));
    }
    if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level)) this.problems.push(`${params.entry.text} ${params.entry.url ?? ''}`);
  }

  async evaluate(expression) {
    const settings = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails } = await this.browser.send('Runtime.evaluate', settings, this.sessionId);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  go(url) { return this.browser.send('Page.navigate', { url }, this.sessionId); }

  // Waits until the expression is true.
  async until(expression, seconds = 60) {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end;) {
      if (await this.evaluate(expression).catch(() => false)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const status = await this.evaluate('document.body.innerText').catch((error) => error.message);
    throw new Error(`not true after ${seconds} s: ${expression}\n${this.problems.join('\n')}\n${status}`);
  }

  async screenshot({ width, height, dark }) {
    const size = { width, height, deviceScaleFactor: 1, mobile: width < 500 };
    await this.browser.send('Emulation.setDeviceMetricsOverride', size, this.sessionId);
    const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }];
    await this.browser.send('Emulation.setEmulatedMedia', { features }, this.sessionId);
    const { data } = await this.browser.send('Page.captureScreenshot', { captureBeyondViewport: true }, this.sessionId);
    return Buffer.from(data, 'base64');
  }
}
