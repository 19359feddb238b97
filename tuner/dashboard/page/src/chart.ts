// Charts by uPlot, in the colours of the page.
import uPlot from "uplot";
import { el } from "./dom";
import * as words from "./words";

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

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
      scales: { x: { time: false, range: (_, least, most) => { const pad = 0.02 * (most - least || 1); return [least - pad, most + pad]; } }, y: log ? { distr: 3 } : {} },
      axes: [{ ...axis, label: xName, values: (_, at) => at.map(v => xText ? xText(v) : v < 0 ? "" : String(v)) },
             { ...axis, size: 78, values: (_, at) => at.map(v => v === null ? "" : words.time(v)) }],
      series: [{ label: xName },
               ...lines.map(l => ({
                 label: l.name, stroke: colour(l.colour), width: l.points ? 0 : 2, dash: l.dash, spanGaps: !l.points,
                 paths: l.points ? () => null : l.dash ? undefined : uPlot.paths.stepped!({ align: 1 }),
                 points: { show: l.points === true, size: 6, fill: colour(l.colour) },
                 value: (_: uPlot, v: number | null) => words.time(v),
               } satisfies uPlot.Series))],
      legend: { live: true },
    }, data, this.box);
  }

  set label(text: string) { this.box.setAttribute("aria-label", text); }
}
