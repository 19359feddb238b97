// Messages between worker and runner: what goes in comes out, and what makes no sense is refused with the
// key.
#include "measure_server/runner/runner_protocol.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "measure_server/runner/frame.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

RunRequest example() {
  RunRequest r;
  r.id = 0xfedcba9876543210;
  r.artifact_dir = "/some where/with \"quotes\"";
  r.digest = std::string(64, 'a');
  r.inputs = {{"data", "/a"}, {"weight", "/b"}};
  r.references = {{"out", "/c"}};
  r.others = {{.inputs = {{"x", "/d"}}, .references = {{"out", "/e"}}}};
  r.check = {1e-5, 2e-4};
  r.min_repeat_ms = 2.5;
  r.repeats = 7;
  r.precision = 0.125;
  r.run_timeout_s = 3;
  r.memory_limit_bytes = int64_t{5} << 40;
  r.cut_above_ns = 1234.5;
  r.slow_above_ns = 1000.5;
  r.cold_constants = true;
  r.calm_pulse_ns = 1500.5;
  r.patience_ms = 25;
  r.cpus = {0, 3};
  r.device = 2;
  r.caches = Caches::kRotate;
  r.prove_with = 1;
  r.wary = true;
  return r;
}

TEST(RunnerProtocol, RunRequestComesBackAsItWas) {
  const Result<RunnerMessage> message = parse_runner_message(to_json(example()));
  ASSERT_TRUE(message.is_ok()) << message.message();
  const RunRequest r = std::get<RunRequest>(*message), e = example();
  EXPECT_EQ(to_json(r), to_json(e));
  EXPECT_EQ(r.id, e.id);
  EXPECT_EQ(r.inputs[1].arg, "weight");
  EXPECT_EQ(r.inputs[1].path, "/b");
  EXPECT_EQ(r.references[0].path, "/c");
  ASSERT_EQ(r.others.size(), 1u);
  EXPECT_EQ(r.others[0].inputs[0].path, "/d");
  EXPECT_EQ(r.others[0].references[0].path, "/e");
  EXPECT_EQ(r.check.relative, 2e-4);
  EXPECT_EQ(r.precision, 0.125);
  EXPECT_EQ(r.slow_above_ns, 1000.5);
  EXPECT_EQ(r.memory_limit_bytes, int64_t{5} << 40);
  EXPECT_EQ(r.calm_pulse_ns, 1500.5);
  EXPECT_EQ(r.patience_ms, 25);
  EXPECT_EQ(r.cpus, (std::vector<int>{0, 3}));
  EXPECT_TRUE(r.cold_constants);
  EXPECT_EQ(r.device, 2);
  EXPECT_EQ(r.caches, Caches::kRotate);
  EXPECT_EQ(r.prove_with, 1);
  EXPECT_TRUE(r.wary);
}

TEST(RunnerProtocol, RunReplyComesBackAsItWas) {
  RunReply r;
  r.id = 7;
  r.outcome = Outcome::kOk;
  r.message = "line\nbreak and \xff bytes";
  r.run_ns = {1.25, 1e9 / 3};
  r.cpu_ns = {1, 2};
  r.cut = true;
  r.isolation = "strict";
  r.input_sets = 2;
  r.max_error = 0.125;
  r.sentinel_before_ns = 100;
  r.sentinel_after_ns = 101;
  r.memory_before_ns = 300;
  r.memory_after_ns = 301;
  r.disturbed = 1, r.slices = 40, r.retaken = 12, r.pulse_ns = 1600.5;
  r.run_ms = 12.5;
  r.device_state = "1980 MHz, 41 C";
  r.facts = {{"one", 1.5}, {"two", 2}};
  r.difference = {"out", {3, 17}, "nan", "1.5"};
  r.doubted = true;
  const Result<RunReply> back = parse_run_reply(to_json(r));
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->run_ns, r.run_ns);
  EXPECT_EQ(back->cpu_ns, r.cpu_ns);
  EXPECT_TRUE(back->cut);
  EXPECT_EQ(back->isolation, "strict");
  EXPECT_EQ(back->input_sets, 2);
  EXPECT_EQ(back->max_error, 0.125);
  EXPECT_EQ(back->device_state, "1980 MHz, 41 C");
  EXPECT_EQ(back->facts, r.facts);
  EXPECT_EQ(back->sentinel_after_ns, 101);
  EXPECT_EQ(back->memory_before_ns, 300);
  EXPECT_EQ(back->memory_after_ns, 301);
  EXPECT_EQ(back->disturbed, 1);
  EXPECT_EQ(back->slices, 40);
  EXPECT_EQ(back->retaken, 12);
  EXPECT_EQ(back->pulse_ns, 1600.5);
  EXPECT_THAT(back->message, HasSubstr("line\nbreak"));
  EXPECT_EQ(back->difference.output, "out");
  EXPECT_EQ(back->difference.index, (std::vector<int64_t>{3, 17}));
  EXPECT_EQ(back->difference.found, "nan");
  EXPECT_EQ(back->difference.expected, "1.5");
  EXPECT_TRUE(back->doubted);
}

