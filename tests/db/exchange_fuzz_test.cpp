// The parsers of exchanged records against damaged input: whatever comes, the answer is rows or one line
// saying why not, the same again the second time, and what was read can be written and read back.
#include <gtest/gtest.h>

#include <cmath>

#include "db/exchange/formats.h"
#include "tests/damaged_text.h"

namespace tuner::exchange {
namespace {

const std::string kJson[] = {
    R"({"format":2,"kind":"trial","job_uid":"j1@5#00000000","job":"j1","trial":"t3","home_seq":3,"task_index":0,"workload":"v1 work","target":"cpu one","algorithms":"","template":"toy","template_version":3,"config":{"a":1,"b":-2},"state":"done","leases":1,"rng_counter":18446744073709551615,"model_digest":"m","terminal":true,"attempt":1,"outcome":"ok","cut":false,"message":"","time_ns":1.5,"run_ns":[1.5,2e3],"cpu_ns":[1],"sentinel_before_ns":1,"sentinel_after_ns":1,"queue_ms":0,"build_ms":0.25,"run_ms":0,"max_error":0,"peak_gflops":0,"artifact":"","hardware":"h","toolchain":"t","harness_abi":1,"worker":"w","worker_incarnation":"","host":"x","options":{"min_repeat_ms":1,"repeats":9,"build_timeout_s":10,"run_timeout_s":10,"memory_limit_bytes":4294967296,"cut_factor":2,"precision":0.02},"when":"2023-11-14T22:13:21.000000Z"})",
    R"({"format":2,"kind":"job","job_uid":"u","job":"j1","request":"","tasks":[{"workload":"w","target":"t","algorithms":"","uses":2}],"trials":9,"search":"random","seed":7,"options":{"min_repeat_ms":1,"repeats":9,"build_timeout_s":10,"run_timeout_s":10,"memory_limit_bytes":1,"cut_factor":2},"stop_below":0,"time_limit_s":0,"state":"finished","message":"","submitted":"2023-11-14T22:13:21Z","finished":""})",
    R"({"format":2,"kind":"race","job_uid":"u","job":"j1","task_index":0,"workload":"w","target":"t","algorithms":"","winner":"t3","tied":["t3"],"finalists":[{"trial":"t3","samples_ns":[1,2],"sentinel_ns":[1,1],"process":[0,1]}],"time_ns":1,"time_low_ns":1,"time_high_ns":1,"ratio":1,"ratio_low":1,"ratio_high":1,"regret_bound":0,"options":{"min_repeat_ms":1,"processes":9,"rounds":5,"limit_s":20},"hardware":"h","toolchain":"t","harness_abi":1,"worker":"w","worker_incarnation":"","host":"x","when":""})",
    R"({"format":2,"kind":"foreign","of":"autotvm","task":"c [1]","target":"llvm","outcome":"ok","time_ns":5,"when":"","source":"a.log","source_format":"autotvm","source_header":"","imported":"","document":"{}"})"};
const std::string kAutotvm[] = {
    R"({"input": ["llvm", "conv", [["TENSOR", [1, 8], "float32"], null], {}], "config": {"index": 3, "code_hash": null, "entity": [["t", "sp", [-1, 4]], ["u", "ot", true]]}, "result": [[0.5, 1e-6], 0, 1.5, 1795202171.8], "version": 0.2, "tvm_version": "0.19.0"})",
    R"({"input": ["llvm", "conv", [], {}], "config": {"index": 3, "entity": []}, "result": [[1000000000.0], 7, 5, 1795202171], "version": 0.2})"};
const std::string kT4[] = {
    R"({"schema_version":"1.0.0","results":[{"configuration":{"b":16,"s":"}]\""},"times":{"runtimes":[1.5,2]},"invalidity":"correct","correctness":1,"measurements":[{"name":"time","value":1,"unit":"ms"}],"timestamp":"2023-12-21 10:44:42+00:00"},{"configuration":{},"times":{},"invalidity":"compile","correctness":0}],"metadata":{"kernel_name":"k"}})"};
