(() => {
  // From the smallest coefficient to the largest; on dark pages the other way round, so that large always stands out.
  const STOPS = [[255, 252, 245], [254, 217, 160], [245, 148, 86], [210, 73, 88], [120, 28, 109], [24, 10, 44]];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ramp = () => {
    const stops = dark.matches ? [[13, 17, 23], [66, 18, 84], [158, 40, 100], [228, 92, 66], [251, 172, 90], [255, 250, 214]] : STOPS;
    return Array.from({ length: 256 }, (_, k) => {
      const at = (k / 255) * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(at)), part = at - low;
      return stops[low].map((from, c) => Math.round(from + part * (stops[low + 1][c] - from)));
    });
  };
  const css = (root, name) => getComputedStyle(root).getPropertyValue(name).trim();
  const hue = (k, blank) => (k === blank ? "hsl(210 8% 55%)" : `hsl(${(k * 137.5) % 360} ${dark.matches ? "70% 66%" : "68% 42%"})`);
  const digits = (v) => (v < 0.0005 ? "0" : v < 0.1 ? v.toFixed(3) : v.toFixed(2));

  const inflate = async (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  // Rows are stored as differences from the row before.
  const undo = (bytes, width) => {
    for (let k = width; k < bytes.length; k++) bytes[k] = (bytes[k] + bytes[k - width]) & 255;
    return bytes;
  };
  // Shades by rank: most couplings differ by little and a few by much, so that on an even scale most look the same.
  const ranks = (bytes) => {
    const counts = new Float64Array(256);
    for (const byte of bytes) counts[byte]++;
    let below = 0;
    const smaller = counts.map((count) => { below += count; return below - count; });
    const most = Math.max(1, smaller[counts.findLastIndex((count) => count > 0)]);
    return Uint8Array.from(smaller, (n) => Math.min(255, Math.round((255 * n) / most)));
  };
  const unpack = async (data) => {
    data.spectrogram.values = undo(await inflate(data.spectrogram.data), data.spectrogram.bands);
    for (const model of data.models) {
      model.p = undo(await inflate(model.probabilities), model.classes.length);
      for (const layer of model.layers) {
        layer.n_in = layer.in_height * (layer.window[0] + 1 + layer.window[1]);
        layer.size = layer.n_in * layer.n_out;
        layer.q = undo(await inflate(layer.data), layer.size);
        layer.shade = ranks(layer.q);
        layer.table = Float32Array.from({ length: 256 }, (_, k) => (layer.low + (k / 255) * (layer.high - layer.low)) ** 2);
      }
    }
  };

  const sized = (canvas, height) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    return [g, width];
  };
  const image = (width, height, pixel) => {
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const g = canvas.getContext("2d"), data = g.createImageData(width, height);
    for (let y = 0, k = 0; y < height; y++)
      for (let x = 0; x < width; x++, k += 4) {
        const [r, green, b] = pixel(x, y);
        data.data[k] = r; data.data[k + 1] = green; data.data[k + 2] = b; data.data[k + 3] = 255;
      }
    g.putImageData(data, 0, 0);
    return canvas;
  };

  const start = async (root) => {
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const find = (name) => root.querySelector(name);
    if (typeof DecompressionStream === "undefined") {
      find(".note").textContent = "This browser is too old to unpack the data of this page (it lacks DecompressionStream).";
      return;
    }
    await unpack(data);
    const state = { model: data.models[0], layer: data.models[0].layers.length - 1, time: 0, from: 0, colors: ramp() };
    const GUTTER = 46;
    const slider = find("input"), output = find("output"), play = find(".play"), tip = find(".tip");
    const sound = find("audio"), line = find(".time canvas"), head = find(".head"), map = find(".map canvas");
    const slice = () => {
      const m = state.model;
      return Math.max(0, Math.min(m.n_slices - 1, Math.floor((state.time - m.first_s) / m.slice_s + 0.5)));
    };
    const labelAt = (time) => {
      const label = data.reference.find(([from, to]) => from <= time && time < to) || data.reference.filter(([, to]) => to <= time).pop();
      return label ? label[2] : null;
    };
    const p = (t, k) => (state.model.p[t * state.model.classes.length + k] / 255) ** 2;
    const masses = (layer, t) => {
      const sums = new Float32Array(layer.n_out), q = layer.q, table = layer.table;
      for (let i = 0, k = t * layer.size; i < layer.n_in; i++) for (let j = 0; j < layer.n_out; j++, k++) sums[j] += table[q[k]];
      // Labels that training does not have: nothing constrains what is routed to them.
      if (layer === state.model.layers[state.model.layers.length - 1]) for (const j of state.model.unused) sums[j] = 0;
      return sums;
    };
    // A long utterance is shown in part, so that its labels stay readable; the part follows the time.
    const span = () => Math.min(data.duration_s, Math.max(0.5, (line.clientWidth - GUTTER) / 180));
    const across = (time, width) => GUTTER + ((time - state.from) / span()) * (width - GUTTER - 4);
    const when = (x, width) => Math.max(0, Math.min(data.duration_s, state.from + ((x - GUTTER) / (width - GUTTER - 4)) * span()));
    const follow = (held) => {
      const from = Math.max(0, Math.min(state.from, data.duration_s - span()));
      const isOut = state.time < from || state.time > from + span();
      const next = isOut && !held ? Math.max(0, Math.min(state.time - 0.1 * span(), data.duration_s - span())) : from;
      if (next !== state.from) { state.from = next; drawLine(); }
    };

    const SPECTRUM = 112, CURVES = 112, STRIP = 22, HEIGHT = SPECTRUM + CURVES + (data.reference.length ? 3 : 2) * STRIP + 26;
    const strip = (g, y, name, boxes, color, width) => {
      g.fillStyle = css(root, "--faint");
      g.textAlign = "right";
      g.fillText(name, GUTTER - 6, y + STRIP / 2);
      g.textAlign = "center";
      for (const [from, to, text, shade] of boxes) {
        const x = Math.max(GUTTER, across(from, width)), wide = Math.min(width - 4, across(to, width)) - x;
        if (wide <= 0) continue;
        g.fillStyle = shade || color;
        g.globalAlpha = 0.16;
        g.fillRect(x, y + 2, Math.max(1, wide - 1), STRIP - 4);
        g.globalAlpha = 1;
        if (g.measureText(text).width < wide - 1) g.fillText(text, x + wide / 2, y + STRIP / 2 + 0.5);
      }
    };
    const runs = (classes, shade) => {
      const m = state.model, boxes = [];
      for (let t = 0; t < classes.length; t++) {
        const from = m.first_s + (t - 0.5) * m.slice_s, last = boxes[boxes.length - 1];
        if (classes[t] === m.classes.length - 1 && !shade) continue;
        const color = shade ? shade(t) : hue(classes[t], -1);
        if (last && last[4] === t - 1 && last[5] === classes[t] && last[3] === color) [last[1], last[4]] = [from + m.slice_s, t];
        else boxes.push([Math.max(0, from), Math.min(data.duration_s, from + m.slice_s), m.classes[classes[t]], color, t, classes[t]]);
      }
      return boxes;
    };
    const drawLine = () => {
      const [g, width] = sized(line, HEIGHT), m = state.model, s = data.spectrogram;
      const n_frames = s.values.length / s.bands;
      const picture = image(Math.max(1, n_frames), s.bands, (x, y) => state.colors[s.values[x * s.bands + s.bands - 1 - y]]);
      g.save();
      g.beginPath(); g.rect(GUTTER, 0, width - GUTTER - 4, HEIGHT); g.clip();
      const end_s = Math.min(data.duration_s, n_frames * s.shift_s + 0.015);
      g.drawImage(picture, across(0, width), 4, across(end_s, width) - across(0, width), SPECTRUM - 8);
      g.restore();
      g.fillStyle = css(root, "--faint");
      g.textAlign = "right";
      g.fillText("high", GUTTER - 6, 12);
      g.fillText("low", GUTTER - 6, SPECTRUM - 12);
      const top = SPECTRUM + 6, up = (v) => top + (1 - v) * (CURVES - 12);
      for (const v of [0, 0.5, 1]) {
        g.strokeStyle = css(root, "--line");
        g.beginPath(); g.moveTo(GUTTER, up(v)); g.lineTo(width - 4, up(v)); g.stroke();
        g.fillText(String(v), GUTTER - 6, up(v));
      }
      const blank = m.classes.length - 1;
      g.save();
      g.beginPath(); g.rect(GUTTER, 0, width - GUTTER - 4, HEIGHT); g.clip();
      for (let k = 0; k <= blank; k++) {
        let peak = 0;
        for (let t = 0; t < m.n_slices; t++) peak = Math.max(peak, p(t, k));
        if (peak < 0.1) continue;
        g.strokeStyle = hue(k, blank);
        g.lineWidth = k === blank ? 1 : 1.7;
        g.beginPath();
        for (let t = 0; t < m.n_slices; t++) g.lineTo(across(m.first_s + t * m.slice_s, width), up(p(t, k)));
        g.stroke();
      }
      g.restore();
      let y = SPECTRUM + CURVES + 4;
      if (data.reference.length) { strip(g, y, "ref.", data.reference, css(root, "--reference"), width); y += STRIP; }
      strip(g, y, "label", runs(m.most_probable), css(root, "--extra"), width); y += STRIP;
      const ink = css(root, "--faint"), off = css(root, "--wrong");
      strip(g, y, "Σ c", runs(m.most_coupled, (t) => (m.most_coupled[t] === m.most_probable[t] ? ink : off)), ink, width); y += STRIP + 4;
      g.fillStyle = ink;
      const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20].find((v) => (v / span()) * (width - GUTTER) > 44) || 60;
      for (let k = Math.ceil(state.from / step - 1e-6); k * step <= state.from + span(); k++) {
        const x = across(k * step, width);
        g.textAlign = x < GUTTER + 12 ? "left" : "center";
        if (x < width - 18) g.fillText(`${+(k * step).toFixed(1)} s`, x, y + 8);
      }
    };

    const cells = (layer, t) => image(layer.n_out, layer.n_in, (x, y) => state.colors[layer.shade[layer.q[t * layer.size + y * layer.n_out + x]]]);
    const drawThumbs = (t) => root.querySelectorAll(".layers canvas").forEach((canvas, k) => {
      const layer = state.model.layers[k], picture = cells(layer, t);
      [canvas.width, canvas.height] = [picture.width, picture.height];
      canvas.getContext("2d").drawImage(picture, 0, 0);
    });
    const BARS = 84;
    const isLast = () => state.layer === state.model.layers.length - 1;
    const place = () => {
      const layer = state.model.layers[state.layer], height = Math.max(150, Math.min(400, layer.n_in * 6));
      return { layer, height, width: map.clientWidth - GUTTER - 4 };
    };
    // Room for the longest name under the bars.
    const names = () => {
      const g = map.getContext("2d"), all = isLast() ? state.model.classes : [String(state.model.layers[state.layer].n_out)];
      g.font = "12px system-ui, sans-serif";
      return 12 + Math.min(110, Math.max(...all.map((name) => g.measureText(name).width)));
    };
    const drawMap = (t) => {
      const { layer, height } = place(), [g, full] = sized(map, height + BARS + names()), width = full - GUTTER - 4;
      g.imageSmoothingEnabled = false;
      g.drawImage(cells(layer, t), GUTTER, 0, width, height);
      g.strokeStyle = css(root, "--line");
      g.strokeRect(GUTTER, 0, width, height);
      const soft = css(root, "--faint"), n_parts = layer.window[0] + 1 + layer.window[1];
      g.textAlign = "right";
      for (let part = 0; part < n_parts; part++) {
        const y = (height * part) / n_parts, offset = part - layer.window[0];
        g.fillStyle = soft;
        const name = n_parts === 1 ? "capsule" : offset === 0 ? "t" : offset < 0 ? `t−${-offset}` : `t+${offset}`;
        g.fillText(name, GUTTER - 5, y + height / n_parts / 2);
        if (part) { g.beginPath(); g.moveTo(8, y); g.lineTo(full - 4, y); g.stroke(); }
      }
      const sums = masses(layer, t), most = Math.max(...sums, 1e-9), column = width / layer.n_out, floor = height + BARS;
      const m = state.model, reference = isLast() ? m.classes.indexOf(labelAt(state.time)) : -1, likely = isLast() ? m.most_probable[t] : -1;
      const [bar, right, blue, ink] = ["--bar", "--reference", "--extra", "--text"].map((name) => css(root, name));
      const color = (j, other) => (j === reference ? right : j === likely ? blue : other);
      sums.forEach((v, j) => {
        g.fillStyle = color(j, bar);
        const tall = (v / most) * (BARS - 18);
        g.fillRect(GUTTER + column * j + column * 0.1, floor - tall, Math.max(0.7, column * 0.8), tall);
      });
      g.fillStyle = soft;
      g.fillText("Σ c", GUTTER - 5, floor - BARS / 2 + 8);
      g.fillText(digits(most), GUTTER - 5, floor - BARS + 20);
      g.beginPath(); g.moveTo(GUTTER, floor + 0.5); g.lineTo(full - 4, floor + 0.5); g.stroke();
      const order = [...sums.keys()].sort((a, b) => sums[b] - sums[a]), kept = [];
      if (likely >= 0) order.unshift(likely);
      if (reference >= 0) order.unshift(reference);
      const apart = Math.ceil(13 / column);
      for (const j of order) if (kept.every((other) => Math.abs(other - j) >= apart)) kept.push(j);
      for (const j of kept) {
        g.save();
        g.translate(GUTTER + column * (j + 0.5), floor + 6);
        g.rotate(-Math.PI / 2);
        g.fillStyle = color(j, ink);
        g.fillText(isLast() ? m.classes[j] : String(j), 0, 0);
        g.restore();
      }
    };
    const list = (box, values, names, reference, whole) => {
      const order = [...values.keys()].sort((a, b) => values[b] - values[a]).slice(0, 7), most = whole || Math.max(values[order[0]], 1e-9);
      box.replaceChildren(...order.map((k, row) => {
        const item = document.createElement("div");
        item.className = `row${row ? "" : " first"}${names[k] === reference ? " reference" : ""}`;
        const [name, track, value] = ["b", "span", "em"].map((tag) => item.appendChild(document.createElement(tag)));
        name.textContent = names[k];
        value.textContent = digits(values[k]);
        track.appendChild(document.createElement("i")).style.width = `${(100 * values[k]) / most}%`;
        return item;
      }));
    };
    const draw = (held = false) => {
      follow(held);
      const t = slice(), m = state.model;
      slider.value = t;
      output.textContent = `${state.time.toFixed(2)} s · slice ${t}`;
      head.style.left = `${across(state.time, line.clientWidth)}px`;
      drawThumbs(t);
      drawMap(t);
      const reference = labelAt(state.time), last = m.layers[m.layers.length - 1];
      list(find(".coupled"), masses(last, t), m.classes, reference);
      list(find(".softmax"), Float32Array.from(m.classes, (_, k) => p(t, k)), m.classes, reference, 1);
    };
    const choose = (k) => {
      state.layer = k;
      const layer = state.model.layers[k], stops = Array.from({ length: 9 }, (_, n) => `rgb(${state.colors[n * 31]})`);
      root.querySelectorAll(".layers button").forEach((button, at) => button.setAttribute("aria-pressed", at === k));
      const about = `${layer.n_in} capsules routed to ${layer.n_out} ${isLast() ? "classes" : "capsules"}; each row sums to 1. Shades are ranks: c from ${digits(layer.low ** 2)}`;
      const key = document.createElement("span");
      key.className = "key";
      key.style.background = `linear-gradient(to right, ${stops})`;
      const unused = isLast() && state.model.unused.length ? `. Left out of the sums, because training has no such label: ${state.model.unused.map((j) => state.model.classes[j]).join(", ")}` : "";
      find(".about").replaceChildren(about, key, `to ${digits(layer.high ** 2)}${unused}`);
    };
    const layers = () => {
      find(".layers").replaceChildren(...state.model.layers.map((layer, k) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(document.createElement("canvas"), `layer ${k + 1}${k === state.model.layers.length - 1 ? ", classes" : ""}`);
        button.onclick = () => { choose(k); draw(); };
        return button;
      }));
      choose(Math.min(state.layer, state.model.layers.length - 1));
    };
    const all = () => { state.colors = ramp(); state.from = -1; layers(); draw(); };

    const models = find(".models");
    data.models.forEach((model, k) => models.add(new Option(model.name, k)));
    models.hidden = data.models.length < 2;
    models.onchange = () => { state.model = data.models[models.value]; state.layer = state.model.layers.length - 1; times(); all(); };
    const times = () => { slider.min = 0; slider.max = state.model.n_slices - 1; slider.step = 1; };
    slider.oninput = () => {
      state.time = Math.min(data.duration_s, state.model.first_s + slider.value * state.model.slice_s);
      if (sound) sound.currentTime = state.time;
      draw();
    };

    let running = false, before = 0;
    const speed = find(".speed");
    const stop = () => { running = false; play.textContent = "▶ Play"; if (sound) sound.pause(); };
    const tick = (now) => {
      if (!running) return;
      if (sound) state.time = Math.min(sound.currentTime, data.duration_s);
      else state.time += ((now - before) / 1000) * +speed.value;
      before = now;
      if (state.time >= data.duration_s || (sound && sound.ended)) { state.time = data.duration_s; stop(); }
      draw();
      requestAnimationFrame(tick);
    };
    play.onclick = () => {
      if (running) return stop();
      if (state.time >= data.duration_s - 0.02) state.time = 0;
      running = true;
      play.textContent = "❚❚ Stop";
      before = performance.now();
      if (sound) { sound.playbackRate = +speed.value; sound.currentTime = state.time; sound.play().catch(stop); }
      requestAnimationFrame(tick);
    };
    speed.onchange = () => { if (sound) sound.playbackRate = +speed.value; };

    const say = (event, text) => {
      const box = root.getBoundingClientRect();
      tip.textContent = text;
      tip.style.visibility = text ? "visible" : "hidden";
      const x = event.clientX - box.left, y = event.clientY - box.top;
      tip.style.left = `${Math.max(0, Math.min(x + 14, root.clientWidth - tip.offsetWidth - 4))}px`;
      tip.style.top = `${y + 18}px`;
    };
    const overLine = (event) => {
      const box = line.getBoundingClientRect(), time = when(event.clientX - box.left, box.width), m = state.model;
      if (event.buttons) { state.time = time; if (sound) sound.currentTime = time; draw(true); }
      const t = Math.max(0, Math.min(m.n_slices - 1, Math.floor((time - m.first_s) / m.slice_s + 0.5))), reference = labelAt(time);
      const lines = [`${time.toFixed(2)} s, slice ${t}`, `most probable ${m.classes[m.most_probable[t]]} (${digits(p(t, m.most_probable[t]))})`, `most coupled ${m.classes[m.most_coupled[t]]}`];
      if (reference) lines.splice(1, 0, `reference ${reference}`);
      say(event, lines.join("\n"));
    };
    line.onpointerdown = (event) => { line.setPointerCapture(event.pointerId); overLine(event); };
    line.onpointermove = overLine;
    map.onpointermove = map.onpointerdown = (event) => {
      const box = map.getBoundingClientRect(), { layer, height, width } = place(), t = slice(), m = state.model;
      const j = Math.floor(((event.clientX - box.left - GUTTER) / width) * layer.n_out), y = event.clientY - box.top;
      if (j < 0 || j >= layer.n_out || y < 0) return say(event, "");
      const to = isLast() ? m.classes[j] : `capsule ${j}`;
      if (y >= height) return say(event, `Σ c to ${to}: ${digits(masses(layer, t)[j])}`);
      const i = Math.floor((y / height) * layer.n_in), offset = Math.floor(i / layer.in_height) - layer.window[0];
      const from = `capsule ${i % layer.in_height}${offset ? ` of slice ${t + offset}` : ""}`;
      say(event, `${from} → ${to}\nc = ${layer.table[layer.q[t * layer.size + i * layer.n_out + j]].toFixed(4)}`);
    };
    line.onpointerleave = map.onpointerleave = (event) => say(event, "");
    dark.addEventListener("change", all);
    new ResizeObserver(() => { state.from = -1; draw(); }).observe(root);
    find(".note").remove();
    state.time = data.start_s;
    times();
    all();
  };
  for (const root of document.querySelectorAll(".routing:not([data-ready])")) {
    root.dataset.ready = "";
    start(root).catch((error) => { root.querySelector(".note").textContent = `This page could not be shown: ${error}`; });
  }
})();