TEST(RunnerProtocol, ARaceAndItsReplyComeBackAsTheyWere) {
  RaceRequest race{.base = example(), .candidates = {{std::string(64, 'b'), {1e-3, 0}}}};
  race.rounds = 4;
  race.samples = 2;
  race.other_samples = 0;
  race.memory_disturbed_above_ns = 345;
  const Result<RunnerMessage> message = parse_runner_message(to_json(race));
  ASSERT_TRUE(message.is_ok()) << message.message();
  const RaceRequest there = std::get<RaceRequest>(*message);
  EXPECT_EQ(to_json(there), to_json(race));
  EXPECT_EQ(there.samples, 2);
  EXPECT_EQ(there.other_samples, 0);
  EXPECT_EQ(there.memory_disturbed_above_ns, 345);

  RaceReply reply;
  reply.id = 3;
  RaceReply::Candidate& c = reply.candidates.emplace_back();
  c.outcome = Outcome::kOk;
  c.run_ns = {1, 2}, c.cpu_ns = {1, 2}, c.sentinel_ns = {100, 100}, c.memory_ns = {300, 301};
  c.other_ns = {5};
  c.turns = 4, c.discarded = 2, c.disturbed = 1, c.slices = 40, c.retaken = 12, c.pulse_ns = 1600.5;
  reply.device_sick = true;
  const Result<RaceReply> back = parse_race_reply(to_json(reply));
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(to_json(*back), to_json(reply));
  EXPECT_EQ(back->candidates[0].memory_ns, c.memory_ns);
  EXPECT_EQ(back->candidates[0].other_ns, c.other_ns);
  EXPECT_EQ(back->candidates[0].turns, 4);
  EXPECT_EQ(back->candidates[0].discarded, 2);
  EXPECT_EQ(back->candidates[0].disturbed, 1);
  EXPECT_EQ(back->candidates[0].slices, 40);
  EXPECT_EQ(back->candidates[0].retaken, 12);
  EXPECT_EQ(back->candidates[0].pulse_ns, 1600.5);
  EXPECT_TRUE(back->device_sick);
}

TEST(RunnerProtocol, InfiniteErrorArrivesAsAVeryLargeOne) {
  RunReply r;
  r.outcome = Outcome::kWrongAnswer;
  r.max_error = std::numeric_limits<double>::infinity();
  const Result<RunReply> back = parse_run_reply(to_json(r));
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_GT(back->max_error, 1e300);
}

