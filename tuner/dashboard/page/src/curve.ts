// A job's results as lines of a chart.
import type { Answer, Point } from "./api";
import type { Chart } from "./chart";
import * as words from "./words";

const kMostDrawn = 4000;  // marks of one chart; the curve itself keeps every step

// Marks of a task's results, thinned where there are very many, and the best time so far.
export function series(points: Point[], task: number): { x: number[]; best: (number | null)[]; marks: (number | null)[]; bad: (number | null)[]; results: number } {
  const own = points.filter(p => p[1] === task);
  const x: number[] = [], best: (number | null)[] = [], marks: (number | null)[] = [], bad: (number | null)[] = [];
  const step = Math.max(1, Math.ceil(own.length / kMostDrawn));
  let least: number | null = null, worst = 0;
  own.forEach((p, i) => {
    const right = p[2] !== null && (p[3] === "ok" || p[3] === "best");
    const better = right && (least === null || p[2]! < least);
    if (better) least = p[2];
    worst = Math.max(worst, p[2] ?? 0);
    if (!better && i % step !== 0 && i + 1 !== own.length) return;
    x.push(p[5] ?? i + 1);
    best.push(least);
    marks.push(right && p[3] === "ok" ? p[2] : null);
    bad.push(right ? null : p[2] ?? -1);
  });
  // What failed has no time: it stands at the upper edge.
  return { x, best, marks, bad: bad.map(v => v === -1 ? worst || null : v), results: own.length };
}

// Best time, single results, and the levels that they are held against.
export function drawCurve(chart: Chart, points: Point[], task: number, levels: Partial<Answer>, log: boolean): void {
  const s = series(points, task);
  const level = (ns: number | undefined): (number | null)[] => s.x.map(() => ns ?? null);
  const lines = [{ name: "best so far", colour: "best" as const, values: s.best },
                 { name: "one trial", colour: "mark" as const, values: s.marks, points: true },
                 { name: "failed or cut", colour: "bad" as const, values: s.bad, points: true }];
  chart.draw(s.x, [...lines,
    ...(levels.default_time_ns ? [{ name: "default config", colour: "default" as const, values: level(levels.default_time_ns), dash: [6, 4] }] : []),
    ...(levels.roofline_ns ? [{ name: "roofline", colour: "roof" as const, values: level(levels.roofline_ns), dash: [2, 4] }] : []),
  ], "results", log);
  const best = s.best.at(-1);
  chart.label = `Best time against results: ${words.time(best)} after ${s.results} results` +
    (levels.default_time_ns ? `, default config ${words.time(levels.default_time_ns)}` : "") +
    (levels.roofline_ns ? `, roofline ${words.time(levels.roofline_ns)}` : "");
  chart.box.dataset["results"] = String(s.results);
  chart.box.dataset["best"] = String(best ?? 0);
}
