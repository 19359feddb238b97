// One task: its answer, a knob against time, two knobs as a heat map, its races.
import { api, TaskName } from "../api";
import { el, replace, trouble } from "../dom";
import { knobCharts } from "../knobs";
import * as words from "../words";
import { raceBox } from "./race";
import { tuneOn } from "./tune_on";
import type { Page, View } from "./view";

const kMostRecords = 20_000;

// Measures the answer again, or stores its library: work on the server's host.
function work(task: TaskName): HTMLElement {
  const said = el("p", { role: "status", class: "said", id: "work" });
  const tell = (line: string, bad = false): void => { said.textContent = line; said.classList.toggle("trouble", bad); };
  const button = (name: string, doing: string, run: () => Promise<string>): HTMLButtonElement => {
    const made = el("button", { type: "button", click: async () => {
      made.disabled = true;
      tell(doing);
      try { tell(await run()); } catch (error) { tell((error as Error).message, true); } finally { made.disabled = false; }
    } }, name);
    return made;
  };
  return el("div", {}, el("div", { class: "bar" },
    button("Verify again", "measuring in fresh processes ...", async () => {
      const found = await api.verify(task);
      const now = `now ${words.time(found.verified.time_ns)}`;
      if (found.verified.verdict === "cannot tell") return `cannot tell: the machine is too busy; ${now}`;
      return `${found.inside ? "inside" : "outside of"} the published interval: ${now}`;
    }),
    button("Download the library", "building ...", async () => {
      const url = URL.createObjectURL(await api.library(task)), link = el("a", { href: url, download: "kernel.tar.gz" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      return "kernel.tar.gz: a library with a C header";
    })), said);
}

export function taskView(page: Page, task: TaskName): View {
  const head = el("div"), problem = el("div"), drawn = el("div"), races = el("div");
  const knobs = knobCharts(), outcomes = el("dd", { id: "outcomes" });
  let read = -1e9;

  return {
    title: words.workload(task.workload),
    element: el("section", {}, el("p", {}, el("a", { href: "#/answers" }, "All answers")), problem, head,
      page.mayChange ? tuneOn(trials => api.tuneOn(task, trials)) : null, page.mayChange ? work(task) : null, drawn, races),
    async refresh() {
      if (performance.now() - read < 5_000) return;
      read = performance.now();
      try {
        const facts = await api.task(task), a = facts.answer;
        replace(head, el("h1", {}, words.workload(task.workload)),
          el("dl", { class: "facts" },
            el("dt", {}, "Time"), el("dd", {}, words.time(a.time_ns) + (a.certified ? ` (95 %: ${words.time(a.time_low_ns)} .. ${words.time(a.time_high_ns)})` : " in one trial")),
            el("dt", {}, "Certified"), el("dd", {}, a.certified ? "yes" : `no: ${a.uncertified_why ?? ""}`),
            el("dt", {}, "Gain"), el("dd", {}, a.gain === undefined ? "not claimed" : `${words.gain(a.gain)} the speed of the default config (${words.time(a.default_time_ns)})`),
            el("dt", {}, "Roofline"), el("dd", {}, a.roofline_share === undefined ? "-" : `${words.percent(a.roofline_share)} of it (${words.time(a.roofline_ns)})`),
            el("dt", {}, "Trial"), el("dd", {}, `${a.trial}: ${a.template}`),
            el("dt", {}, "Config"), el("dd", { class: "config" }, a.config),
            el("dt", {}, "Outcomes"), outcomes,
            el("dt", {}, "Target"), el("dd", { class: "config" }, task.target)));
        // The facts count what was cut as right; the results, where they are told, know better.
        if (outcomes.textContent === "") outcomes.textContent = words.outcomes(Object.entries(facts.outcomes).flatMap(([kind, n]) => Array<string>(n).fill(kind)));
        const before = races.dataset["races"], now = facts.races.map(r => r.race).join();
        if (before !== now)
          replace(races, facts.races.length === 0 ? null : el("h2", {}, "Races"),
            ...facts.races.map((r, i) => raceBox(r.job, r.race, `Race of job ${r.job}, ${r.certified ? "certified" : "not certified"}`, i === 0)));
        races.dataset["races"] = now;
        replace(problem);
      } catch (error) { replace(problem, trouble(error)); throw error; }
      try {
        const records = await api.records(task, kMostRecords);
        if (drawn.childElementCount === 0 || drawn.querySelector(".trouble") !== null)
          replace(drawn, el("h2", {}, "Knobs against time"), knobs.element);
        knobs.show(records);
        if (records.length < kMostRecords) outcomes.textContent = words.outcomes(records.map(r => r.outcome));
      } catch (error) { replace(drawn, el("h2", {}, "Knobs against time"), trouble(error)); }
    },
  };
}