TEST(RunnerProtocol, ProbeAndCancelComeBack) {
  ProbeReply p;
  p.hardware = "a cpu";
  p.version = "1";
  p.isolation = "process";
  p.isolation_missing = "net: refused";
  p.peaks = {.float32 = {100, 199.5}, .bfloat16 = {200, 398}, .int8 = {400, 790}};
  p.bandwidths.levels = {{2 << 20, {100, 200}}, {INT64_MAX, {11, 20}}};
  p.devices = {{.ordinal = 1,
                .name = "a gpu",
                .arch = "sm_90",
                .uuid = "GPU-1",
                .multiprocessors = 132,
                .driver_version = 13000,
                .memory_bytes = int64_t{141} << 30,
                .l2_bytes = 50 << 20,
                .peak_gflops = 66'900,
                .half_peak_gflops = 990'000,
                .byte_peak_gflops = 1'980'000,
                .fingerprint = "a gpu sm_90"}};
  p.no_device = "none asked";
  const Result<ProbeReply> back = parse_probe_reply(to_json(p));
  ASSERT_TRUE(back.is_ok()) << back.message();
  ASSERT_EQ(back->devices.size(), 1u);
  EXPECT_EQ(back->devices[0].peak_of(DType::kFloat32), 66'900);
  EXPECT_EQ(back->devices[0].peak_of(DType::kBFloat16), 990'000);
  EXPECT_EQ(back->devices[0].peak_of(DType::kInt8), 1'980'000);
  EXPECT_EQ(back->isolation, "process");
  EXPECT_EQ(back->isolation_missing, "net: refused");
  EXPECT_EQ(back->peaks.float32, p.peaks.float32);
  EXPECT_EQ(back->peaks.bfloat16, p.peaks.bfloat16);
  EXPECT_EQ(back->peaks.int8, p.peaks.int8);
  EXPECT_EQ(back->peaks.of(DType::kFloat32, 2), 199.5);
  EXPECT_EQ(back->peaks.of(DType::kBFloat16, 1), 200);
  EXPECT_EQ(back->peaks.of(DType::kInt8, 2), 790);
  EXPECT_EQ(back->peaks.of(DType::kInt8, 3), 0);
  EXPECT_EQ(back->bandwidths.of(1 << 20, 1), 100);
  EXPECT_EQ(back->bandwidths.of(3 << 20, 2), 200) << "each thread has half of it";
  EXPECT_EQ(back->bandwidths.of(3 << 20, 1), 11);
  EXPECT_EQ(back->bandwidths.of(1 << 20, 3), 0) << "not measured";
  EXPECT_EQ(CpuBandwidths{}.of(1, 1), 0);
  EXPECT_EQ(back->hardware, "a cpu");
  EXPECT_EQ(to_json(*back), to_json(p));
  ASSERT_EQ(back->devices.size(), 1u);
  EXPECT_EQ(back->devices[0].memory_bytes, int64_t{141} << 30);
  EXPECT_EQ(back->devices[0].fingerprint, "a gpu sm_90");
  EXPECT_EQ(std::get<ProbeRequest>(*parse_runner_message(to_json(ProbeRequest{3}))).max_threads, 3);
  EXPECT_TRUE(std::get<ProbeRequest>(*parse_runner_message(to_json(ProbeRequest{0, true}))).devices_only);
  EXPECT_EQ(std::get<CancelRequest>(*parse_runner_message(to_json(CancelRequest{9}))).id, 9u);
}

TEST(RunnerProtocol, RefusesWithTheKey) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = to_json(example());
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return parse_run_request(text.replace(at, from.size(), to)).message();
  };
  EXPECT_EQ(with("\"repeats\":7", "\"repeats\":0"),
            "run request: repeats: expected an integer from 1 to 1000, found 0.");
  EXPECT_EQ(with("\"repeats\":7", "\"repeats\":1.5"),
            "run request: repeats: expected an integer from 1 to 1000, found 1.5.");
  EXPECT_EQ(with("\"precision\":0.125", "\"precision\":-1"),
            "run request: precision: expected a number from 0 to 1, found -1.");
  EXPECT_EQ(with("\"repeats\":7,", ""), "run request: repeats: expected a value, found nothing.");
  EXPECT_EQ(with("\"min_repeat_ms\":2.5", "\"min_repeat_ms\":-1"),
            "run request: min_repeat_ms: expected a number from 0 to 60000, found -1.");
  EXPECT_EQ(with("[0,3]", "[0,\"3\"]"),
            "run request: cpus: expected integers from 0 to 1048576, found [0,\"3\"].");
  EXPECT_EQ(with("[0,3]", "[-1]"), "run request: cpus: expected integers from 0 to 1048576, found [-1].");
  EXPECT_THAT(with("5497558138880", "18446744073709551615"), HasSubstr("memory_limit_bytes"));
  EXPECT_EQ(with("\"rotate\"", "\"icy\""),
            "run request: caches: expected warm, flush or rotate, found \"icy\".");
  EXPECT_THAT(with("[\"data\",\"/a\"]", "[\"data\"]"), HasSubstr("[argument, path] pairs"));
  EXPECT_EQ(parse_runner_message("{\"kind\":\"dance\"}").message(),
            "message to the runner: kind: expected run, race, probe or cancel, found \"dance\".");
  EXPECT_EQ(parse_runner_message("[1]").message(),
            "message to the runner: expected an object { ... }, found [1].");
  EXPECT_THAT(parse_runner_message("garbage").message(),
              HasSubstr("message to the runner: line 1, column 1: not JSON: "));
  EXPECT_THAT(parse_run_reply(to_json(RunReply{})).message(),
              HasSubstr("either an outcome or an error, found neither"));
  std::string reply = to_json(RunReply{.outcome = Outcome::kCrashed});
  EXPECT_EQ(parse_run_reply(reply)->outcome, Outcome::kCrashed);
  reply.replace(reply.find("crashed"), 7, "splendid");
  EXPECT_THAT(parse_run_reply(reply).message(),
              HasSubstr("run reply: outcome: expected a known one, found \"splendid\""));
}

