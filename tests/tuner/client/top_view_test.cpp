// tuner top: the frame for a screen of any size, the keys, and the bytes that draw it.
#include "tuner/client/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include "compiler_core/base/status.h"
#include "tuner/client/progress_view.h"
#include "tuner/client/top_json.h"
#include "tuner/client/worker_list.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TopLook a_look(int jobs, int workers) {
  TopLook look{.daemon = "127.0.0.1:7070", .trials_per_second = 12.34};
  v1::DaemonSummary* daemon = look.list.mutable_daemon();
  daemon->set_queued(32);
  daemon->set_leased(8);
  daemon->set_oldest_queued_s(1.25);
  daemon->set_results(4711);
  daemon->set_up_s(3725);
  for (int i = 1; i <= jobs; ++i) {
    v1::JobSummary* job = look.list.add_jobs();
    job->set_job_id(str("j", i));
    job->set_state(i == 1 ? v1::FINISHED : v1::JOB_RUNNING);
    job->set_task_count(3);
    job->add_tasks()->set_workload_key(
        "v1 matmul b=1 m=64 n=64 k=64 ta=0 tb=0 bias=0 act=none dtype=float32 const=none");
    v1::Progress* p = job->mutable_progress();
    p->set_trials_done(120);
    p->set_trials_total(1000);
    p->set_trials_per_second(8.12);
    p->set_best_ns(53'820);
    p->set_eta_s(108.4);
    p->add_races()->mutable_course()->set_most_processes(9);
    p->add_races();
  }
  for (int i = 1; i <= workers; ++i) {
    v1::WorkerSummary* worker = look.workers.add_workers();
    worker->set_worker_id(str("w", i));
    worker->set_host("vm");
    worker->set_leases(4);
    worker->set_trials_done(1200);
    worker->set_silent_s(0.1);
    if (i == 2) worker->set_unfit("the disk is full");
    if (i == 3) worker->set_paused_s(29), worker->set_paused_why("it is slower now");
  }
  return look;
}

std::string text_of(const std::vector<ScreenLine>& lines) {
  std::string text;
  for (const ScreenLine& line : lines) text += line.text + "\n";
  return text;
}

std::string frame(const TopLook& look, int width, int height, int scroll = 0) {
  return text_of(top_frame(look, width, height, scroll));
}

TEST(TopFrame, At80x24) {
  EXPECT_EQ(frame(a_look(2, 3), 80, 24), R"(tuner top  127.0.0.1:7070  up 62 min
12.3 trials/s  32 queued  oldest 1.2 s  8 leased  3 workers  1 unfit  1 paused

JOB  STATE       TRIALS  TRIALS/S      BEST   LEFT  RACES  WORKLOAD
j2   running   120/1000       8.1  53.82 us  2 min    1+1  3 tasks, v1 matmul...
j1   finished  120/1000            53.82 us           1+1  3 tasks, v1 matmul...

WORKER  HOST  LEASES  TRIALS  HEARD  NOTE
w1      vm         4    1200  0.1 s
w2      vm         4    1200  0.1 s  takes nothing: the disk is full
w3      vm         4    1200  0.1 s  paused for 29 s: it is slower now












q quit
)");
}

TEST(TopFrame, FitsAnySize) {
  const TopLook look = a_look(30, 30);
  for (const int width : {20, 33, 40, 60, 80, 132, 200})
    for (const int height : {5, 6, 10, 20, 24, 50}) {
      int scroll = 0;
      const std::vector<ScreenLine> lines = top_frame(look, width, height, scroll);
      EXPECT_EQ(std::ssize(lines), height) << width << "x" << height;
      for (const ScreenLine& line : lines) EXPECT_LE(std::ssize(line.text), width) << line.text;
      EXPECT_THAT(text_of(lines), HasSubstr("trials/s")) << width << "x" << height;
    }
  for (const int height : {0, 1, 2, 3, 4}) {
    int scroll = 3;
    EXPECT_GE(std::ssize(top_frame(look, 20, height, scroll)), height);
  }
}

TEST(TopFrame, ScrollsToTheLastRowAndNotBeyond) {
  const TopLook look = a_look(30, 30);
  int scroll = 1'000;
  const std::string end = text_of(top_frame(look, 80, 24, scroll));
  EXPECT_THAT(end, AllOf(HasSubstr("w30 "), HasSubstr("of 63"), Not(HasSubstr("j30 "))));
  EXPECT_EQ(scroll, 63 - 20);
  scroll = -5;
  EXPECT_THAT(text_of(top_frame(look, 80, 24, scroll)), HasSubstr("j2 "));
  EXPECT_EQ(scroll, 0);
}