const std::string kKernelTuner[] = {
    R"({"schema_version":"1.1.0","device_name":"d","kernel_name":"k","problem_size":[4,4],"tune_params_keys":["b","s"],"tune_params":{"b":[1,2],"s":["x"]},"objective":"time","cache":{"1,x":{"b":1,"s":"}\"","time":2.5,"times":[2.5,3],"compile_time":7,"timestamp":"2023-12-21 10:44:42+00:00"},"2,x":{"b":2,"s":"x","time":"CompilationFailedConfig"}}})",
    R"({"tune_params_keys":["b"],"cache":{
"1":{"b":1,"time":1e20},
"2":{"b":2,"time":0.5},)"};
const std::string kCsv[] = {
    "tile,unroll,time_ms,status,target\n4,1,0.5,ok,cpu\n8,\"a \"\"b\"\"\",,crashed,cpu\n", ""};
constexpr std::string_view kPieces[] = {"1e-320",
                                        "\r\n",
                                        "\"format\":1,",
                                        "\"results\":[",
                                        "\"kind\":\"job\",",
                                        "\"entity\":[[",
                                        ";",
                                        "1.5;2",
                                        "\"time_ns\"",
                                        "t0",
                                        "\"cache\":{",
                                        "\"tune_params_keys\":["};

template <class Check>
int read_all(std::span<const std::string> seeds, uint64_t salt, Check check) {
  return testing::check_damaged(seeds, kPieces, salt, check);
}

TEST(ExchangeFuzz, JsonLines) {
  const int good = read_all(kJson, 1, [](const std::string& text) -> bool {
    const auto row = parse_json_line(text);
    if (!row) {
      EXPECT_TRUE(testing::one_line(row.message())) << row.message();
      EXPECT_EQ(parse_json_line(text).message(), row.message());
      return false;
    }
    const std::string written = json_line(*row);
    const auto again = parse_json_line(written);
    EXPECT_TRUE(again.is_ok()) << again.message();
    EXPECT_EQ(again ? json_line(*again) : "", written);
    if (const auto* trial = std::get_if<ExchangedTrial>(&*row)) {
      (void)autotvm_line(*trial);
      (void)csv_line(*trial);
      (void)t4_result(*trial);
    }
    return true;
  });
  EXPECT_GT(good, testing::kDamagedRounds / 20);  // the edits leave some lines whole: the writers are reached
  EXPECT_LT(good, testing::kDamagedRounds);
}

TEST(ExchangeFuzz, AutotvmLines) {
  const int good = read_all(kAutotvm, 2, [](const std::string& text) -> bool {
    const auto record = parse_autotvm_line(text);
    if (!record) {
      EXPECT_TRUE(testing::one_line(record.message())) << record.message();
      return false;
    }
    EXPECT_EQ(record->document, text);
    EXPECT_TRUE(std::isfinite(record->time_ns));
    EXPECT_EQ(record->time_ns > 0, record->outcome == Outcome::kOk);
    return true;
  });
  EXPECT_GT(good, testing::kDamagedRounds / 20);
}

TEST(ExchangeFuzz, T4Documents) {
  const int good = read_all(kT4, 3, [](const std::string& text) -> bool {
    const auto document = split_t4(text);
    if (!document) {
      EXPECT_TRUE(testing::one_line(document.message()));
      return false;
    }
    bool all = document->broken.empty();
    std::vector<std::string> results;
    for (const T4Document::Element& element : document->elements) {
      EXPECT_GE(element.text.data(), text.data());
      EXPECT_LE(element.text.data() + element.text.size(), text.data() + text.size());
      const auto record = parse_t4_result(element.text, document->header, "task", "target");
      if (!record) {
        EXPECT_TRUE(testing::one_line(record.message())) << record.message();
        all = false;
        continue;
      }
      results.emplace_back(element.text);
      EXPECT_TRUE(std::isfinite(record->time_ns));
    }
    if (all) {
      const auto again = split_t4(t4_document(document->header, results));
      EXPECT_TRUE(again.is_ok());
      EXPECT_EQ(again ? again->elements.size() : 0, results.size());
    }
    return all;
  });
  EXPECT_GT(good, testing::kDamagedRounds / 20);
}

