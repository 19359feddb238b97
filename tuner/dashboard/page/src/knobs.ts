// Knobs against time: one as a chart, two as a heat map. For the results of one task; a dashboard and a report show it.
import type { TrialRecord } from "./api";
import { Chart } from "./chart";
import { el, replace } from "./dom";
import * as words from "./words";

// What it knows of a result.
export type KnobRecord = Pick<TrialRecord, "template" | "config" | "time_ns" | "outcome">;

const kMostCells = 40;

type Knobs = Map<string, (number | string)[]>;  // of one template: its knobs, and their values in order
const inOrder = (values: Set<number | string>): (number | string)[] =>
  [...values].sort((a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));

export function knobsOf(records: KnobRecord[]): Knobs {
  const sets = new Map<string, Set<number | string>>();
  for (const r of records)
    if (typeof r.config === "object")
      for (const [knob, value] of Object.entries(r.config)) {
        if (!sets.has(knob)) sets.set(knob, new Set());
        sets.get(knob)!.add(value);
      }
  return new Map([...sets].filter(([, values]) => values.size > 1).map(([knob, values]) => [knob, inOrder(values)]));
}
const valueOf = (r: KnobRecord, knob: string): number | string | undefined => typeof r.config === "object" ? r.config[knob] : undefined;

function heatMap(records: KnobRecord[], across: string, down: string, knobs: Knobs): HTMLElement {
  const columns = knobs.get(across)!.slice(0, kMostCells), rows = knobs.get(down)!.slice(0, kMostCells);
  const best = new Map<string, number>();
  for (const r of records) {
    if (r.time_ns === null || r.outcome !== "ok") continue;
    const key = JSON.stringify([valueOf(r, across), valueOf(r, down)]);
    best.set(key, Math.min(best.get(key) ?? Infinity, r.time_ns));
  }
  const times = [...best.values()], least = Math.min(...times), most = Math.max(...times);
  const share = (ns: number): number => most > least ? Math.log(ns / least) / Math.log(most / least) : 0;
  return el("div", { class: "wide-box", tabindex: 0, role: "group", "aria-label": `Best time for each pair of ${across} and ${down}` }, el("table", { class: "heat" },
    el("caption", {}, `Best time: ${across} across, ${down} down`),
    el("thead", {}, el("tr", {}, el("td"), ...columns.map(c => el("th", { scope: "col" }, String(c))))),
    el("tbody", {}, ...rows.map(row => el("tr", {}, el("th", { scope: "row" }, String(row)), ...columns.map(column => {
      const ns = best.get(JSON.stringify([column, row]));
      const cell = el("td", {}, words.time(ns));
      // Nine steps of one colour, each with a text colour that can be read on it.
      cell.className = ns === undefined ? "none" : `step${Math.round(8 * (1 - share(ns)))}`;
      return cell;
    }))))));
}

export interface KnobCharts { element: HTMLElement; show(records: KnobRecord[]): void }
export function knobCharts(): KnobCharts {
  const heat = el("div");
  const chart = new Chart(300);
  let records: KnobRecord[] = [], knobs: Knobs = new Map();
  const pick = (label: string): HTMLSelectElement => el("select", { "aria-label": label, change: () => draw() });
  const template = pick("Template"), first = pick("Knob"), second = pick("Second knob");
  template.addEventListener("change", () => fill());

  function own(): KnobRecord[] { return records.filter(r => r.template === template.value); }
  function fill(): void {
    knobs = knobsOf(own());
    const names = [...knobs.keys()];
    const keep = (select: HTMLSelectElement, usual: string | undefined): void => {
      const before = select.value;
      replace(select, ...names.map(n => el("option", { value: n }, n)));
      select.value = names.includes(before) ? before : usual ?? "";
    };
    keep(first, names[0]);
    keep(second, names[1]);
    draw();
  }
  function draw(): void {
    const known = own(), values = knobs.get(first.value);
    if (values === undefined) return replace(heat, el("p", {}, "No knob of this template has two values here."));
    const rows = known.map(r => ({ at: values.indexOf(valueOf(r, first.value) ?? ""), r })).filter(p => p.at >= 0 && p.r.time_ns !== null);
    rows.sort((a, b) => a.at - b.at);
    const best = new Map<number, number>();
    for (const p of rows) if (p.r.outcome === "ok") best.set(p.at, Math.min(best.get(p.at) ?? Infinity, p.r.time_ns!));
    let told = -1;
    chart.label = `${first.value} against time: ${rows.length} results, ${values.length} values`;
    chart.draw(rows.map(p => p.at), [
      { name: "one trial", colour: "mark", values: rows.map(p => p.r.outcome === "ok" ? p.r.time_ns : null), points: true },
      { name: "cut", colour: "bad", values: rows.map(p => p.r.outcome === "ok" ? null : p.r.time_ns), points: true },
      { name: "best of this value", colour: "best", values: rows.map(p => { if (p.at === told) return null; told = p.at; return best.get(p.at) ?? null; }), points: true },
    ], first.value, true, v => Number.isInteger(v) ? String(values[v] ?? "") : "");
    replace(heat, second.value !== "" && second.value !== first.value ? heatMap(known, first.value, second.value, knobs) : null);
  }

  return {
    element: el("div", {}, el("div", { class: "bar" },
      el("label", {}, "Template ", template), el("label", {}, "Knob ", first), el("label", {}, "and ", second)), chart.box, heat),
    show(all) {
      records = all;
      const names = [...new Set(records.map(r => r.template))], before = template.value;
      const of = (name: string): number => records.filter(r => r.template === name).length;
      names.sort((x, y) => of(y) - of(x));
      replace(template, ...names.map(n => el("option", { value: n }, `${n} (${of(n)})`)));
      if (names.includes(before)) template.value = before;
      fill();
    },
  };
}