TEST(TopFrame, ShowsOpenJobsFirstAndWhyAWorkerIsIdle) {
  const std::string all = frame(a_look(12, 3), 0, 0);
  EXPECT_LT(all.find("\nj2 "), all.find("\nj10 ")) << "by number";
  EXPECT_LT(all.find("\nj12 "), all.find("\nj1 ")) << "ended ones last";
  EXPECT_THAT(all, HasSubstr("takes nothing: the disk is full"));
  EXPECT_THAT(all, HasSubstr("paused for 29 s: it is slower now"));
  EXPECT_THAT(frame({}, 80, 24),
              AllOf(HasSubstr("no jobs since the daemon began"), HasSubstr("no worker is connected")));
}

TEST(TopFrame, NothingOfAPeerMovesTheCursor) {
  TopLook look = a_look(1, 1);
  look.daemon = "a\x1b[2J";
  look.trouble = "b\x1b]0;title\a";
  look.list.mutable_jobs(0)->set_job_id("j1\x1b[1A");
  look.list.mutable_jobs(0)->mutable_tasks(0)->set_workload_key(
      "key\r\n\xc2\x9b"
      "31m");
  look.workers.mutable_workers(0)->set_worker_id("w\x1b[31m");
  look.workers.mutable_workers(0)->set_host("h\x7f\b");
  look.workers.mutable_workers(0)->set_unfit("u\x1b[5m\n");
  for (const char c : frame(look, 200, 24))
    EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)) << int{c};
  EXPECT_THAT(frame(look, 200, 24), Not(HasSubstr("\xc2\x9b")));
}

// Each figure another number, under its own name.
TEST(TopJson, EachFigureStandsUnderItsName) {
  TopLook look{.daemon = "here", .trials_per_second = 1.5};
  v1::DaemonSummary* const d = look.list.mutable_daemon();
  d->set_queued(32);
  d->set_leased(8);
  d->set_oldest_queued_s(1.25);
  d->set_results(4711);
  d->set_up_s(3725.5);
  v1::TenantSummary* const t = d->add_tenants();
  t->set_tenant("vision");
  t->set_weight(2.5);
  t->set_device_s(3.5);
  t->set_leased(4);
  t->set_queued(5);
  v1::JobSummary* const job = look.list.add_jobs();
  job->set_job_id("j7");
  job->set_state(v1::FINISHED);
  job->set_task_count(3);
  v1::Progress* const p = job->mutable_progress();
  p->set_trials_done(120);
  p->set_trials_total(1000);
  p->set_trials_per_second(8.5);
  p->set_best_ns(53.5);
  p->set_eta_s(108.5);
  p->add_races();
  v1::WorkerSummary* const w = look.workers.add_workers();
  w->set_worker_id("w1");
  w->set_host("vm");
  w->set_leases(6);
  w->set_trials_done(1200);
  w->set_silent_s(0.5);
  w->set_unfit("no room");
  w->set_paused_s(29.5);
  w->set_paused_why("it is slower");
  w->set_quarantined(9);
  w->set_other_release("older");
  w->set_orders(11);
  w->set_kind(v1::RUNNER);
  w->add_targets("a");
  w->add_targets("b");
  const std::string top = top_json(look), workers = workers_json(look.workers);
  for (const char* line : {R"("address": "here")",
                           R"("up_s": 3725.5)",
                           R"("queued": 32)",
                           R"("oldest_queued_s": 1.25)",
                           R"("leased": 8)",
                           R"("results": 4711)",
                           R"("trials_per_s": 1.5)",
                           R"("tenant": "vision")",
                           R"("weight": 2.5)",
                           R"("device_s": 3.5)",
                           R"("leases": 4)",
                           R"("queued": 5)",
                           R"("job": "j7")",
                           R"("state": "finished")",
                           R"("task_count": 3)",
                           R"("trials_done": 120)",
                           R"("trials_total": 1000)",
                           R"("trials_per_s": 8.5)",
                           R"("best_ns": 53.5)",
                           R"("left_s": 108.5)",
                           R"("races": 1)"})
    EXPECT_THAT(top, HasSubstr(line));
  for (const char* line :
       {R"("worker": "w1")", R"("host": "vm")", R"("leases": 6)", R"("trials_done": 1200)",
        R"("silent_s": 0.5)", R"("unfit": "no room")", R"("paused_s": 29.5)",
        R"("paused_why": "it is slower")", R"("quarantined": 9)", R"("other_release": "older")"}) {
    EXPECT_THAT(top, HasSubstr(line));
    EXPECT_THAT(workers, HasSubstr(line));
  }
  for (const char* line : {R"("kind": "runner")", R"("orders": 11)", R"("away": false)", R"("b")"})
    EXPECT_THAT(workers, HasSubstr(line));
}

