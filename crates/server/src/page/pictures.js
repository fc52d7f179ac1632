// Pictures that scroll with time: a spectrogram of samples and heat maps of classes.
//
// A picture keeps its values and paints them at most once per frame of the screen, however many come: painting on
// arrival takes more time than recognition. So it can also be painted again, when the colours or the width change.

const SECONDS = 8;
const LABEL_WIDTH = 44;
const SHADES = 256;

const isDark = matchMedia('(prefers-color-scheme: dark)');
let shades = null;

// From paper to ink through blue, one colour per value from 0 to 255, as pixels.
function palette() {
  if (shades) return shades;
  const canvas = new OffscreenCanvas(SHADES, 1);
  const context = canvas.getContext('2d');
  for (let value = 0; value < SHADES; value++) {
    const v = value / (SHADES - 1);
    const light = isDark.matches ? 12 + 75 * v : 97 - 72 * v;
    context.fillStyle = `hsl(${isDark.matches ? 200 - 150 * v : 212} ${isDark.matches ? 70 : 80}% ${light}%)`;
    context.fillRect(value, 0, 1, 1);
  }
  shades = new Uint32Array(context.getImageData(0, 0, SHADES, 1).data.buffer);
  return shades;
}

// The picture on each canvas that is shown.
const shown = new Map();

isDark.addEventListener('change', () => {
  shades = null;
  for (const picture of shown.values()) picture.repaint();
});
addEventListener('resize', () => { for (const picture of shown.values()) picture.repaint(); });

// A ring of columns: the next one replaces the oldest. Columns without values are transparent.
class Scroller {
  constructor(canvas, nColumns, nRows) {
    this.canvas = canvas;
    // The same for all, so that what happens at one time stands at one place.
    this.left = LABEL_WIDTH * devicePixelRatio;
    this.context = canvas.getContext('2d');
    this.values = new Uint8Array(nColumns * nRows);
    this.image = new ImageData(nColumns, nRows);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.ring = new OffscreenCanvas(nColumns, nRows);
    this.nColumns = nColumns;
    this.nRows = nRows;
    // Columns since the start, and how many of them are pixels.
    this.nPushed = 0;
    this.nPainted = 0;
    this.isWaiting = false;
    shown.set(canvas, this);
  }

  // Adds a column of values from 0 to 255, the top one first.
  add(column) {
    const at = this.nPushed % this.nColumns;
    for (let row = 0; row < this.nRows; row++) this.values[row * this.nColumns + at] = column[row];
    this.nPushed++;
    this.request();
  }

  // Paints everything again.
  repaint() {
    this.nPainted = Math.max(0, this.nPushed - this.nColumns);
    this.request();
  }

  request() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      if (shown.get(this.canvas) === this) this.paint();
    });
  }

  paint() {
    const { canvas, context, left, nColumns, nRows, ring } = this;
    canvas.width = Math.max(300, Math.round(canvas.clientWidth * devicePixelRatio));
    this.paintLabels();
    const colours = palette();
    for (let n = Math.max(this.nPainted, this.nPushed - nColumns); n < this.nPushed; n++) {
      for (let at = n % nColumns; at < this.values.length; at += nColumns) this.pixels[at] = colours[this.values[at]];
    }
    this.nPainted = this.nPushed;
    ring.getContext('2d').putImageData(this.image, 0, 0);
    // The oldest column is the one that will be replaced next.
    const oldest = this.nPushed % nColumns;
    const scale = (canvas.width - left) / nColumns;
    const older = nColumns - oldest;
    context.imageSmoothingEnabled = false;
    context.drawImage(ring, oldest, 0, older, nRows, left, 0, older * scale, canvas.height);
    if (oldest > 0) {
      context.drawImage(ring, 0, 0, oldest, nRows, left + older * scale, 0, oldest * scale, canvas.height);
    }
  }

  // Chooses a font of `size` pixels.
  write(size) {
    this.context.fillStyle = getComputedStyle(document.body).color;
    this.context.font = `${size}px system-ui, sans-serif`;
    this.context.textBaseline = 'middle';
    return size;
  }
}

