// One job: its curve while it runs, its tasks, its races.
import { api, Job, Point, taskQuery } from "../api";
import { Chart } from "../chart";
import { drawCurve } from "../curve";
import { el, replace, trouble } from "../dom";
import * as words from "../words";
import type { Page, View } from "./view";
import { besideJob } from "./compare";
import { raceBox } from "./race";
import { tuneOn } from "./tune_on";

// The layers of a model: what each task adds to one run, the largest first.
export function layersOf(job: Job): { task: Job["tasks"][number]; ns: number; share: number }[] {
  const known = job.tasks.map(task => ({ task, ns: (task.answer?.time_ns ?? 0) * task.uses }));
  const sum = known.reduce((s, l) => s + l.ns, 0);
  return known.map(l => ({ ...l, share: sum > 0 ? l.ns / sum : 0 })).sort((a, b) => b.ns - a.ns);
}

function layersTable(job: Job): HTMLElement {
  const layers = layersOf(job), sum = layers.reduce((s, l) => s + l.ns, 0);
  return el("details", { class: "layers" }, el("summary", {}, `Layers: ${words.time(sum)} per run of the model, by the best times so far`),
    el("div", { class: "wide-box", tabindex: 0, role: "group", "aria-label": "Layers by time" }, el("table", { class: "plain" },
      el("thead", {}, el("tr", {}, ...["Layer", "Uses", "Time of one", "Time of all", "Share", ""].map(h => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...layers.map(l => el("tr", {},
        el("td", {}, el("a", { href: `#/task?${taskQuery(l.task)}`, title: l.task.workload }, words.task(l.task.workload))),
        ...[String(l.task.uses), words.time(l.task.answer?.time_ns), words.time(l.ns), words.percent(l.share)].map(text => el("td", {}, text)),
        el("td", {}, el("meter", { min: 0, max: 1, value: l.share, "aria-label": words.percent(l.share) }))))))));
}

export function jobView(page: Page, id: string): View {
  const points: Point[] = [];
  let next = 0, job: Job | null = null, task = 0, busy = false;
  const head = el("div"), problem = el("div"), tasks = el("div"), races = el("div"), others = el("div"), layers = el("div");
  const on = page.mayChange ? tuneOn(trials => api.tuneJobOn(id, trials)) : el("div");
  const chart = new Chart(320);
  const choose = el("select", { "aria-label": "Task of the curve", change: e => { task = Number((e.target as HTMLSelectElement).value); draw(); } });
  const linear = el("input", { type: "checkbox", id: "linear", change: () => draw() });

  function draw(): void {
    drawCurve(chart, points, task, job?.tasks[task]?.answer ?? {}, !linear.checked);
  }

  function tell(): void {
    if (job === null) return;
    const j = job, running = j.state === "running" || j.state === "queued";
    const cancel = el("button", { type: "button", click: async () => {
      if (!confirm(`Cancel job ${j.job}? Results so far stay.`)) return;
      try { await api.cancel(j.job); } catch (error) { replace(problem, trouble(error)); }
    } }, "Cancel this job");
    replace(head, el("h1", {}, `Job ${j.job}`),
      el("dl", { class: "facts" },
        el("dt", {}, "State"), el("dd", { id: "job-state" }, j.state + (j.message === "" ? "" : `: ${j.message}`)),
        el("dt", {}, "Results"), el("dd", {}, `${j.trials_done} of ${j.trials_total}`),
        el("dt", {}, "Outcomes"), el("dd", {}, words.outcomes(points.map(p => p[3]))),
        el("dt", {}, "Search"), el("dd", {}, `${j.search}, seed ${j.seed}`),
        el("dt", {}, "Submitted"), el("dd", {}, `${words.when(j.submitted)} UTC`)),
      page.mayChange && running ? cancel : null);
    if (choose.childElementCount !== j.tasks.length)
      replace(choose, ...j.tasks.map((t, i) => el("option", { value: i }, `${i + 1}: ${words.task(t.workload)}`)));
    choose.hidden = j.tasks.length < 2;
    on.hidden = running;
    // What a person has opened stays open.
    const opened = layers.querySelector("details")?.open ?? false;
    replace(layers, j.tasks.length > 1 && j.tasks.some(t => t.answer !== null) ? layersTable(j) : null);
    if (opened) layers.querySelector("details")!.open = true;
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
      el("div", { class: "bar" }, choose, el("label", { for: "linear" }, linear, " linear scale")), chart.box, on, others, layers, races, tasks),
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
        if (others.childElementCount === 0) replace(others, besideJob(id, job.tasks, await api.jobs()));
        replace(problem);
        tell();
        draw();
      } catch (error) { replace(problem, trouble(error)); throw error; } finally { busy = false; }
    },
  };
}
