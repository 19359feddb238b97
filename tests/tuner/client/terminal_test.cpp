// Lines and tables that fit a terminal: what stays when it is narrow, and that nothing is longer than it is
// wide.
#include "tuner/text/terminal.h"
#include "compiler_core/base/printable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/db/store_fixture.h"
#include "tuner/client/progress_view.h"
#include "tuner/revalidate/verdict_text.h"

namespace tuner::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(Printable, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(printable("host 1, \xc3\xa9"), "host 1, \xc3\xa9");
  EXPECT_EQ(printable("\x1b[31mred\a\n\x7f"), "\\x1b[31mred\\x07\\x0a\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Shortened, EndsInDotsAndCountsCharactersNotBytes) {
  EXPECT_EQ(shortened("abcdef", 0), "abcdef") << "no limit";
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdef", 5), "ab...");
  EXPECT_EQ(shortened("abcdef", 2), "..");
  EXPECT_EQ(shortened("äöüäöü", 6), "äöüäöü");
  EXPECT_EQ(shortened("äöüäöü", 5), "äö...");
}

TEST(Fitted, ThePartsOfLeastRankGoFirst) {
  const std::vector<LinePart> parts = {{"one", 2}, {"", 9}, {"two", 1}, {"three", 3}};
  EXPECT_EQ(fitted(parts, 0), "one  two  three");
  EXPECT_EQ(fitted(parts, 15), "one  two  three");
  EXPECT_EQ(fitted(parts, 14), "one  three");
  EXPECT_EQ(fitted(parts, 9), "three");
  EXPECT_EQ(fitted(parts, 4), "t...");
  EXPECT_EQ(fitted({{"long words", 1}, {"x", 0}, {"first", 2}}, 8), "x  first") << "what still fits stays";
}

TEST(Wrapped, BreaksBetweenWordsAndIndentsWhatFollows) {
  EXPECT_EQ(wrapped("one two three", 0, 4), "one two three") << "no limit";
  EXPECT_EQ(wrapped("one two three", 13, 4), "one two three");
  EXPECT_EQ(wrapped("one two three", 12, 4), "one two\n    three");
  EXPECT_EQ(wrapped("  name   one two three", 14, 9), "  name   one\n         two\n         three");
  EXPECT_EQ(wrapped("a averyverylongword b", 8, 2), "a\n  averyverylongword\n  b") << "no word is cut";
  EXPECT_EQ(wrapped("\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4", 5, 2), "\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4");
  EXPECT_EQ(wrapped("", 5, 2), "");
}

TextTable table_of_two_rows() {
  TextTable table({{.name = "time", .importance = 3, .right = true},
                   {.name = "when", .importance = 1, .least = 4},
                   {.name = "what", .importance = 2, .least = 6},
                   {.name = "state", .importance = 4}});
  table.add({"1 ms", "2026-01-02", "a long description", ""});
  table.add({"22 ms", "2026-01-03", "short", ""});
  return table;
}

TEST(TextTable, WithoutALimitEverythingIsThere) {
  EXPECT_EQ(table_of_two_rows().text(0),
            " time  when        what\n"
            " 1 ms  2026-01-02  a long description\n"
            "22 ms  2026-01-03  short\n");
}

TEST(TextTable, TheLeastImportantColumnIsShortenedFirstThenLeftOut) {
  for (int width = 1; width <= 60; ++width)
    EXPECT_LE(longest_line(table_of_two_rows().text(width)), std::max<size_t>(5, width)) << width;
  EXPECT_THAT(table_of_two_rows().text(32), HasSubstr("20..."));
  EXPECT_THAT(table_of_two_rows().text(32), HasSubstr("a long descri"));
  EXPECT_THAT(table_of_two_rows().text(18), Not(HasSubstr("when")));
  EXPECT_THAT(table_of_two_rows().text(18), HasSubstr("a long d..."));
}

v1::Progress searching() {
  v1::Progress p;
  p.set_task_index(2);
  p.set_trials_done(128);
  p.set_trials_total(1024);
  p.set_best_ns(123'456);
  p.set_default_ns(231'000);
  p.set_best_gflops(181.2);
  p.set_peak_gflops(230);
  p.set_trials_per_second(12.34);
  p.set_eta_s(83);
  p.set_gain_chance(0.31);
  p.set_search_status("the model ranks new candidates well (0.81, of 16 trials)");
  v1::OutcomeCount* failed = p.add_outcomes();
  failed->set_outcome(v1::BUILD_ERROR);
  failed->set_count(7);
  return p;
}

TEST(ProgressBar, AtEightyColumnsItHasRateTimeLeftAndGain) {
  const std::string line = progress_bar(searching(), 1, 79);
  EXPECT_LE(line.size(), 79u);
  for (const char* part : {"128/1024", "best 123.5 us", "1.87x the default", "12.3/s", "1 min 23 s left"})
    EXPECT_THAT(line, HasSubstr(part));
}

TEST(ProgressBar, ItNeverWrapsAndLosesTheLeastImportantFirst) {
  const std::string wide = progress_bar(searching(), 12, 260);
  for (const char* part : {"task 3/12", "chance of more 31 %", "7 build_error", "181.2 GFLOP/s, 79 % of peak",
                           "the model ranks new candidates well (0.81, of 16 trials)"})
    EXPECT_THAT(wide, HasSubstr(part));
  for (int width = 20; width <= 220; ++width)
    EXPECT_LE(progress_bar(searching(), 12, width).size(), static_cast<size_t>(width));
  const std::string narrow = progress_bar(searching(), 12, 30);
  EXPECT_THAT(narrow, HasSubstr("128/1024"));
  EXPECT_THAT(narrow, HasSubstr("best 123.5 us"));
}

TEST(ProgressBar, ARaceSaysHowFarItIs) {
  v1::Progress p = searching();
  p.set_trials_done(1024);
  v1::RaceProgress* race = p.add_races();
  race->set_task_index(1);
  race->mutable_course()->set_finalists(9);
  EXPECT_THAT(progress_bar(p, 1, 79), HasSubstr("race: builds 9 finalists"));
  race->mutable_course()->set_racing(3);
  race->mutable_course()->set_processes(4);
  race->mutable_course()->set_most_processes(9);
  p.add_races()->set_task_index(2);
  const std::string line = progress_bar(p, 4, 79);
  EXPECT_LE(line.size(), 79u);
  EXPECT_THAT(line, HasSubstr("race of task 2: 3 of 9 finalists left  process 5 of at most 9"));
  EXPECT_EQ(races_text(p, 4), "race of task 2: 3 of 9 finalists left, process 5 of at most 9; 1 race waits");
  race->mutable_course()->set_spoilt(2);
  EXPECT_THAT(progress_bar(p, 1, 79), HasSubstr("process 5 of at most 9  2 disturbed"));
  EXPECT_EQ(races_text(searching(), 1), "");
}

// --- what is said of a task that was measured again ---

TunedConfig config_of(const std::string& config, double ns) {
  return {.template_name = "toy_x86", .config = config, .template_version = 3, .time_ns = ns};
}

TEST(Verdict, IsKeptReplacedFailedOrUnfinished) {
  const RevalidateItem item{.task = {"v1 work", "cpu one"}, .before = config_of("a=1", 100)};
  RevalidateVerdict v;
  EXPECT_EQ(ending(item, v), "unfinished");
  v.after = config_of("a=1", 120);
  EXPECT_EQ(ending(item, v), "unfinished") << "its job did not end: what the database answers is not of it";
  v.finished = true;
  EXPECT_EQ(ending(item, v), "kept");
  v.after = config_of("a=2", 90);
  EXPECT_EQ(ending(item, v), "replaced");
  v.after = config_of("a=1", 90), v.after->template_version = 4;
  EXPECT_EQ(ending(item, v), "replaced");
  v.error = "every candidate crashed";
  EXPECT_EQ(ending(item, v), "failed");
  v.error.clear(), v.after.reset();
  EXPECT_EQ(ending(item, v), "failed");
  EXPECT_EQ(verdict_json(item, v)["after"], nullptr);
  EXPECT_EQ(verdict_json(item, v)["before"]["time_ns"], 100);
}

// The old config's time now: that of its race, which may have found a tie; else its trial's.
TEST(Verdict, TheOldConfigHasTheTimeOfItsRace) {
  const TemporaryFolder folder;
  const auto store = must_open(folder.file("t.db"));
  ASSERT_OK(store->add_job(job_row("j1")));
  const auto ids = add_trials(*store, "j1", {"a=1", "a=2", "a=3", "a=4"});
  MeasureRecord wrong = ok_record(ids[3], {});
  wrong.outcome = Outcome::kWrongAnswer;
  ASSERT_OK(store->add_records({wrong}));
  ASSERT_OK(
      store->add_records({ok_record(ids[0], {150}), ok_record(ids[1], {110}), ok_record(ids[2], {160})}));
  RaceRow race{.job_id = "j1", .winner_trial_id = ids[1], .tie_set = {ids[1], ids[0]}};
  race.finalists = {{ids[0], {121}, {50}, {0}}, {ids[1], {120}, {50}, {0}}};
  race.time_ns = race.time_low_ns = race.time_high_ns = 120;
  ASSERT_OK(store->add_race(race));
  const auto now = [&](const std::string& config) {
    RevalidateVerdict v{.job_id = "j1"};
    const Status looked =
        look_up(*store, {.task = {"v1 work", "cpu one"}, .before = config_of(config, 100)}, v);
    EXPECT_TRUE(looked.is_ok()) << looked.message();
    return v;
  };
  EXPECT_NEAR(now("a=1").old_config_now_ns.value(), 121, 1e-9);
  EXPECT_TRUE(now("a=1").tied);
  EXPECT_EQ(now("a=2").old_config_now_ns, 120);
  EXPECT_EQ(now("a=3").old_config_now_ns, 160) << "it did not race";
  EXPECT_FALSE(now("a=3").tied);
  EXPECT_FALSE(now("a=4").old_config_now_ns) << "it gives no right answer any more";
  EXPECT_FALSE(now("a=9").old_config_now_ns);
}

}  // namespace
}  // namespace tuner::cli
