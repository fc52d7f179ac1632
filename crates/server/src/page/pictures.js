// Pictures that scroll with time: a spectrogram of samples and heat maps of classes.

const SECONDS = 8;
const LABEL_WIDTH = 44;

// Columns are kept as images, so that drawing one more costs the same however long the stream is.
class Scroller {
  constructor(canvas, left) {
    this.canvas = canvas;
    this.left = left;
    canvas.width = Math.max(300, Math.round(canvas.clientWidth * devicePixelRatio));
    this.context = canvas.getContext('2d');
    this.context.clearRect(0, 0, canvas.width, canvas.height);
    this.fraction = 0;
  }

  // Makes room for `seconds` on the right and calls `draw(x, width)` for it.
  scroll(seconds, draw) {
    const { canvas, context, left } = this;
    this.fraction += seconds / SECONDS * (canvas.width - left);
    const width = Math.floor(this.fraction);
    this.fraction -= width;
    if (width === 0) return;
    const kept = canvas.width - left - width;
    if (kept > 0) context.drawImage(canvas, left + width, 0, kept, canvas.height, left, 0, kept, canvas.height);
    draw(canvas.width - width, width);
  }
}

// From paper to ink through blue; `value` is 0 to 1.
function colour(value) {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const v = Math.max(0, Math.min(1, value));
  const light = dark ? 12 + 75 * v : 97 - 72 * v;
  return `hsl(${dark ? 200 - 150 * v : 212} ${dark ? 70 : 80}% ${light}%)`;
}

export class Heatmap extends Scroller {
  // One row per label.
  constructor(canvas, labels, sliceSeconds) {
    const rowHeight = Math.max(5, Math.min(14, Math.floor(420 / labels.length)));
    canvas.height = labels.length * rowHeight * devicePixelRatio;
    canvas.style.height = `${labels.length * rowHeight}px`;
    super(canvas, LABEL_WIDTH * devicePixelRatio);
    this.labels = labels;
    this.sliceSeconds = sliceSeconds;
    this.rowHeight = rowHeight * devicePixelRatio;
    this.drawLabels();
  }

  drawLabels() {
    const { context, rowHeight } = this;
    context.fillStyle = getComputedStyle(document.body).color;
    context.font = `${Math.min(rowHeight, 11 * devicePixelRatio)}px system-ui, sans-serif`;
    context.textBaseline = 'middle';
    const every = Math.ceil(9 * devicePixelRatio / rowHeight);
    this.labels.forEach((label, row) => {
      if (row % every === 0) context.fillText(label, 2, (row + 0.5) * rowHeight);
    });
  }

  // Adds slices; each is a list of darknesses from 0 to 255, one per label.
  push(slices) {
    for (const slice of slices) {
      this.scroll(this.sliceSeconds, (x, width) => {
        slice.forEach((value, row) => {
          this.context.fillStyle = colour(value / 255);
          this.context.fillRect(x, row * this.rowHeight, width, this.rowHeight + 1);
        });
      });
    }
  }
}

const WINDOW = 512;
const HOP = 160;

export class Spectrogram extends Scroller {
  constructor(canvas, rate) {
    super(canvas, 0);
    this.rate = rate;
    this.pending = new Float32Array(0);
  }

  push(samples) {
    const all = new Float32Array(this.pending.length + samples.length);
    all.set(this.pending);
    all.set(samples, this.pending.length);
    let at = 0;
    for (; at + WINDOW <= all.length; at += HOP) this.column(all.subarray(at, at + WINDOW));
    this.pending = all.slice(at);
  }

  column(samples) {
    const power = spectrum(samples);
    this.scroll(HOP / this.rate, (x, width) => {
      const { height } = this.canvas;
      const bins = 64;
      for (let bin = 0; bin < bins; bin++) {
        const share = power.length / bins;
        let most = 1e-12;
        for (let index = Math.floor(bin * share); index < (bin + 1) * share; index++) most = Math.max(most, power[index]);
        this.context.fillStyle = colour((Math.log10(most) + 6) / 7);
        this.context.fillRect(x, height * (1 - (bin + 1) / bins), width, height / bins + 1);
      }
    });
  }
}

// Power of the frequencies below half of the rate: Hann window and a radix-2 transform.
function spectrum(samples) {
  const n = WINDOW;
  const re = Float64Array.from(samples, (value, at) => value * (0.5 - 0.5 * Math.cos(2 * Math.PI * at / n)));
  const im = new Float64Array(n);
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) [re[i], re[j]] = [re[j], re[i]];
  }
  for (let length = 2; length <= n; length <<= 1) {
    for (let start = 0; start < n; start += length) {
      for (let k = 0; k < length / 2; k++) {
        const angle = -2 * Math.PI * k / length;
        const [a, b] = [start + k, start + k + length / 2];
        const tr = re[b] * Math.cos(angle) - im[b] * Math.sin(angle);
        const ti = re[b] * Math.sin(angle) + im[b] * Math.cos(angle);
        [re[b], im[b]] = [re[a] - tr, im[a] - ti];
        [re[a], im[a]] = [re[a] + tr, im[a] + ti];
      }
    }
  }
  return Float64Array.from({ length: n / 2 }, (_, at) => re[at] ** 2 + im[at] ** 2);
}
