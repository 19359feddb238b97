// Goes on with a task, or with a job, for some more trials: its page is then shown.
import type { Submitted } from "../api";
import { el } from "../dom";

export function tuneOn(submit: (trials: number) => Promise<Submitted>): HTMLElement {
  const trials = el("input", { type: "number", min: 1, max: 1_000_000, value: 256, "aria-label": "More trials per task", id: "trials" });
  const said = el("span", { role: "status", class: "said" });
  const go = el("button", { type: "button", click: async () => {
    go.disabled = true;
    said.classList.remove("trouble");
    try {
      const job = (await submit(Number(trials.value))).jobs[0]!.job;
      said.textContent = `job ${job} goes on`;
      location.hash = `#/jobs/${encodeURIComponent(job)}`;
    } catch (error) {
      said.textContent = (error as Error).message;
      said.classList.add("trouble");
    } finally { go.disabled = false; }
  } }, "Tune on");
  return el("div", { class: "bar" }, go, el("label", { for: "trials" }, "for "), trials, " more trials per task ", said);
}
