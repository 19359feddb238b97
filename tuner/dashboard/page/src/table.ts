// A table of any number of rows, of which only those in sight are drawn. It sorts, filters, and is walked by keys:
// arrows, Page Up, Page Down, Home, End; Enter opens a row.
import { el } from "./dom";

export interface Column<Row> {
  name: string;
  text: (row: Row) => string;
  order: (row: Row) => number | string;
  right?: boolean;
  width?: number;  // in widths of a letter; without it, what the others leave
  // Phones leave out 2 to 4, narrow screens 3 and 4, most screens 4. Filters look at all columns.
  rank?: 1 | 2 | 3 | 4;
}

const kRowPixels = 34, kSpare = 8;

export class Table<Row> {
  readonly box: HTMLDivElement;
  private readonly body = el("tbody");
  private readonly above = el("tr", { class: "gap", "aria-hidden": "true" });
  private readonly below = el("tr", { class: "gap", "aria-hidden": "true" });
  private readonly heads: HTMLTableCellElement[] = [];
  private readonly table: HTMLTableElement;
  private all: { row: Row; text: string }[] = [];
  private shown: Row[] = [];
  private words: string[] = [];
  private sorted: { column: number; down: boolean } | null = null;
  private at = 0;

  constructor(readonly label: string, private readonly columns: Column<Row>[], private readonly open: (row: Row) => void,
              private readonly onCount: (shown: number, all: number) => void) {
    const head = el("tr", { "aria-rowindex": 1 });
    columns.forEach((column, i) => {
      const cell = el("th", { scope: "col", class: this.classes(column) },
                      el("button", { type: "button", click: () => this.sortBy(i) }, column.name));
      if (column.width !== undefined) cell.style.width = `${column.width}ch`;
      this.heads.push(cell);
      head.append(cell);
    });
    this.table = el("table", { "aria-label": label }, el("thead", {}, head), this.body);
    this.box = el("div", { class: "rows", tabindex: 0, role: "group", "aria-label": `${label}; arrow keys walk the rows, Enter opens one` }, this.table);
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.box.addEventListener("keydown", event => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  set rows(rows: Row[]) {
    this.all = rows.map(row => ({ row, text: this.columns.map(c => c.text(row)).join(" ").toLowerCase() }));
    this.choose();
  }

  filter(text: string): void {
    this.words = text.toLowerCase().split(/\s+/).filter(w => w !== "");
    this.at = 0;
    this.box.scrollTop = 0;
    this.choose();
  }

  sortBy(column: number): void {
    const down = this.sorted?.column === column ? !this.sorted.down : false;
    this.sorted = { column, down };
    this.heads.forEach((head, i) => i === column ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    this.choose();
  }

  private classes(column: Column<Row>): string {
    return `rank${column.rank ?? 1}${column.right ? " right" : ""}`;
  }

  private choose(): void {
    const kept = this.all.filter(r => this.words.every(w => r.text.includes(w)));
    if (this.sorted !== null) {
      const { column, down } = this.sorted, order = this.columns[column]!.order;
      const keyed = kept.map(r => ({ row: r.row, key: order(r.row) }));
      keyed.sort((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
      if (down) keyed.reverse();
      this.shown = keyed.map(k => k.row);
    } else {
      this.shown = kept.map(r => r.row);
    }
    this.at = Math.max(0, Math.min(this.at, this.shown.length - 1));
    this.table.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.onCount(this.shown.length, this.all.length);
    this.draw();
  }

  private draw(): void {
    const high = Math.max(this.box.clientHeight, 200);
    const from = Math.max(0, Math.floor(this.box.scrollTop / kRowPixels) - kSpare);
    const to = Math.min(this.shown.length, from + Math.ceil(high / kRowPixels) + 2 * kSpare);
    const rows: HTMLElement[] = [];
    for (let i = from; i < to; ++i) {
      const row = this.shown[i]!;
      const made = el("tr", { "aria-rowindex": i + 2, id: `row${i}`, class: i === this.at ? "here" : "", click: () => { this.at = i; this.open(row); } });
      for (const column of this.columns) {
        const text = column.text(row);
        made.append(el("td", { class: this.classes(column), title: text }, el("div", {}, text)));
      }
      rows.push(made);
    }
    this.above.style.height = `${from * kRowPixels}px`;
    this.below.style.height = `${(this.shown.length - to) * kRowPixels}px`;
    this.body.replaceChildren(this.above, ...rows, this.below);
    // The box keeps the focus, so it is not lost with a row that is drawn anew.
    this.box.setAttribute("aria-activedescendant", `row${this.at}`);
  }

  private key(event: KeyboardEvent): void {
    if (event.target instanceof HTMLButtonElement) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / kRowPixels) - 2);
    const step: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.shown[this.at] !== undefined) return this.open(this.shown[this.at]!);
    const by = step[event.key];
    if (by === undefined || this.shown.length === 0) return;
    event.preventDefault();
    this.at = Math.max(0, Math.min(this.shown.length - 1, this.at + by));
    const top = this.at * kRowPixels, high = this.box.clientHeight - 2 * kRowPixels;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top > this.box.scrollTop + high) this.box.scrollTop = top - high;
    this.draw();
  }
}
