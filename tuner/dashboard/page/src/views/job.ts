// One job: its curve while it runs, its tasks, its races.
import { api, Job, Point, taskQuery } from "../api";
import { Chart } from "../chart";
import { el, replace, trouble } from "../dom";
import * as words from "../words";
import type { Page, View } from "./view";
import { raceBox } from "./race";

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

export function jobView(page: Page, id: string): View {
  const points: Point[] = [];
  let next = 0, job: Job | null = null, task = 0, busy = false;
  const head = el("div"), problem = el("div"), tasks = el("div"), races = el("div");
  const chart = new Chart(320);
  const choose = el("select", { "aria-label": "Task of the curve", change: e => { task = Number((e.target as HTMLSelectElement).value); draw(); } });
  const linear = el("input", { type: "checkbox", id: "linear", change: () => draw() });

  function draw(): void {
    const answer = job?.tasks[task]?.answer ?? null;
    const s = series(points, task);
    const level = (ns: number | undefined): (number | null)[] => s.x.map(() => ns ?? null);
    const lines = [{ name: "best so far", colour: "best" as const, values: s.best },
                   { name: "one trial", colour: "mark" as const, values: s.marks, points: true },
                   { name: "failed or cut", colour: "bad" as const, values: s.bad, points: true }];
    chart.draw(s.x, [...lines,
      ...(answer?.default_time_ns ? [{ name: "default config", colour: "default" as const, values: level(answer.default_time_ns), dash: [6, 4] }] : []),
      ...(answer?.roofline_ns ? [{ name: "roofline", colour: "roof" as const, values: level(answer.roofline_ns), dash: [2, 4] }] : []),
    ], "results", !linear.checked);
    const best = s.best.at(-1);
    chart.label = `Best time against results: ${words.time(best)} after ${s.results} results` +
      (answer?.default_time_ns ? `, default config ${words.time(answer.default_time_ns)}` : "") +
      (answer?.roofline_ns ? `, roofline ${words.time(answer.roofline_ns)}` : "");
    chart.box.dataset["results"] = String(s.results);
    chart.box.dataset["best"] = String(best ?? 0);
  }

  function tell(): void {
    if (job === null) return;
    const j = job, running = j.state === "running" || j.state === "queued";
    const cancel = el("button", { type: "button", click: async () => {
      if (!confirm(`Cancel job ${j.job}? Results so far stay.`)) return;
      try { await api.cancel(j.job); } catch (error) { replace(problem, trouble(error)); }
    } }, "Cancel this job");
    const lines = new Map<string, number>();
    for (const p of points) lines.set(p[3], (lines.get(p[3]) ?? 0) + 1);
    replace(head, el("h1", {}, `Job ${j.job}`),
      el("dl", { class: "facts" },
        el("dt", {}, "State"), el("dd", { id: "job-state" }, j.state + (j.message === "" ? "" : `: ${j.message}`)),
        el("dt", {}, "Results"), el("dd", {}, `${j.trials_done} of ${j.trials_total}`),
        el("dt", {}, "Outcomes"), el("dd", {}, [...lines].map(([kind, n]) => `${n} ${words.outcome(kind)}`).join(", ") || "-"),
        el("dt", {}, "Search"), el("dd", {}, `${j.search}, seed ${j.seed}`),
        el("dt", {}, "Submitted"), el("dd", {}, `${words.when(j.submitted)} UTC`)),
      page.mayChange && running ? cancel : null);
    if (choose.childElementCount !== j.tasks.length)
      replace(choose, ...j.tasks.map((t, i) => el("option", { value: i }, `${i + 1}: ${words.task(t.workload)}`)));
    choose.hidden = j.tasks.length < 2;
    replace(tasks, el("h2", {}, "Tasks"), el("ul", { class: "list" }, ...j.tasks.map(t => el("li", {},
      el("a", { href: `#/task?${taskQuery(t)}`, title: t.workload }, words.task(t.workload)),
      el("span", {}, t.answer === null ? "nothing correct yet" :
        `${words.time(t.answer.time_ns)}, ${t.answer.certified ? `certified, gain ${words.gain(t.answer.gain)}` : `not certified: ${t.answer.uncertified_why ?? ""}`}` +
        (t.answer.roofline_share === undefined ? "" : `, ${words.percent(t.answer.roofline_share)} of the roofline`))))));
    if (races.dataset["races"] !== j.races.map(r => r.race).join())
      replace(races, j.races.length === 0 ? null : el("h2", {}, "Races"), ...j.races.map(r => raceBox(j.job, r.race,
        `Task ${r.task + 1}: ${r.finalists} finalists, ${words.time(r.time_ns)}, ${r.certified ? "certified" : "not certified"}`)));
    races.dataset["races"] = j.races.map(r => r.race).join();
  }

  return {
    title: `Job ${id}`,
    element: el("section", {}, el("p", {}, el("a", { href: "#/jobs" }, "All jobs")), problem, head,
      el("div", { class: "bar" }, choose, el("label", { for: "linear" }, linear, " linear scale")), chart.box, races, tasks),
    async refresh() {
      if (busy) return;
      busy = true;
      try {
        for (let more = true; more;) {
          const got = await api.curve(id, next);
          points.push(...got.points);
          next = got.next;
          more = got.more;
        }
        job = await api.job(id);
        replace(problem);
        tell();
        draw();
      } catch (error) { replace(problem, trouble(error)); throw error; } finally { busy = false; }
    },
  };
}
