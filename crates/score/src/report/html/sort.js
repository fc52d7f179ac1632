for (const head of document.querySelectorAll("table.sortable th")) {
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const column = head.cellIndex;
    const descending = head.dataset.order !== "descending";
    head.dataset.order = descending ? "descending" : "ascending";
    const text = (row) => row.cells[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [parseFloat(text(a)), parseFloat(text(b))];
      return Number.isNaN(x) || Number.isNaN(y) ? text(a).localeCompare(text(b)) : x - y;
    };
    const rows = [...body.rows].sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
    body.append(...rows);
  });
}
