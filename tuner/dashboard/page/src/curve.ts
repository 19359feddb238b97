// A job's results as lines of a chart.
import type { Point } from "./api";

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
