{
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const nearest = (points, x) =>
    points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));

  const line = (text, color) => {
    const row = document.createElement("div");
    if (color) {
      const dot = document.createElement("i");
      dot.style.background = color;
      row.append(dot);
    }
    row.append(text);
    return row;
  };

  const place = (event) => {
    const { clientWidth } = document.documentElement;
    const left = event.clientX + 14;
    const fits = left + tip.offsetWidth + 8 < clientWidth;
    tip.style.left = `${window.scrollX + Math.max(4, fits ? left : event.clientX - 14 - tip.offsetWidth)}px`;
    tip.style.top = `${window.scrollY + event.clientY + 14}px`;
  };

  for (const picture of document.querySelectorAll("svg[data-values]")) {
    const values = JSON.parse(picture.dataset.values);
    const cursor = picture.querySelector(".cursor");
    const all = values.series.flatMap((series) => series.points);
    const show = (event) => {
      const box = picture.getBoundingClientRect();
      const [x, at] = nearest(all, ((event.clientX - box.left) / box.width) * values.width);
      for (const [name, value] of [["x1", x], ["x2", x], ["y1", values.top], ["y2", values.bottom]]) {
        cursor.setAttribute(name, value);
      }
      cursor.style.visibility = "visible";
      const rows = values.series
        .map((series) => [series, series.points.find((point) => point[0] === x)])
        .filter(([, point]) => point)
        .map(([series, point]) => line(`${series.name} ${point[2]}`, series.color));
      tip.replaceChildren(line(`${values.x} ${at}`), ...rows);
      tip.hidden = false;
      place(event);
    };
    const hide = () => {
      cursor.style.visibility = "hidden";
      tip.hidden = true;
    };
    picture.addEventListener("pointermove", show);
    picture.addEventListener("pointerdown", show);
    picture.addEventListener("pointerleave", hide);
  }
}
