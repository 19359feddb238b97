// installed_page.mjs NPM LINK REPORT: the page of an installed tuner in Chromium: the job, its curve, its answer, and the report's charts.
// NPM: a folder with playwright-core. LINK: what tuner dashboard printed. REPORT: a file that tuner report wrote. CHROMIUM: the browser.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [npm, link, report] = process.argv.slice(2);
const { chromium } = createRequire(`${npm}/`)("playwright-core");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  const page = await browser.newPage(), errors = [];
  page.on("pageerror", e => errors.push(String(e)));
  page.on("console", m => { if (m.type() === "error") errors.push(m.text()); });
  await page.goto(link);
  await page.waitForSelector(".count:text('1 jobs')");
  await page.click("tbody tr td >> nth=0");
  await page.waitForSelector(".chart canvas");
  const curve = await page.getAttribute(".chart", "aria-label");
  assert.match(curve, /^Best time against results: [\d.]+ \w+ after \d+ results/);
  await page.click(".list a >> nth=0");
  await page.waitForSelector(".facts >> text=Certified");
  await page.goto(`file://${report}`);
  await page.waitForSelector("details.explore canvas");
  const same = /^.* after \d+ results/;
  assert.equal(same.exec(await page.getAttribute("details.explore .chart >> nth=0", "aria-label"))[0], same.exec(curve)[0]);
  assert.deepEqual(errors, []);
  console.log(curve);
} finally {
  await browser.close();
}
