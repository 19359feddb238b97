// Figures for people.

const fixed = (x: number): string => (x >= 100 ? x.toFixed(1) : x >= 10 ? x.toFixed(2) : x.toFixed(3));
export function time(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !(ns > 0)) return "-";
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]] as const) if (ns >= size) return `${fixed(ns / size)} ${unit}`;
  return `${fixed(ns)} ns`;
}
// A mark of an axis: "20 us", "1.5 ms".
export const mark = (ns: number): string => time(ns).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
export const percent = (share: number | undefined): string => (share === undefined ? "-" : `${(100 * share).toFixed(0)} %`);
export const gain = (x: number | undefined): string => (x === undefined ? "-" : `${x.toFixed(2)}x`);
export const when = (iso: string): string => iso.slice(0, 16).replace("T", " ");
export const outcome = (name: string): string => name.replaceAll("_", " ");
// "14 ok, 2 cut", of what each result was.
export function outcomes(kinds: Iterable<string>): string {
  const numbers = new Map<string, number>();
  for (const kind of kinds) numbers.set(kind, (numbers.get(kind) ?? 0) + 1);
  return [...numbers].map(([kind, n]) => `${n} ${outcome(kind)}`).join(", ") || "-";
}
export const workload = (key: string): string => key.replace(/^v1 /, "");
// Where there is little room: without what most tasks say. "v1 matmul b=1 m=64 ... dtype=float32" is "matmul m=64 ...".
const kUsual = / (?:b=1|ta=0|tb=0|bias=0|act=none|groups=1|dil=1,1|dtype=float32|const=none)(?= |$)/g;
export const task = (key: string): string => workload(key).replace(kUsual, "");