TEST(RunnerProtocol, DamagedTextNeverCrashesTheParser) {
  const RandomSeed seed(20240607);
  std::mt19937 random(seed);
  const std::string good = to_json(example());
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (unsigned n = random() % 4 + 1; n > 0; --n) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        default:
          text.insert(at, 1, "{}[]\",:019eE-"[random() % 13]);
          break;
      }
      if (text.empty()) text.push_back('x');
    }
    refused += !parse_runner_message(text).is_ok();
  }
  EXPECT_GT(refused, 1000);
  EXPECT_FALSE(parse_runner_message(std::string(1 << 20, '[')).is_ok()) << "deep nesting";
}

class Frames : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  static Deadline in(milliseconds t) { return steady_clock::now() + t; }
  int ends_[2];
};

TEST_F(Frames, ArriveWholeHoweverLarge) {
  const std::string large(5 << 20, 'q');
  std::thread writer([&] {
    EXPECT_TRUE(write_frame(ends_[1], "", in(seconds(20))).is_ok());
    EXPECT_TRUE(write_frame(ends_[1], large, in(seconds(20))).is_ok());
  });
  EXPECT_EQ(*read_frame(ends_[0], in(seconds(20))), "");
  EXPECT_TRUE(*read_frame(ends_[0], in(seconds(20))) == large);
  writer.join();
}

TEST_F(Frames, EveryWaitEnds) {
  EXPECT_EQ(read_frame(ends_[0], in(milliseconds(20))).status().code(), StatusCode::kDeadlineExceeded);
  ASSERT_EQ(write(ends_[1], "\x10\0\0\0ab", 6), 6);  // a frame that never ends
  EXPECT_EQ(read_frame(ends_[0], in(milliseconds(20))).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(write_frame(ends_[0], std::string(8 << 20, 'x'), in(milliseconds(20))).code(),
            StatusCode::kDeadlineExceeded);
}

TEST_F(Frames, PeerThatIsGoneIsUnavailable) {
  close(ends_[1]);
  ends_[1] = -1;
  EXPECT_EQ(read_frame(ends_[0], in(seconds(5))).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(write_frame(ends_[0], "x", in(seconds(5))).code(), StatusCode::kUnavailable);
}

TEST_F(Frames, ImpossibleLengthIsRefused) {
  ASSERT_EQ(write(ends_[1], "\xff\xff\xff\xff", 4), 4);
  EXPECT_EQ(read_frame(ends_[0], in(seconds(5))).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tuner
