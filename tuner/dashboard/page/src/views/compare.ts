// Two jobs side by side: their curves in one chart, and the tasks of both.
import { api, Job, JobRow, Point, taskQuery } from "../api";
import { Chart } from "../chart";
import { series } from "../curve";
import { el, replace, trouble } from "../dom";
import * as words from "../words";
import type { View } from "./view";

interface Side { job: Job; points: Point[] }
const same = (a: { workload: string; target: string; constants: string }, b: typeof a): boolean =>
  a.workload === b.workload && a.target === b.target && a.constants === b.constants;

async function sideOf(id: string): Promise<Side> {
  const points: Point[] = [];
  for (let next = 0, more = true; more;) {
    const got = await api.curve(id, next);
    points.push(...got.points);
    next = got.next;
    more = got.more;
  }
  return { job: await api.job(id), points };
}

// Both best-so-far curves over one axis: each holds its last value until it changes.
export function together(a: { x: number[]; best: (number | null)[] }, b: typeof a): { x: number[]; first: (number | null)[]; second: (number | null)[] } {
  const x = [...new Set([...a.x, ...b.x])].sort((p, q) => p - q);
  const along = (s: typeof a): (number | null)[] => {
    let at = 0, last: number | null = null;
    const end = s.x.at(-1) ?? 0;
    return x.map(v => {
      while (at < s.x.length && s.x[at]! <= v) last = s.best[at++] ?? last;
      return v > end ? null : last;
    });
  };
  return { x, first: along(a), second: along(b) };
}

// A link to this view, with the jobs that share a task.
export function besideJob(id: string, tasks: { workload: string }[], jobs: JobRow[]): HTMLElement | null {
  const names = new Set(tasks.map(t => t.workload));
  const others = jobs.filter(j => j.job !== id && names.has(j.workload)).slice(0, 100);
  if (others.length === 0) return null;
  const choose = el("select", { "aria-label": "Show beside job" }, ...others.map(j => el("option", { value: j.job }, `${j.job}, ${j.search}`)));
  return el("label", {}, "Side by side with ", choose, " ",
    el("button", { type: "button", id: "compare", click: () => { location.hash = `#/compare/${encodeURIComponent(id)}/${encodeURIComponent(choose.value)}`; } }, "Show"));
}

export function compareView(first: string, second: string): View {
  const problem = el("div"), table = el("div"), chart = new Chart(320);
  let sides: [Side, Side] | null = null, busy = false;
  const choose = el("select", { "aria-label": "Task of the curves", change: () => draw() });

  function draw(): void {
    if (sides === null) return;
    const [a, b] = sides, task = a.job.tasks[Number(choose.value)];
    if (task === undefined) return replace(table, el("p", {}, "The jobs have no task in common."));
    const other = b.job.tasks.findIndex(t => same(t, task));
    const s = together(series(a.points, Number(choose.value)), series(b.points, other));
    chart.draw(s.x, [{ name: `job ${first}`, colour: "best", values: s.first }, { name: `job ${second}`, colour: "default", values: s.second }], "results", true);
    const last = (values: (number | null)[]): string => words.time(values.filter(v => v !== null).at(-1));
    chart.label = `Best time against results: job ${first} ${last(s.first)}, job ${second} ${last(s.second)}`;
  }
  function tell(): void {
    const [a, b] = sides!;
    const common = a.job.tasks.map((task, i) => ({ task, i, other: b.job.tasks.find(t => same(t, task)) })).filter(c => c.other !== undefined);
    if (choose.childElementCount !== common.length)
      replace(choose, ...common.map(c => el("option", { value: c.i }, words.task(c.task.workload))));
    replace(table, el("div", { class: "wide-box", tabindex: 0, role: "group", "aria-label": "Tasks of both jobs" }, el("table", { class: "plain", id: "both" },
      el("thead", {}, el("tr", {}, ...["Task", `Job ${first}`, `Job ${second}`, `${second} / ${first}`].map(h => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...common.map(c => {
        const other = b.job.tasks.indexOf(c.other!);
        return el("tr", {}, el("td", {}, el("a", { href: `#/task?${taskQuery(c.task)}` }, words.task(c.task.workload))),
          el("td", {}, bestOf(a, c.i)), el("td", {}, bestOf(b, other)), el("td", {}, ratioOf(a, c.i, b, other)));
      })))));
    draw();
  }

  return {
    title: `Jobs ${first} and ${second}`,
    element: el("section", {}, el("p", {}, el("a", { href: "#/jobs" }, "All jobs")), el("h1", {}, `Jobs ${first} and ${second}`), problem,
      el("div", { class: "bar" }, choose), chart.box, table),
    async refresh() {
      if (busy) return;
      busy = true;
      try {
        sides = [await sideOf(first), await sideOf(second)];
        replace(problem);
        tell();
      } catch (error) { replace(problem, trouble(error)); throw error; } finally { busy = false; }
    },
  };
}

// The best trial of the job itself: the answer for a task is that of all jobs.
const least = (side: Side, task: number): number | null => series(side.points, task).best.at(-1) ?? null;
const bestOf = (side: Side, task: number): string => words.time(least(side, task));
const ratioOf = (a: Side, task: number, b: Side, other: number): string => {
  const x = least(a, task), y = least(b, other);
  return x && y ? (y / x).toFixed(3) : "-";
};