TEST(ExchangeFuzz, KernelTunerCaches) {
  const int good = read_all(kKernelTuner, 6, [](const std::string& text) -> bool {
    const auto document = split_kernel_tuner(text);
    if (!document) {
      EXPECT_TRUE(testing::one_line(document.message())) << document.message();
      return false;
    }
    bool all = document->broken.empty();
    std::vector<std::string> results;
    for (const T4Document::Element& element : document->elements) {
      EXPECT_GE(element.text.data(), text.data());
      EXPECT_LE(element.text.data() + element.text.size(), text.data() + text.size());
      const auto record = parse_kernel_tuner_row(element.text, document->header, "task", "target");
      all = all && record.is_ok();
      if (!record) {
        EXPECT_TRUE(testing::one_line(record.message())) << record.message();
        continue;
      }
      EXPECT_TRUE(std::isfinite(record->time_ns));
      EXPECT_EQ(record->time_ns > 0, record->outcome == Outcome::kOk);
      results.push_back(record->document);
    }
    // What was read is a T4 document, which reads as the same records.
    const auto again = split_t4(t4_document(document->header, results));
    EXPECT_TRUE(again.is_ok());
    EXPECT_EQ(again ? again->elements.size() : 0, results.size());
    return all;
  });
  EXPECT_GT(good, testing::kDamagedRounds / 20);
  EXPECT_LT(good, testing::kDamagedRounds);
}

// A message shows what was found: of a million brackets that would take a million calls.
TEST(ExchangeFuzz, DeepBracketsAreRefused) {
  const std::string deep = std::string(2'000'000, '[') + std::string(2'000'000, ']');
  const std::string t4 = str(R"({"configuration": )", deep, R"(, "times": {}, "invalidity": "correct"})");
  EXPECT_TRUE(testing::one_line(parse_t4_result(t4, "{}", "task", "target").message()));
  const std::string log =
      str(R"({"input": ["llvm", "conv", )", deep, R"(, {}], "config": {}, "version": 0.2})");
  EXPECT_TRUE(testing::one_line(parse_autotvm_line(log).message()));
  EXPECT_TRUE(check_other_tuner(str(R"({"i": 1, "r": 1, "v": )", deep, "}")).is_ok());
  EXPECT_TRUE(testing::one_line(parse_json_line(str(R"({"format": )", deep, "}")).message()));
  EXPECT_TRUE(testing::one_line(
      split_kernel_tuner(str(R"({"tune_params_keys": )", deep, R"(, "cache": {}})")).message()));
  EXPECT_TRUE(testing::one_line(
      parse_kernel_tuner_row(str(R"({"b": )", deep, "}"),
                             R"({"metadata": {"parameters": ["b"], "objective": "time"}})", "", "")
          .message()));
}

TEST(ExchangeFuzz, Tables) {
  std::string own = csv_header() + "\n";
  const auto trial = parse_json_line(kJson[0]);
  ASSERT_TRUE(trial.is_ok()) << trial.message();
  own += csv_line(std::get<ExchangedTrial>(*trial)) + "\n";
  const std::string seeds[] = {kCsv[0], own};
  const int good = read_all(seeds, 4, [](const std::string& text) -> bool {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto table = CsvTable::from_header(std::string_view(text).substr(0, end));
    if (!table) {
      EXPECT_FALSE(table.message().empty());
      return false;
    }
    bool all = true;
    for (size_t at = std::min(end + 1, text.size()); at < text.size();) {
      const size_t next = std::min(text.find('\n', at), text.size());
      const auto row = table->parse(std::string_view(text).substr(at, next - at), "task", "target");
      EXPECT_TRUE(row.is_ok() || !row.message().empty());
      all = all && row.is_ok();
      at = next + 1;
    }
    return all;
  });
  EXPECT_GT(good, testing::kDamagedRounds / 40);
}

TEST(ExchangeFuzz, Times) {
  const std::string seeds[] = {"2023-11-14T22:13:21.000001Z", "2023-12-21 10:44:42.5+01:00"};
  read_all(seeds, 5, [](const std::string& text) -> bool {
    const auto us = time_from_text(text);
    if (us) {
      EXPECT_EQ(time_from_text(time_text(*us)), us);
    }
    return us.has_value();
  });
}

}  // namespace
}  // namespace tuner::exchange
