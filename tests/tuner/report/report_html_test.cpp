// The page of a report as text: nothing in it is markup that came from outside, nothing is loaded, and what
// does not hold is not shown. What it does in a browser: report_browser_test.cpp.
#include "tuner/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "tests/tuner/report/report_fixture.h"
#include "tuner/report/chart.h"
#include "tuner/report/figures.h"
#include "tuner/report/report_page.h"

namespace tuner {
namespace {

using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNasty;
using ::testing::Not;

TEST(Html, LiteralsAreMarkupAndTextIsText) {
  const std::string text = "<b a='x' b=\"y\">&amp;</b>";
  EXPECT_EQ(html("<p>", text, "</p>").code(),
            "<p>&lt;b a=&#39;x&#39; b=&quot;y&quot;&gt;&amp;amp;&lt;/b&gt;</p>");
  const char* pointer = "<i>";
  EXPECT_EQ(html("<p>", pointer, std::string_view("<u>"), 12, int64_t{-3}).code(),
            "<p>&lt;i&gt;&lt;u&gt;12-3");
}

// The dashboard's charts read the facts of a report out of an element of the page: no text ends that.
class ReportCharts : public testing::ReportTest {};
TEST_F(ReportCharts, FactsForThemAreADocumentAndNoMarkup) {
  add_job("j1", "random", {{testing::kMatmul, testing::kTarget}});
  const auto ids = measure("j1", 0, 30, 1);
  race("j1", 0, {ids[0], ids[1], ids[2]});
  ordered_json told = facts("j1");
  told["tasks"][0]["convergence"]["marks"][0]["template"] = kNasty;
  told["tasks"][0]["convergence"]["marks"][0]["knobs"] = {{kNasty, 1}};
  const std::string page = report_page(told, {.style = ".explore{}", .script = "run(0)"});
  const size_t begin = page.find("id='explored'>") + 14, end = page.find("</script>", begin);
  ASSERT_NE(end, std::string::npos);
  const ordered_json tasks = ordered_json::parse(page.substr(begin, end - begin), nullptr, false);
  ASSERT_EQ(tasks.size(), 1u) << page.substr(begin, 200);
  EXPECT_EQ(tasks[0]["points"].size(), 30u);
  ASSERT_EQ(tasks[0]["records"].size(), 30u);
  EXPECT_THAT(tasks[0]["records"][0]["template"].get<std::string>(), HasSubstr("</script><script>alert"));
  EXPECT_TRUE(tasks[0]["records"][1]["config"].is_object());
  ASSERT_EQ(tasks[0]["finalists"].size(), 3u);
  EXPECT_EQ(tasks[0]["finalists"][0]["samples_ns"].size(), 12u);
  EXPECT_EQ(tasks[0]["finalists"][0]["process"].size(), 12u);
  EXPECT_EQ(tasks[0]["default_ns"], 2400);
  EXPECT_THAT(page, HasSubstr("run(0)"));
  EXPECT_THAT(page, HasSubstr("<summary>Explore the trials</summary>"));
  EXPECT_THAT(report_page(told), Not(HasSubstr("explored"))) << "there is nothing that would read it";
  EXPECT_DEATH((void)report_page(told, {.style = "", .script = "x</script>"}), "the charts hold </script");
}

TEST(Html, WhatIsNoTextIsWrittenOut) {
  EXPECT_EQ(html("", std::string("a\x1b[31mb\x7f\n\t")).code(), "a\\x1b[31mb\\x7f\n\t");
  EXPECT_EQ(html("", std::string("\xff\xc3(\xe2\x82")).code(), "\\xff\\xc3(\\xe2\\x82") << "no UTF-8";
  EXPECT_EQ(html("", std::string("\xc0\xaf\xed\xa0\x80")).code(), "\\xc0\\xaf\\xed\\xa0\\x80")
      << "a long form, a surrogate";
  EXPECT_EQ(html("", std::string("µs 名 🙂")).code(), "µs 名 🙂");
  EXPECT_EQ(html("", std::string("a\u202eb\u2066")).code(), "a\\u202eb\\u2066")
      << "turns the direction of writing";
}

TEST(Html, NamesBreakBehindUnderscores) {
  EXPECT_EQ(breakable("conv2d_winograd5_cpu").code(), "conv2d_<wbr>winograd5_<wbr>cpu");
  EXPECT_EQ(breakable("__a<_").code(), "_<wbr>_<wbr>a&lt;_");
  EXPECT_EQ(breakable("").code(), "");
}

TEST(Figures, AreWhatPeopleRead) {
  EXPECT_EQ(page::grouped(1234567), "1,234,567");
  EXPECT_EQ(page::grouped(-1234), "-1,234");
  EXPECT_EQ(page::grouped(999), "999");
  EXPECT_EQ(page::time(17190), "17.19 us");
  EXPECT_EQ(page::time(0), "-");
  EXPECT_EQ(page::interval(16900, 17480), "16.90 to 17.48 us");
  EXPECT_EQ(page::factor(2.716), "2.72x");
  EXPECT_EQ(page::percent(0.4912, 0), "49 %");
  EXPECT_EQ(page::duration(812), "812 ms");
  EXPECT_EQ(page::duration(90'000), "90.0 s");
  EXPECT_THAT(page::ticks(16.8, 23.1, 3), ElementsAre(17.5, 20, 22.5));
  EXPECT_THAT(page::ticks(0, 72, 4), ElementsAre(0, 20, 40, 60));
  EXPECT_THAT(page::ticks(5, 5, 4), IsEmpty());
}

std::vector<std::string> all_matches(const std::string& text, const std::string& expression) {
  const std::regex regex(expression);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

TEST(Chart, ItsLegendListsTheKindsThatWereDrawn) {
  page::Chart chart("Times", 100, 20, 20);
  const size_t dot = chart.add_kind({page::Shape::kDot, "ok", "a trial"});
  const size_t cross = chart.add_kind({page::Shape::kCross, "failed", "failed"});
  const size_t ring = chart.add_kind({page::Shape::kRing, "cut", "ended early"});
  EXPECT_THAT(all_matches(chart.code().code(), "data-kind='(\\w+)'"), IsEmpty());
  chart.mark(ring, {0.5, 10}, "t2\nslow");
  chart.mark(dot, {0.25, 20}, "t1 <b>");
  EXPECT_THAT(all_matches(chart.code().code(), "data-kind='(\\w+)'"), ElementsAre("ok", "cut"));
  EXPECT_THAT(chart.code().code(), HasSubstr("<title>t1 &lt;b&gt;</title>"));
  EXPECT_THAT(chart.code().code(), HasSubstr("cx='25.00%'"));
  static_cast<void>(cross);
}

ordered_json importance(double r2) {
  return {{"configs", 64},
          {"r2", r2},
          {"least_r2", 0.5},
          {"knobs",
           {{{"template", "matmul_cpu"},
             {"knob", "tile_m"},
             {"share", 0.4321},
             {"values", {{"8", 3, 200.0, 100.0}, {"16", 4, 300.0, 110.0}}}}}}};
}

std::string page_with(const ordered_json& importance) {
  return report_page({{"job", "j1"}, {"tasks", {{{"index", 0}, {"importance", importance}}}}});
}

TEST(ReportPage, SharesOfKnobsAreHiddenWhereTheModelExplainsLessThanHalf) {
  EXPECT_THAT(page_with(importance(0.5)), HasSubstr("43.2 %"));
  EXPECT_THAT(page_with(importance(0.5)), HasSubstr("tile_<wbr>m"));
  for (const double r2 : {0.49, 0.0, -0.3}) {
    const std::string page = page_with(importance(r2));
    EXPECT_THAT(page, Not(HasSubstr("43.2 %"))) << r2;
    EXPECT_THAT(page, Not(HasSubstr("tile_"))) << r2;
    EXPECT_THAT(page,
                HasSubstr(str("Not shown: the model explains ", r2 > 0 ? "49" : "0", " % of the variation")));
  }
}

// Every text of a document that is nothing but an attack.
ordered_json hostile(const ordered_json& document) {
  if (document.is_string()) return kNasty;
  if (!document.is_structured()) return document;
  ordered_json out = document;
  for (auto& [key, value] : out.items()) value = hostile(value);
  return out;
}

class ReportPageTest : public testing::ReportTest {};

TEST_F(ReportPageTest, NothingInTheFactsBecomesMarkup) {
  add_job("j1", "bayesian", {{testing::kMatmul, testing::kTarget}, {testing::kSoftmax, testing::kTarget}});
  const auto ids = measure("j1", 0, 90, 1);
  race("j1", 0, {ids[0], ids[1], ids[2]});
  ordered_json told = hostile(facts("j1"));
  // What chooses a mark stays what it is, once.
  told["tasks"][1]["convergence"]["points"] = {
      {kNasty, 1000.0, "ok"}, {kNasty, 2000.0, "cut"}, {kNasty, nullptr, kNasty}};
  told["tasks"][1]["convergence"]["marks"] = {{{"n", 1},
                                               {"trial", kNasty},
                                               {"ns", 1000.0},
                                               {"outcome", "ok"},
                                               {"template", kNasty},
                                               {"config", kNasty}},
                                              {{"n", 2},
                                               {"trial", kNasty},
                                               {"ns", nullptr},
                                               {"outcome", kNasty},
                                               {"template", kNasty},
                                               {"config", kNasty}}};
  told["tasks"][0]["importance"] = hostile(importance(0.9));
  for (const char* missing : {"baseline", "roofline", "race", "phases", "importance"})
    told["tasks"][0][missing].erase("why");
  const std::string page = report_page(told);
  EXPECT_THAT(page, HasSubstr("alert(&quot;x&quot;)"));
  EXPECT_THAT(page, HasSubstr("\\xff"));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("alert(\"x\")")));
  EXPECT_EQ(all_matches(page, "(<script)").size(), 1u) << "our own";
  EXPECT_EQ(all_matches(page, "(</script)").size(), 1u);
  EXPECT_THAT(page, Not(HasSubstr("<!-- &")));
}

TEST_F(ReportPageTest, LoadsNothing) {
  add_job("j1", "bayesian", {{testing::kMatmul, testing::kTarget}});
  measure("j1", 0, 40, 1);
  const std::string page = report_page(facts("j1"));
  for (const char* loads :
       {"src=", "@import", "url(", "fetch(", "import(", "http://", "https://", "XMLHttpRequest"})
    EXPECT_THAT(page, Not(HasSubstr(loads)));
  for (const std::string& to : all_matches(page, "href='([^']*)'"))
    EXPECT_TRUE(to.starts_with("#") || to == "data:,") << to;
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

// What is told of marks without a script: the title of each.
TEST_F(ReportPageTest, EachMarkHasATitleWithNameTimeTemplateAndConfig) {
  add_job("j1", "bayesian", {{testing::kMatmul, testing::kTarget}});
  const auto ids = measure("j1", 0, 40, 1);
  race("j1", 0, {ids[0], ids[1], ids[2]});
  const ordered_json told = facts("j1");
  const std::string page = report_page(told);
  EXPECT_EQ(all_matches(page, "(class='m )").size(), 40 + 1 + 3 + 1u)
      << "trials, winner, finalists, roofline";
  EXPECT_EQ(all_matches(page, "class='m [^>]*>(<title>)").size(), 45u);
  for (const ordered_json& mark : told["tasks"][0]["convergence"]["marks"]) {
    const std::string outcome =
        mark["outcome"] == "ok" ? page::time(mark["ns"]) : "failed: " + page::outcome(mark["outcome"]);
    EXPECT_THAT(page,
                HasSubstr(html("<title>", mark["trial"].get<std::string>(), ", trial ", mark["n"].get<int>(),
                               " of 40\n", outcome, "\n", mark["template"].get<std::string>(), "\n",
                               mark["config"].get<std::string>(), "</title>")
                              .code()));
  }
  EXPECT_THAT(page, HasSubstr("<title>j1.1, the winner\n1.900 us in the race (95 %: 1.890 to 1.915 us)\n"));
}

TEST_F(ReportPageTest, JobsWithoutAResultAreTold) {
  add_job("j1", "bayesian", {{testing::kMatmul, testing::kTarget}});
  EXPECT_THAT(report_page(facts("j1")), HasSubstr("No trial has a result yet."));
  EXPECT_THAT(report_page(ordered_json::object()), HasSubstr("Tuning report"));

  // Every trial fails: they are drawn all the same.
  ordered_json told = facts("j1");
  told["tasks"][0]["trials"] = 2;
  told["tasks"][0]["convergence"] = {{"points", {{"t1", nullptr, "crashed"}, {"t2", nullptr, "build_error"}}},
                                     {"marks",
                                      {{{"n", 1},
                                        {"trial", "t1"},
                                        {"ns", nullptr},
                                        {"outcome", "crashed"},
                                        {"template", "a"},
                                        {"config", "b=1"}},
                                       {{"n", 2},
                                        {"trial", "t2"},
                                        {"ns", nullptr},
                                        {"outcome", "build_error"},
                                        {"template", "a"},
                                        {"config", "b=2"}}}}};
  const std::string page = report_page(told);
  EXPECT_THAT(page, HasSubstr("No trial gave a right answer that was timed to the end."));
  EXPECT_THAT(all_matches(page, "data-kind='(\\w+)'"), ElementsAre("failed"));
  EXPECT_THAT(page, HasSubstr("<title>t2, trial 2 of 2\nfailed: build error\na\nb=2</title>"));
}

}  // namespace
}  // namespace tuner
