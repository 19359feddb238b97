// The samples of a race: those of each finalist beside each other, and a table of the finalists.
import type { Race } from "./api";
import { Chart } from "./chart";
import { el, replace } from "./dom";
import * as words from "./words";

export function raceSamples(box: HTMLElement, race: Pick<Race, "finalists">): void {
  const chart = new Chart(260);
  const x: number[] = [], times: (number | null)[] = [], middle: (number | null)[] = [];
  race.finalists.forEach((f, i) => {
    const processes = Math.max(1, ...f.process.map(p => p + 1));
    // Samples of one process stand above each other, processes side by side.
    const rows = f.samples_ns.map((ns, s): [number, number | null, number | null] => [i + 0.7 + 0.6 * ((f.process[s] ?? 0) + 0.5) / processes, ns, null]);
    rows.push([i + 1, null, f.time_ns]);
    rows.sort((a, b) => a[0] - b[0]);
    for (const [at, ns, mid] of rows) { x.push(at); times.push(ns); middle.push(mid); }
  });
  replace(box, chart.box, el("table", { class: "plain" },
    el("thead", {}, el("tr", {}, ...["", "Trial", "Time", "95 %", "Config"].map(h => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...race.finalists.map((f, i) => el("tr", {},
      el("td", {}, String(i + 1)), el("td", {}, f.name + (f.winner ? ", winner" : "") + (f.default ? ", default" : "")),
      el("td", {}, words.time(f.time_ns)), el("td", {}, `${words.time(f.time_low_ns)} .. ${words.time(f.time_high_ns)}`),
      el("td", { class: "config" }, `${f.template} ${f.config}`))))));
  const samples = race.finalists.reduce((n, f) => n + f.samples_ns.length, 0);
  chart.label = `Samples of ${race.finalists.length} finalists: ${samples}`;
  chart.draw(x, [{ name: "one sample", colour: "mark", values: times, points: true },
                 { name: "its time in the race", colour: "best", values: middle, points: true }], "finalist", false,
             v => Number.isInteger(v) && v >= 1 && v <= race.finalists.length ? String(v) : "");
}
