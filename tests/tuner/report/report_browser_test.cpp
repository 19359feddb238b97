// The page of a report in a real browser: what mouse, keyboard and fingers find, wide and narrow, and what is
// there without a script. Skips where there is no Chromium.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "compiler_core/base/status.h"
#include "tests/support/browser.h"
#include "tests/tuner/report/report_fixture.h"
#include "tuner/report/report_page.h"

namespace tuner {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMatmul;
using testing::kSoftmax;
using testing::kTarget;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kTrials = 90;

class ReportBrowser : public testing::ReportTest {
 protected:
  void SetUp() override {
    if (testing::chromium().empty())
      GTEST_SKIP() << "no Chromium here; deploy/install.sh --browser installs it";
    // The first task has all parts, the second no race, the third no trial. Another job is the baseline.
    add_job("j1", "bayesian", {{kMatmul, kTarget}, {kSoftmax, kTarget, "", 3}, {kMatmul, kTarget, "direct"}});
    const auto ids = measure("j1", 0, kTrials, 1);
    race("j1", 0, {ids[0], ids[1], ids[2]});
    measure("j1", 1, 40, 5);
    add_job("j2", "annealing", {{kMatmul, kTarget}});
    measure("j2", 0, 60, 2);
    told_ = facts("j1");
    // A trial that was ended early, one so slow that the scale does not reach it, and shares of knobs.
    ordered_json& first = told_["tasks"][0];
    set_trial(first, 12, 2500, "cut");
    set_trial(first, 13, 900'000, "ok");
    first["importance"] = {
        {"configs", 80},
        {"r2", 0.8},
        {"least_r2", 0.5},
        {"knobs",
         {{{"template", "matmul_cpu"},
           {"knob", "narrow_panels_of_b"},
           {"share", 0.4},
           {"values", {{"one_of_many_values", 3, 2000.0, 1000.0}, {"2", 4, 3000.0, 1100.0}}}}}}};
    std::ofstream(path()) << report_page(told_);
    browser_.emplace(folder_.path().string());
    browser_->window(1280, 900);
  }
  static void set_trial(ordered_json& task, size_t i, double ns, const char* kind) {
    task["convergence"]["points"][i][1] = ns;
    task["convergence"]["points"][i][2] = kind;
    task["convergence"]["marks"][i]["ns"] = ns;
    task["convergence"]["marks"][i]["outcome"] = kind;
  }
  std::string path() const { return folder_.file("report.html"); }

  // The n-th chart of the page: 0, 1, 2 are convergence, finalists and roofline of the first task.
  static std::string chart(int n) { return str("document.querySelectorAll('svg.chart')[", n, "]"); }
  // Brings it into sight.
  // Until it is painted there: behind a scroll the browser tells the page anew where the mouse was.
  void show(int n) {
    browser_->ask(chart(n) +
                  ".scrollIntoView({block: 'center'}), new Promise(done => requestAnimationFrame(() => "
                  "requestAnimationFrame(() => setTimeout(() => done(0)))))");
  }
  // Middles of its marks in the window.
  json middles(int n) {
    return browser_->ask(
        str("[...", chart(n),
            ".querySelectorAll('.m')].map(m => { const b = m.getBoundingClientRect(); return "
            "[(b.left + b.right) / 2, (b.top + b.bottom) / 2]; })"));
  }
  // What is shown beside a mark; empty: nothing. Trailing words that tell of other marks there are left out.
  std::string tip() {
    const std::string text = browser_->ask("tip.hidden ? '' : tip.textContent").get<std::string>();
    const size_t more = text.find(" more here: click");
    return more == std::string::npos ? text : text.substr(0, text.rfind('\n', more));
  }
  std::string said() { return browser_->ask("said.textContent").get<std::string>(); }
  bool tip_is_inside() {
    return browser_
        ->ask(
            "(() => { const b = tip.getBoundingClientRect(); return b.left >= 0 && b.top >= 0 && b.right <= "
            "innerWidth && b.bottom <= innerHeight && b.width > 0; })()")
        .get<bool>();
  }
  // All that the marks of the first task's trials have to tell.
  std::set<std::string> trials_told() const {
    std::set<std::string> all;
    for (const ordered_json& m : told_["tasks"][0]["convergence"]["marks"])
      all.insert(str(m["trial"].get<std::string>(), "|", m["template"].get<std::string>(), "|",
                     m["config"].get<std::string>()));
    return all;
  }
  // "j1.12, trial 12 of 90\n2.000 us\nmatmul_cpu\ntile_m=8" as "j1.12|matmul_cpu|tile_m=8".
  static std::string key_of(const std::string& told) {
    std::vector<std::string> lines;
    std::istringstream in(told);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    if (lines.size() != 4) return told;
    return str(lines[0].substr(0, lines[0].find(',')), "|", lines[2], "|", lines[3]);
  }

  ordered_json told_;
  std::optional<testing::Browser> browser_;
};

TEST_F(ReportBrowser, DrawsEveryPartWithoutAnErrorOfItsScript) {
  browser_->open(path());
  EXPECT_THAT(browser_->errors(), IsEmpty());
  EXPECT_EQ(browser_->ask("document.querySelectorAll('section.task').length"), 3);
  EXPECT_EQ(browser_->ask("document.querySelectorAll('svg svg .curve').length"), 2);
  size_t baselines = 0;
  for (const ordered_json& task : told_["tasks"]) baselines += task["baseline"].contains("mean") ? 1 : 0;
  EXPECT_GE(baselines, 1u);
  EXPECT_EQ(browser_->ask("document.querySelectorAll('svg svg .baseline').length"), baselines);
  EXPECT_FALSE(
      browser_->ask("/NaN|undefined|\\binf\\b/.test(document.querySelector('main').innerHTML)").get<bool>());
  for (const char* label : {"Best time so far", "Finalists of the race", "Roofline"})
    EXPECT_GE(browser_->ask(str("document.querySelectorAll('[aria-label^=\"", label, "\"]').length")), 1)
        << label;
}

TEST_F(ReportBrowser, TheMouseReachesEveryTrial) {
  browser_->open(path());
  show(0);
  std::set<std::string> found;
  for (const json& at : middles(0)) {
    browser_->move_mouse(at[0], at[1]);
    found.insert(key_of(tip()));
    EXPECT_TRUE(tip_is_inside()) << tip();
    // Marks that lie on one another are told one after another, a click each.
    const int more = browser_->ask("+(/(\\d+) more here/.exec(tip.textContent) || [0, 0])[1]").get<int>();
    for (int i = 0; i <= more && more > 0; ++i) {
      browser_->click(at[0], at[1]);
      found.insert(key_of(tip()));
    }
  }
  for (const std::string& trial : trials_told()) EXPECT_THAT(found, Contains(trial));
  browser_->move_mouse(2, 2);
  EXPECT_EQ(tip(), "") << "away from the chart";
}

TEST_F(ReportBrowser, AMarkTellsItsTimeAndOutcome) {
  browser_->open(path());
  show(0);
  const json at = middles(0);
  const auto told_at = [&](size_t i) {
    browser_->move_mouse(at[i][0], at[i][1]);
    return tip();
  };
  EXPECT_THAT(told_at(8), HasSubstr("failed: build error")) << "each ninth fails";
  EXPECT_THAT(told_at(12), HasSubstr("ended early: slower than 2.500 us"));
  EXPECT_THAT(told_at(13), HasSubstr("900.0 us"));
  EXPECT_THAT(told_at(13), StartsWith("j1.14, trial 14 of 90\n"));
}

TEST_F(ReportBrowser, MarksOnOneAnotherAreToldOneByOneByClicksAndTaps) {
  ordered_json& marks = told_["tasks"][0]["convergence"]["marks"];
  for (const char* place : {"n", "ns"}) marks[20][place] = marks[22][place] = marks[21][place];
  std::ofstream(path()) << report_page(told_);
  for (const bool touch : {false, true}) {
    browser_->window(1280, 900, false, touch);
    browser_->open(path());
    show(0);
    const json at = middles(0)[21];
    std::set<std::string> found;
    for (int i = 0; i < 3; ++i) {
      touch ? browser_->tap(at[0], at[1]) : browser_->click(at[0], at[1]);
      found.insert(key_of(tip()).substr(0, key_of(tip()).find('|')));
      EXPECT_THAT(browser_->ask("tip.textContent").get<std::string>(), HasSubstr("2 more here"));
    }
    EXPECT_EQ(found, (std::set<std::string>{"j1.21", "j1.22", "j1.23"})) << (touch ? "taps" : "clicks");
  }
}

TEST_F(ReportBrowser, ArrowKeysReachEveryTrialAndTheyAreSaid) {
  browser_->open(path());
  // From the top of the page by the tab key alone; a chart is one stop.
  int stops = 0;
  while (!browser_->ask(str("document.activeElement === ", chart(0))).get<bool>()) {
    browser_->key("Tab");
    ASSERT_LT(++stops, 20) << "too far for a keyboard";
  }
  EXPECT_THAT(tip(), StartsWith("j1.1, the winner")) << "where one begins";
  browser_->key("ArrowRight");
  EXPECT_THAT(tip(), StartsWith("j1.2, trial 2 of 90")) << "beside it";
  browser_->key("Home");
  std::set<std::string> found = {key_of(tip())};
  for (int i = 0; i < kTrials; ++i) {
    browser_->key("ArrowRight");
    found.insert(key_of(tip()));
    std::string aloud = tip();
    for (size_t n = 0; (n = aloud.find('\n')) != std::string::npos;) aloud.replace(n, 1, ", ");
    EXPECT_EQ(said(), aloud);
    EXPECT_TRUE(tip_is_inside()) << tip();
  }
  for (const std::string& trial : trials_told()) EXPECT_THAT(found, Contains(trial));
  EXPECT_EQ(browser_->ask("said.getAttribute('aria-live')"), "polite");
  browser_->key("End");
  EXPECT_THAT(tip(), StartsWith("j1.90, trial 90 of 90"));

  // Up and down follow the picture, from mark to mark.
  const auto height = [&] {
    return browser_->ask(chart(0) + ".querySelector('.ring').getBoundingClientRect().top").get<double>();
  };
  browser_->key("Home");
  double last = height();
  for (int i = 0; i < 5; ++i) {
    browser_->key("ArrowDown");
    EXPECT_GE(height(), last - 0.01);
    last = height();
  }
  browser_->key("Escape");
  EXPECT_EQ(tip(), "");
  browser_->key("Tab");
  EXPECT_FALSE(browser_->ask(str("document.activeElement === ", chart(0))).get<bool>())
      << "the next stop is another";
}

TEST_F(ReportBrowser, ThousandTrialsAreNoThousandTabStops) {
  browser_->open(path());
  const std::string stops =
      "[...document.querySelectorAll('a[href], summary, [tabindex]')].filter(e => e.tabIndex >= 0).length";
  const int all = browser_->ask(stops).get<int>();
  EXPECT_LT(all, 40);
  EXPECT_GE(browser_->ask("document.querySelectorAll('.m').length"), 135);
}

TEST_F(ReportBrowser, AFingerFindsTheNearestMark) {
  browser_->window(390, 844, false, true);
  browser_->open(path());
  for (const int n : {0, 1, 2}) {
    show(n);
    const json at = middles(n);
    for (size_t i = 0; i < at.size(); i += 7) {
      browser_->tap(at[i][0], at[i][1]);
      const std::string told = tip();
      EXPECT_THAT(told, Not(IsEmpty())) << n << " " << i;
      EXPECT_TRUE(tip_is_inside()) << told;
      std::string aloud = told;
      for (size_t k = 0; (k = aloud.find('\n')) != std::string::npos;) aloud.replace(k, 1, ", ");
      EXPECT_EQ(said(), aloud);
    }
  }
  browser_->tap(5, 5);
  EXPECT_EQ(tip(), "") << "beside the chart";
}

// The scale is read from the words beside its lines, as people do.
TEST_F(ReportBrowser, TheWinnerStandsWhereTheHeadlineSays) {
  browser_->open(path());
  const json scale = browser_->ask(
      "(() => { const words = [...document.querySelectorAll('svg.chart')[0].querySelectorAll(':scope > "
      "text')]"
      ".filter(t => t.getAttribute('text-anchor') === 'end');"
      "return words.map(t => [+t.textContent, +t.getAttribute('y') - 4]); })()");
  ASSERT_GE(scale.size(), 2u);
  const double us_of_pixel = (scale[0][0].get<double>() - scale[1][0].get<double>()) /
                             (scale[0][1].get<double>() - scale[1][1].get<double>());
  const auto us_at = [&](double y) {
    return scale[0][0].get<double>() + (y - scale[0][1].get<double>()) * us_of_pixel;
  };
  const json winner = browser_->ask(chart(0) + ".querySelectorAll('.m.winner').length + '' === '1' && +" +
                                    chart(0) + ".querySelector('.m.winner').getAttribute('y')");
  const std::string headline =
      browser_->ask("document.querySelector('section.task .figure b').textContent").get<std::string>();
  EXPECT_EQ(headline, "1.900 us");
  EXPECT_NEAR(us_at(winner.get<double>()), 1.9, 0.005);
  // ...and where the trial stands that the headline names, along the other axis.
  EXPECT_THAT(
      browser_->ask("document.querySelector('section.task .figure span').textContent").get<std::string>(),
      HasSubstr("j1.1"));
  const json at = browser_->ask("[" + chart(0) + ".querySelector('.m.winner').getAttribute('x'), " +
                                chart(0) + ".querySelector('.m').getAttribute('cx')]");
  EXPECT_EQ(at[0], at[1]);
  // The finalists tell the same winner and time.
  const std::string finalist =
      browser_->ask(chart(1) + ".querySelector('.m.winner').getAttribute('aria-label')").get<std::string>();
  EXPECT_THAT(finalist, StartsWith("j1.1, the winner\n1.900 us (95 %: 1.890 to 1.915 us)"));
}

TEST_F(ReportBrowser, TheLegendListsWhatIsDrawnAndOnlyThat) {
  browser_->open(path());
  const json charts = browser_->ask(
      "[...document.querySelectorAll('svg.chart')].map(svg => ({"
      "legend: [...svg.parentNode.previousElementSibling.querySelectorAll('li')].map(li => li.dataset.kind),"
      "marks: [...new Set([...svg.querySelectorAll('.m')].map(m => m.classList[1]))],"
      "lines: [...new Set([...svg.querySelectorAll('svg path, line:not(.grid-line):not(.bar)')].map(l => "
      "l.classList[0]))]}))");
  ASSERT_GE(charts.size(), 5u);
  for (const json& c : charts) {
    std::set<std::string> drawn, listed;
    for (const char* part : {"marks", "lines"})
      for (const json& kind : c[part]) drawn.insert(kind.get<std::string>());
    for (const json& kind : c["legend"]) listed.insert(kind.get<std::string>());
    EXPECT_EQ(drawn, listed);
  }
  const std::set<std::string> first(charts[0]["legend"].begin(), charts[0]["legend"].end());
  EXPECT_EQ(first,
            (std::set<std::string>{"curve", "baseline", "ok", "cut", "slow", "failed", "winner", "whisker"}));
  // Each entry has a picture that is seen.
  EXPECT_TRUE(browser_
                  ->ask("[...document.querySelectorAll('.legend li')].every(li => li.querySelector('svg *')."
                        "getBoundingClientRect().width > 0)")
                  .get<bool>());
}

TEST_F(ReportBrowser, WithoutAScriptThePageIsWhole) {
  browser_->scripts(false);
  browser_->open(path());
  EXPECT_EQ(browser_->ask("document.querySelectorAll('svg.chart .m').length"),
            browser_->ask("document.querySelectorAll('svg.chart .m > title').length"));
  std::set<std::string> found;
  for (const json& title :
       browser_->ask("[...document.querySelectorAll('.m > title')].map(t => t.textContent)"))
    found.insert(key_of(title.get<std::string>()));
  for (const std::string& trial : trials_told()) EXPECT_THAT(found, Contains(trial));
  // The charts have their size, and marks their places.
  EXPECT_GT(browser_->ask(chart(0) + ".getBoundingClientRect().width").get<double>(), 900);
  const json at = middles(0);
  EXPECT_GT(at[kTrials - 1][0].get<double>() - at[0][0].get<double>(), 800);
  EXPECT_TRUE(browser_->ask("document.querySelector('details.knob').open").get<bool>());
  for (const int width : {390, 1280}) {
    browser_->window(width, 800);
    EXPECT_LE(browser_->ask("document.documentElement.scrollWidth").get<int>(), width);
  }
}

TEST_F(ReportBrowser, ANarrowPageNeverScrollsSideways) {
  for (const bool dark : {false, true})
    for (const int width : {390, 320}) {
      browser_->window(width, 844, dark);
      browser_->open(path());
      EXPECT_LE(browser_->ask("document.documentElement.scrollWidth").get<int>(), width);
      // No text and no card reaches out, but for what is in a box that scrolls.
      const json wide = browser_->ask(
          "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll') && "
          "!e.closest('svg.away') && "
          "e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 120))");
      EXPECT_EQ(wide, json::array()) << width;
    }
}

TEST_F(ReportBrowser, TablesScrollInTheirOwnBoxAndSaySo) {
  const std::string boxes =
      "[...document.querySelectorAll('.scroll')].map(box => [box.scrollWidth > box.clientWidth + 1, "
      "getComputedStyle(box.previousElementSibling).display !== 'none' && "
      "box.previousElementSibling.getBoundingClientRect().height > 0, box.tabIndex >= 0])";
  browser_->window(390, 844);
  browser_->open(path());
  browser_->ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
  const json narrow = browser_->ask(boxes);
  ASSERT_GE(narrow.size(), 3u);
  int overflowing = 0;
  for (const json& box : narrow) {
    EXPECT_EQ(box[0], box[1]) << "the hint is seen where the table is wider than its box";
    EXPECT_EQ(box[0], box[2]) << "...and then the keyboard can scroll it";
    overflowing += box[0].get<bool>() ? 1 : 0;
  }
  EXPECT_GE(overflowing, 1) << "the table of the tasks is wide";
  const json moved = browser_->ask(
      "(() => { const box = document.querySelector('.scroll'); box.scrollLeft = 60; return [box.scrollLeft, "
      "scrollX]; })()");
  EXPECT_EQ(moved, json::array({60, 0}));

  browser_->window(1280, 900);
  browser_->open(path());
  browser_->ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
  for (const json& box : browser_->ask(boxes)) EXPECT_EQ(box, json::array({false, false, false}));
}

TEST_F(ReportBrowser, NamesBreakAtUnderscoresAndAreCopiedPlain) {
  browser_->window(390, 844);
  browser_->open(path());
  // One after another in a box that has room for one part: each line ends with `_`.
  const json lines = browser_->ask(
      "(() => { const span = document.querySelector('.knob summary span'); span.style.cssText = "
      "'display:block;width:6em';"
      "const range = document.createRange(), tops = new Map();"
      "for (const node of span.childNodes) if (node.nodeType === 3) for (let i = 0; i < node.length; ++i) {"
      "  range.setStart(node, i); range.setEnd(node, i + 1); const top = "
      "Math.round(range.getBoundingClientRect().top);"
      "  tops.set(top, (tops.get(top) || '') + node.data[i]); }"
      "return [...tops.values()]; })()");
  ASSERT_GE(lines.size(), 2u);
  std::string whole;
  for (size_t i = 0; i < lines.size(); ++i) {
    whole += lines[i].get<std::string>();
    if (i + 1 < lines.size()) {
      EXPECT_TRUE(lines[i].get<std::string>().ends_with("_")) << lines;
    }
  }
  EXPECT_EQ(whole, "narrow_panels_of_b");
  EXPECT_THAT(browser_
                  ->ask("(() => { getSelection().selectAllChildren(document.querySelector('.knob summary "
                        "span')); return "
                        "getSelection().toString(); })()")
                  .get<std::string>(),
              HasSubstr("narrow_panels_of_b"));
  EXPECT_GE(browser_->ask("document.querySelectorAll('p.mono wbr').length"), 1);
}

}  // namespace
}  // namespace tuner