TEST(WorkersText, SaysWhyAWorkerGetsNothingAndLeavesOutWhoIsLongGone) {
  v1::ListWorkersReply reply;
  v1::WorkerSummary* const w = reply.add_workers();
  w->set_worker_id("w1");
  w->set_host("vm");
  w->set_leases(6);
  w->set_trials_done(1200);
  w->set_silent_s(600);
  w->set_paused_s(29.5);
  w->set_paused_why("it is slower");
  w->set_quarantined(9);
  reply.add_workers()->set_silent_s(600.5);
  EXPECT_EQ(workers_text(reply, 0),
            "w1 on vm: here, 6 leases, 1200 trials done, last heard of 10 min ago\n"
            "  gets nothing for 29 s: it is slower\n"
            "  sent 9 results that cannot be; tuner show TRIAL tells them\n"
            "1 not heard of for more than 10 minutes: tuner workers --all\n");
}

TEST(BestSoFar, SaysTimeSpeedAndShareOfThePeak) {
  v1::Progress p;
  EXPECT_EQ(best_so_far(p), "no right answer yet");
  p.set_best_ns(1'234'000);
  EXPECT_EQ(best_so_far(p), "1.234 ms");
  p.set_best_gflops(123.4);
  EXPECT_EQ(best_so_far(p), "1.234 ms, 123.4 GFLOP/s");
  p.set_peak_gflops(173.8);
  EXPECT_EQ(best_so_far(p), "1.234 ms, 123.4 GFLOP/s (71 % of the peak of 173.8)");
  for (const auto& [outcome, count] :
       {std::pair(v1::OK, 117), std::pair(v1::CRASHED, 0), std::pair(v1::BUILD_ERROR, 7)}) {
    v1::OutcomeCount* const o = p.add_outcomes();
    o->set_outcome(outcome);
    o->set_count(count);
  }
  EXPECT_EQ(outcome_counts(p.outcomes()), "117 ok, 7 build_error");
}

TEST(TrialRate, IsOfTheLastTenSecondsAndBeginsWithWhatJobsSay) {
  TrialRate rate;
  v1::ListReply list = a_look(3, 0).list;  // two of them run
  list.mutable_daemon()->set_results(1'000);
  EXPECT_DOUBLE_EQ(rate.look(list, 50'000), 2 * 8.12);
  list.mutable_daemon()->set_results(1'020);
  EXPECT_DOUBLE_EQ(rate.look(list, 51'000), 20);
  for (int64_t ms = 52'000; ms <= 80'000; ms += 1'000) rate.look(list, ms);
  EXPECT_DOUBLE_EQ(rate.look(list, 81'000), 0) << "nothing came for long";
  list.mutable_daemon()->set_results(3);
  EXPECT_DOUBLE_EQ(rate.look(list, 82'000), 2 * 8.12) << "the daemon was started anew";
}

TEST(Screen, KeysAreTakenWholeAndUnknownOnesAreDropped) {
  using Key = Screen::Key;
  std::string bytes = "j\x1b[A\x1b[5~\x1bOB\x1b[1;5Cx\x1bOPGq";
  std::vector<Key> keys;
  while (!bytes.empty()) keys.push_back(take_key(bytes));
  EXPECT_THAT(keys, ::testing::ElementsAre(Key::kDown, Key::kUp, Key::kPageUp, Key::kDown, Key::kNone,
                                           Key::kNone, Key::kNone, Key::kBottom, Key::kQuit));
  for (const char* cut : {"\x1b", "\x1b[", "\x1b[5", "\x1bO", "\xff"}) {
    std::string rest = cut;
    EXPECT_EQ(take_key(rest), Key::kNone);
  }
}

TEST(Screen, AFrameIsDrawnOverTheOneBeforeWithoutScrolling) {
  EXPECT_EQ(frame_text({{"a", true}, {"b"}, {"c"}}, 2), "\x1b[H\x1b[1ma\x1b[0m\x1b[K\r\nb\x1b[K\x1b[J");
  EXPECT_EQ(frame_text({}, 24), "\x1b[H\x1b[J");
}

// What a program that ends so writes to its terminal.
std::string ended_by(const std::function<void()>& end) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    try {
      const Screen screen;
      end();
    } catch (const std::exception&) {
      _exit(3);
    }
    _exit(0);
  }
  std::string shown;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(terminal, buffer, sizeof buffer)) > 0;)
    shown.append(buffer, static_cast<size_t>(n));
  ::waitpid(child, nullptr, 0);
  ::close(terminal);
  return shown;
}

TEST(Screen, IsLeftByExceptionsAndAborts) {
  constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
  EXPECT_THAT(ended_by([] {}), EndsWith(kLeave));
  EXPECT_THAT(ended_by([] { throw std::runtime_error("a bug"); }), EndsWith(kLeave));
  EXPECT_THAT(ended_by([] { std::abort(); }), EndsWith(kLeave));
}

}  // namespace
}  // namespace tuner
