// Charts by uPlot, in the colours of the page.
import uPlot from "uplot";
import { el } from "./dom";
import * as words from "./words";

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Times of a logarithmic axis: a decade or more is marked at 1, 2, 5; less than that evenly, as one mark says nothing.
const kEven = 5;  // times from the least to the most, below which marks are even
function logRange(_: uPlot, least: number | null, most: number | null): [number, number] {
  if (least === null || most === null || !(least > 0)) return [1, 10];
  const pad = Math.max(1.03, (most / least) ** 0.04);
  return [least / pad, most * pad];
}
function logMarks(_: uPlot, __: number, least: number, most: number): number[] {
  const marks: number[] = [];
  if (most / least < kEven) {
    const rough = (most - least) / 5, unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * ([1, 2, 5, 10].find(f => f * unit >= rough) ?? 10);
    for (let i = Math.ceil(least / step); i * step <= most; ++i) marks.push(i * step);
    return marks;
  }
  for (let unit = 10 ** Math.floor(Math.log10(least)); unit <= most; unit *= 10)
    for (let f = 1; f < 10; ++f) if (f * unit >= least && f * unit <= most) marks.push(f * unit);
  return marks;
}
function logTexts(plot: uPlot, marks: number[]): (number | null)[] {
  const { min, max } = plot.scales["y"]!, times = (max ?? 1) / (min ?? 1);
  const told = times < kEven ? null : times < 1e4 ? [1, 2, 5] : [1];
  return marks.map(v => told === null || told.includes(Math.round(v / 10 ** Math.floor(Math.log10(v * 1.0001)))) ? v : null);
}
const kWhole = [1, 2, 5].flatMap(f => [0, 1, 2, 3, 4, 5, 6].map(e => f * 10 ** e)).sort((a, b) => a - b);  // results, values, finalists: no halves

export interface Line { name: string; colour: "best" | "default" | "roof" | "mark" | "bad"; values: (number | null)[]; points?: boolean; dash?: number[] }

export class Chart {
  readonly box = el("div", { class: "chart", role: "img" });
  private plot: uPlot | null = null;
  private told = "";
  private last: { x: number[]; lines: Line[]; xName: string; log: boolean; xText?: (x: number) => string } | null = null;

  constructor(private readonly height = 300) {
    new ResizeObserver(() => {
      if (this.plot !== null && this.box.clientWidth > 0) this.plot.setSize({ width: this.box.clientWidth, height: this.height });
    }).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      if (this.last !== null) { this.told = ""; this.draw(this.last.x, this.last.lines, this.last.xName, this.last.log, this.last.xText); }
    });
  }

  // The same lines with other values move; other lines are drawn anew. Times in ns.
  draw(x: number[], lines: Line[], xName: string, log: boolean, xText?: (x: number) => string): void {
    this.last = { x, lines, xName, log, xText };
    const kind = JSON.stringify([xName, log, lines.map(l => [l.name, l.colour])]);
    const data = [x, ...lines.map(l => l.values)] as uPlot.AlignedData;
    if (this.plot !== null && kind === this.told) return this.plot.setData(data);
    this.plot?.destroy();
    this.told = kind;
    const axis = { stroke: colour("text"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    this.plot = new uPlot({
      width: Math.max(this.box.clientWidth, 280), height: this.height,
      // Marks at the ends stay whole.
      scales: { x: { time: false, range: (_, least, most) => { const pad = 0.02 * (most - least || 1); return [least - pad, most + pad]; } }, y: log ? { distr: 3, range: logRange } : {} },
      axes: [{ ...axis, label: xName, incrs: kWhole, values: (_, at) => at.map(v => xText ? xText(v) : v < 0 ? "" : String(v)) },
             { ...axis, size: 78, values: (_, at) => at.map(v => v === null ? "" : words.mark(v)), ...(log ? { splits: logMarks, filter: logTexts } : {}) }],
      // Without a mark under the pointer the legend has names alone.
      series: [{ label: xName, value: (_: uPlot, v: number | null) => v === null ? "" : xText ? xText(v) : String(v) },
               ...lines.map(l => ({
                 label: l.name, stroke: colour(l.colour), width: l.points ? 0 : 2, dash: l.dash, spanGaps: !l.points,
                 paths: l.points ? () => null : l.dash ? undefined : uPlot.paths.stepped!({ align: 1 }),
                 points: { show: l.points === true, size: 6, fill: colour(l.colour) },
                 value: (_: uPlot, v: number | null) => v === null ? "" : words.time(v),
               } satisfies uPlot.Series))],
      legend: { live: true },
    }, data, this.box);
  }

  set label(text: string) { this.box.setAttribute("aria-label", text); }
}
