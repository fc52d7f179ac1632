"""The page in a real browser, with a microphone that plays a recording and with the recording as a file.

usage: page.py ADDRESS RECORDING TEXT SPOKEN SPOKEN_TEXT EXAMPLE FOLDER COMMAND...

RECORDING and TEXT are a file and its text; SPOKEN is what the microphone plays and SPOKEN_TEXT its text; EXAMPLE is a
JavaScript program that prints results of the variable `samples` by `console.log`. Pictures of the page are written to
FOLDER. COMMAND prints the text of a recording that is its last argument. Speaks WebDriver to `chromedriver` without a
library.
"""

import array
import base64
import json
import os
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
import wave

ADDRESS, RECORDING, TEXT, SPOKEN, SPOKEN_TEXT, EXAMPLE, FOLDER = sys.argv[1:8]
COMMAND = sys.argv[8:]
# A busy machine loses samples of the microphone before the page gets them.
ATTEMPTS = 3
# A loaded machine needs long to start a browser.
PATIENCE_S = 120
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


class Browser:
    """A window of Chromium; its microphone plays SPOKEN once."""

    def __init__(self, width, height, is_dark):
        port = free_port()
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}", "--log-level=SEVERE"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.base = f"http://127.0.0.1:{port}"
        self.session = None
        wait("chromedriver to start", self.is_up)
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--autoplay-policy=no-user-gesture-required",
            "--use-fake-device-for-media-stream",
            "--use-fake-ui-for-media-stream",
            f"--use-file-for-fake-audio-capture={SPOKEN}%noloop",
            # Whatever is not this machine cannot be found.
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        ]
        always = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": always}})["sessionId"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", {"features": [scheme]})

    def is_up(self):
        try:
            return self.call("GET", "/status")["ready"]
        except urllib.error.URLError:
            return False

    def call(self, method, path, body=None):
        path = path if self.session is None else f"/session/{self.session}{path}"
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].split("\n")[0]) from None

    def devtools(self, command, parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script, *values):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(values)})

    def run_async(self, script, *values):
        return self.call("POST", "/execute/async", {"script": script, "args": list(values)})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click")

    def write(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def picture(self, name):
        shot = self.devtools("Page.captureScreenshot", {"captureBeyondViewport": True})
        with open(os.path.join(FOLDER, name), "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def messages(self):
        """What the console shows, as text."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def addresses(self):
        """Everything that the page asked for."""
        found = []
        for entry in self.call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
            if message["method"] == "Network.webSocketCreated":
                found.append(message["params"]["url"])
        return found

    def close(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


def wait(what, condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {PATIENCE_S} s for {what}")
        time.sleep(0.05)


def expect(what, found, expected):
    if found != expected:
        raise RuntimeError(f"{what}: expected `{expected}`, found `{found}`")


def open_page(browser):
    browser.call("POST", "/url", {"url": f"http://{ADDRESS}/"})
    wait("the models", lambda: browser.text("#status") == "Ready.")


# Keeps what the page sends, and how much it had sent when the first words appeared.
KEPT = """
window.sent = { samples: 0, atFirstWords: null, pieces: [] };
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  if (data.byteLength) window.sent.pieces.push(data.slice(0));
  window.sent.samples += (data.byteLength ?? 0) / 4;
  return send.call(this, data);
};
new MutationObserver(() => { window.sent.atFirstWords ??= window.sent.samples; })
  .observe(document.getElementById('partial'), { childList: true, characterData: true, subtree: true });
"""


SENT = """
const done = arguments[arguments.length - 1];
const reader = new FileReader();
reader.onload = () => done(reader.result.split(',')[1]);
reader.readAsDataURL(new Blob(window.sent.pieces));
"""


def text_of_sent(browser):
    """The text of what the page sent, by the program without a server."""
    samples = base64.b64decode(browser.run_async(SENT))
    layout = struct.pack("<4sIHHIIHH", b"fmt ", 16, 3, 1, 16000, 64000, 4, 32)
    body = b"WAVE" + layout + struct.pack("<4sI", b"data", len(samples)) + samples
    path = os.path.join(FOLDER, "sent.wav")
    with open(path, "wb") as file:
        file.write(struct.pack("<4sI", b"RIFF", len(body)) + body)
    output = subprocess.run([*COMMAND, path], capture_output=True, text=True, check=True)
    return " ".join(output.stdout.split())


def speak(browser):
    """Records until the microphone has played everything; the text has to appear before.

    The text is that of the samples that were sent. It is also that of the recording, unless the browser lost some of
    it: then it is spoken again.
    """
    with wave.open(SPOKEN, "rb") as spoken:
        length_s = spoken.getnframes() / spoken.getframerate()
    browser.run(KEPT)
    browser.click("#record")
    wait("the microphone", lambda: browser.text("#status") == "Listening.")
    wait("words while somebody speaks", lambda: browser.text("#partial").strip())
    expect("the button while recording", browser.run("return document.getElementById('record').ariaPressed"), "true")
    wait("half of the recording", lambda: browser.run("return window.sent.samples") > 16000 * length_s * 0.6)
    browser.picture("page-speaking.png")
    wait("all of the recording", lambda: browser.run("return window.sent.samples") > 16000 * (length_s + 0.3))
    browser.click("#record")
    wait("the end", lambda: browser.run("return document.body.dataset.done") == "true")
    appeared_s = browser.run("return window.sent.atFirstWords") / 16000
    if appeared_s > length_s - 1:
        raise RuntimeError(f"the first words appeared after {appeared_s:.1f} s of {length_s:.1f} s")
    text = browser.text("#finals").strip()
    expect("text of the microphone", text, text_of_sent(browser))
    return text


def choose_file(browser):
    browser.write("#file", RECORDING)
    wait("the end", lambda: browser.run("return document.body.dataset.done") == "true")
    expect("text of the file", browser.text("#finals").strip(), TEXT)


# The colours of a picture to the right of its labels.
COLOURS = """
const canvas = document.getElementById(arguments[0]);
const { data } = canvas.getContext('2d').getImageData(50, 0, canvas.width - 50, canvas.height);
const colours = new Set();
for (let at = 0; at < data.length; at += 4) colours.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
return colours.size;
"""

# Interactive elements without a name, and elements wider than the window.
FAULTS = """
const faults = [];
for (const element of document.querySelectorAll('button, select, input, a, canvas')) {
  if (element.hidden) continue;
  const name = element.ariaLabel || element.textContent.trim() || [...(element.labels ?? [])].map((l) => l.textContent).join();
  if (!name) faults.push(`${element.tagName} #${element.id} has no name`);
}
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) {
  for (const element of document.querySelectorAll('body *')) {
    if (element.getBoundingClientRect().right > width + 1) faults.push(`${element.tagName} #${element.id} is too wide`);
  }
}
return faults;
"""


def check(browser, name):
    for canvas in ["spectrogram", "softmax", "couplings"]:
        n_colours = browser.run(COLOURS, canvas)
        if n_colours < 5:
            raise RuntimeError(f"{name}: the picture `{canvas}` has {n_colours} colours, it is blank")
    expect(f"{name}: faults of the page", browser.run(FAULTS), [])
    browser.picture(f"{name}.png")
    expect(f"{name}: messages of the console", browser.messages(), [])
    known = (f"http://{ADDRESS}/", f"ws://{ADDRESS}/", "data:", "blob:")
    foreign = [address for address in browser.addresses() if not address.startswith(known)]
    expect(f"{name}: requests to other machines", foreign, [])


# What a button would save: the link that it clicks is not followed.
SAVED = """
const done = arguments[arguments.length - 1];
const [follow, make] = [HTMLAnchorElement.prototype.click, URL.createObjectURL];
HTMLAnchorElement.prototype.click = () => {};
URL.createObjectURL = (blob) => { blob.text().then(done); return '#'; };
document.querySelector(`[data-format=${arguments[0]}]`).click();
[HTMLAnchorElement.prototype.click, URL.createObjectURL] = [follow, make];
"""


def formats(browser):
    """What can be saved."""
    for format_name, mark in [("srt", " --> "), ("vtt", "WEBVTT"), ("json", '"segments"'), ("TextGrid", "ooTextFile")]:
        script = "return document.querySelector(`[data-format=${arguments[0]}]`).disabled"
        expect(f"the button {format_name} is disabled", browser.run(script, format_name), False)
        saved = browser.run_async(SAVED, format_name)
        if mark not in saved:
            raise RuntimeError(f"{format_name} has no `{mark}`: {saved[:200]}")


def example(browser):
    """The JavaScript program in docs/SERVER.md, on the page of the server."""
    with wave.open(RECORDING, "rb") as recording:
        samples = array.array("h", recording.readframes(recording.getnframes())).tolist()
    with open(EXAMPLE) as file:
        program = file.read()
    script = """
    const done = arguments[arguments.length - 1];
    const samples = Int16Array.from(arguments[0]);
    const lines = [];
    const console = { log(value) { lines.push(value); if (value.text !== undefined) done(lines); } };
    """
    lines = browser.run_async(script + program, samples)
    expect("the example in JavaScript", " ".join(line["text"] for line in lines if line.get("text")), TEXT)


def microphone():
    """The page at 1280 pixels, with everything that can be done after somebody spoke."""
    texts = []
    wide = lambda browser: check(browser, "page-1280")
    # The microphone plays the recording once, so that another attempt needs another browser.
    while SPOKEN_TEXT not in texts and len(texts) < ATTEMPTS:
        keep = lambda browser: texts.append(speak(browser))
        with_browser(1280, 900, False, open_page, keep, wide, formats, example)
    if SPOKEN_TEXT not in texts:
        raise RuntimeError(f"expected `{SPOKEN_TEXT}` from the microphone, found `{'`, `'.join(texts)}`")


def with_browser(width, height, is_dark, *steps):
    browser = Browser(width, height, is_dark)
    try:
        for step in steps:
            step(browser)
    finally:
        browser.close()


def main():
    os.makedirs(FOLDER, exist_ok=True)
    narrow = lambda browser: check(browser, "page-360")
    dark = lambda browser: check(browser, "page-dark")
    microphone()
    with_browser(360, 780, False, open_page, choose_file, narrow)
    with_browser(1280, 900, True, open_page, choose_file, dark)
    print("page: microphone and files give the text of the program", flush=True)


main()