export class Heatmap extends Scroller {
  // One row per label.
  constructor(canvas, labels, sliceSeconds) {
    super(canvas, Math.round(SECONDS / sliceSeconds), labels.length);
    const rowHeight = Math.max(5, Math.min(14, Math.floor(420 / labels.length)));
    canvas.height = labels.length * rowHeight * devicePixelRatio;
    canvas.style.height = `${labels.length * rowHeight}px`;
    this.labels = labels;
    this.rowHeight = rowHeight * devicePixelRatio;
    this.repaint();
  }

  paintLabels() {
    const { context, rowHeight } = this;
    this.write(Math.min(rowHeight, 11 * devicePixelRatio));
    const every = Math.ceil(9 * devicePixelRatio / rowHeight);
    this.labels.forEach((label, row) => {
      if (row % every === 0) context.fillText(label, 2, (row + 0.5) * rowHeight);
    });
  }

  // Adds slices; each is a list of darknesses from 0 to 255, one per label.
  push(slices) { slices.forEach((slice) => this.add(slice)); }
}

const WINDOW = 512;
const HOP_S = 0.02;
const BINS = 64;

export class Spectrogram extends Scroller {
  constructor(canvas, rate) {
    super(canvas, Math.round(SECONDS / HOP_S), BINS);
    // As many pixels as the style sheet gives it.
    canvas.height = Math.round(canvas.clientHeight * devicePixelRatio) || canvas.height;
    this.hop = Math.round(HOP_S * rate);
    this.pending = new Float32Array(0);
    this.highest = `${rate / 2000} kHz`;
    this.repaint();
  }

  paintLabels() {
    const { height } = this.canvas;
    const size = this.write(11 * devicePixelRatio);
    this.context.fillText(this.highest, 2, size);
    this.context.fillText('0', 2, height - size);
  }

  push(samples) {
    const all = new Float32Array(this.pending.length + samples.length);
    all.set(this.pending);
    all.set(samples, this.pending.length);
    let at = 0;
    for (; at + WINDOW <= all.length; at += this.hop) this.add(bins(spectrum(all.subarray(at, at + WINDOW))));
    this.pending = all.slice(at);
  }
}

// The loudest of each group of neighbouring frequencies on a logarithmic scale, the highest first.
function bins(power) {
  const share = power.length / BINS;
  return Uint8Array.from({ length: BINS }, (_, row) => {
    let most = 1e-12;
    for (let at = (BINS - 1 - row) * share; at < (BINS - row) * share; at++) most = Math.max(most, power[at]);
    return Math.max(0, Math.min(255, (Math.log10(most) + 6) / 7 * 255));
  });
}

const HANN = Float64Array.from({ length: WINDOW }, (_, at) => 0.5 - 0.5 * Math.cos(2 * Math.PI * at / WINDOW));
const COS = Float64Array.from({ length: WINDOW / 2 }, (_, at) => Math.cos(2 * Math.PI * at / WINDOW));
const SIN = Float64Array.from({ length: WINDOW / 2 }, (_, at) => -Math.sin(2 * Math.PI * at / WINDOW));

// Power of the frequencies below half of the rate: Hann window and a radix-2 transform.
function spectrum(samples) {
  const re = HANN.map((value, at) => value * samples[at]);
  const im = new Float64Array(WINDOW);
  for (let i = 1, j = 0; i < WINDOW; i++) {
    let bit = WINDOW >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) [re[i], re[j]] = [re[j], re[i]];
  }
  for (let length = 2; length <= WINDOW; length <<= 1) {
    for (let start = 0; start < WINDOW; start += length) {
      for (let k = 0, turn = 0; k < length / 2; k++, turn += WINDOW / length) {
        const a = start + k;
        const b = a + length / 2;
        const tr = re[b] * COS[turn] - im[b] * SIN[turn];
        const ti = re[b] * SIN[turn] + im[b] * COS[turn];
        re[b] = re[a] - tr;
        im[b] = im[a] - ti;
        re[a] += tr;
        im[a] += ti;
      }
    }
  }
  return Float64Array.from({ length: WINDOW / 2 }, (_, at) => re[at] ** 2 + im[at] ** 2);
}
