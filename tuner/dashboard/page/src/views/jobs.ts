// All jobs, newest first, and a form for a job file.
import { api, JobRow } from "../api";
import { el, replace, trouble } from "../dom";
import { Table } from "../table";
import * as words from "../words";
import type { Page, View } from "./view";

function form(): HTMLElement {
  const said = el("p", { role: "status", class: "said" });
  const text = el("textarea", { rows: 8, spellcheck: "false", "aria-label": "Job file, JSON" });
  const send = el("button", { type: "button", disabled: true }, "Submit");
  let waits: ReturnType<typeof setTimeout> | undefined;
  const tell = (line: string, bad: boolean): void => { said.textContent = line; said.classList.toggle("trouble", bad); };
  text.addEventListener("input", () => {
    clearTimeout(waits);
    send.disabled = true;
    waits = setTimeout(async () => {
      const checked = text.value;
      if (checked.trim() === "") return tell("", false);
      try {
        const found = await api.check(checked);
        if (text.value !== checked) return;
        const tasks = found.jobs.reduce((sum, j) => sum + j.tasks, 0);
        tell(`no mistake found: ${found.jobs.length} job${found.jobs.length === 1 ? "" : "s"}, ${tasks} task${tasks === 1 ? "" : "s"}`, false);
        send.disabled = false;
      } catch (error) { tell((error as Error).message, true); }
    }, 400);
  });
  send.addEventListener("click", async () => {
    send.disabled = true;
    try {
      const made = await api.submit(text.value);
      tell(`submitted: ${made.jobs.map(j => j.job).join(", ")}`, false);
      if (made.jobs.length === 1) location.hash = `#/jobs/${encodeURIComponent(made.jobs[0]!.job)}`;
    } catch (error) { tell((error as Error).message, true); }
  });
  return el("details", {}, el("summary", {}, "Submit a job file"), text, said, send);
}

export function jobsView(page: Page): View {
  const count = el("p", { role: "status", class: "count" });
  const problem = el("div");
  const table = new Table<JobRow>("Jobs", [
    { name: "Job", text: j => j.job, order: j => Number(j.job.replace(/\D/g, "")), width: 8 },
    { name: "State", text: j => j.state, order: j => j.state, width: 12 },
    { name: "Results", text: j => `${j.trials_done} of ${j.trials_total}`, order: j => j.trials_done, right: true, rank: 2, width: 15 },
    { name: "First task", text: j => words.task(j.workload), order: j => j.workload },
    { name: "Tasks", text: j => String(j.task_count), order: j => j.task_count, right: true, rank: 2, width: 9 },
    { name: "Search", text: j => j.search, order: j => j.search, rank: 2, width: 13 },
    { name: "Target", text: j => j.target, order: j => j.target, rank: 4, width: 24 },
    { name: "Submitted (UTC)", text: j => words.when(j.submitted), order: j => j.submitted, rank: 3, width: 20 },
  ], j => { location.hash = `#/jobs/${encodeURIComponent(j.job)}`; },
     (shown, all) => { count.textContent = shown === all ? `${all} jobs` : `${shown} of ${all} jobs`; });
  const search = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter jobs", input: e => table.filter((e.target as HTMLInputElement).value) });
  return {
    title: "Jobs",
    element: el("section", {}, el("h1", {}, "Jobs"), page.mayChange ? form() : null, el("div", { class: "bar" }, search, count), problem, table.box),
    async refresh() {
      try { table.rows = await api.jobs(); replace(problem); } catch (error) { replace(problem, trouble(error)); throw error; }
    },
  };
}
