// A race: the samples of each finalist beside each other.
import { api } from "../api";
import { el, replace, trouble } from "../dom";
import { raceSamples } from "../race_samples";

export function raceBox(job: string, id: number, summary: string, open = false): HTMLElement {
  const inside = el("div");
  let loaded = false;
  const load = async (): Promise<void> => {
    if (loaded) return;
    loaded = true;
    try { raceSamples(inside, await api.race(job, id)); } catch (error) { loaded = false; replace(inside, trouble(error)); }
  };
  const box = el("details", { class: "race", toggle: () => { if (box.open) void load(); } }, el("summary", {}, summary), inside);
  if (open) box.open = true;
  return box;
}
