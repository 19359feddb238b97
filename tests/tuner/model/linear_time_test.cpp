// B1: every reader and every list takes time in proportion to its input. Thread CPU time of an input and of
// one of 16 times its size: at most 24 times as much. The two take turns, the least time of each counts, and
// there are more turns while the result is above the bound: neighbours on the machine slow down some of them.
#include <gtest/gtest.h>
#include <time.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>

#include "compiler_core/base/json_reader.h"
#include "db/exchange/import_file.h"
#include "db/resolve/answer_lock.h"
#include "db/store.h"
#include "templates/source_kernel/range_comments.h"
#include "templates/workload/workload.h"
#include "tests/support/keep_memory.h"
#include "tests/support/temporary_folder.h"
#include "tuner/daemon/edge/answers.h"
#include "tuner/daemon/tables/workers.h"
#include "tuner/jobs/job_file.h"
#include "tuner/jobs/t1/value_list.h"
#include "tuner/model/model_file.h"
#include "tuner/model/onnx.pb.h"
#include "tuner/model/tensor_file.h"

namespace tuner {
namespace {

constexpr int kGrowth = 16;
constexpr double kMostGrowth = 24;
constexpr int kLeastTurns = 4, kMostTurns = 40;

// Importers read on threads of their own: there the process's time counts.
double cpu_s(clockid_t of) {
  timespec now{};
  clock_gettime(of, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// `prepare(n)` makes an input of size n; what it returns is timed.
using Prepare = std::function<std::function<void()>(int n)>;
void expect_linear(const char* what, int n, const Prepare& prepare, clockid_t of = CLOCK_THREAD_CPUTIME_ID) {
  keep_memory();
  const std::function<void()> small = prepare(n), large = prepare(n * kGrowth);
  const auto shorten = [&](const std::function<void()>& call, double* least_s) {
    const double begin = cpu_s(of);
    call();
    *least_s = std::min(*least_s, cpu_s(of) - begin);
  };
  double small_s = std::numeric_limits<double>::max(), large_s = small_s;
  for (int turn = 0; turn < kMostTurns && (turn < kLeastTurns || large_s > kMostGrowth * small_s); ++turn) {
    shorten(small, &small_s);
    shorten(large, &large_s);
  }
  std::printf("%-36s %7d: %8.3f ms, 16 times that: %8.3f ms, %.1f times\n", what, n, 1e3 * small_s,
              1e3 * large_s, large_s / small_s);
  EXPECT_LE(large_s / small_s, kMostGrowth) << what;
}

std::string list_of(int n, const std::function<std::string(int)>& element) {
  std::string all = "[";
  for (int i = 0; i < n; ++i) all += (i == 0 ? "" : ",") + element(i);
  return all + "]";
}

// A text that the reader takes, whole; a reader that stops early would be fast for nothing.
Prepare text_to(const std::function<std::string(int)>& make,
                const std::function<Status(const std::string&)>& read) {
  return [=](int n) {
    return [text = make(n), read] {
      const Status status = read(text);
      ASSERT_TRUE(status.is_ok()) << status.message();
    };
  };
}

TEST(LinearTime, B1Json) {
  const auto parse = [](const std::string& text) { return json_input::parse(text).status(); };
  expect_linear("json, empty objects", 4'000,
                text_to([](int n) { return list_of(n, [](int) { return "{}"; }); }, parse));
  expect_linear("json, lists in lists", 8'000,
                text_to([](int n) { return list_of(n, [](int i) { return str("[", i, ",[]]"); }); }, parse));
  expect_linear("json, objects of two keys", 5'000,
                text_to([](int n) { return list_of(n, [](int) { return R"({"a":1,"b":{}})"; }); }, parse));
  expect_linear("json, keys of one object", 2'000,
                text_to(
                    [](int n) {
                      std::string text = "{";
                      for (int i = 0; i < n; ++i) text += str(i == 0 ? "" : ",", "\"key", i, "\":{}");
                      return text + "}";
                    },
                    parse));
  expect_linear("json, one text", 50'000,
                text_to([](int n) { return "\"" + std::string(n, 'x') + "\""; }, parse));
  expect_linear("json, lines", 10'000, text_to([](int n) { return std::string(n, '\n') + "[]"; }, parse));
}

TEST(LinearTime, B1JobFiles) {
  expect_linear("job file, entries", 250,
                text_to(
                    [](int n) {
                      return list_of(n, [](int i) {
                        return str(R"({"op":"matmul","a":[)", i + 1,
                                   R"(,64],"b":[64,64],"target":"cpu","uses":3})");
                      });
                    },
                    [](const std::string& text) { return parse_job_text(text, "job.json").status(); }));
}

TEST(LinearTime, B1LockFiles) {
  expect_linear("lock file, lines", 500,
                text_to(
                    [](int n) {
                      std::string text = "tuner-lock 1\n";
                      for (int i = 0; i < n; ++i)
                        text += str(
                            "llvm -mcpu=haswell -threads=1 | v1 matmul b=1 m=", i + 1,
                            " n=96 k=128 ta=0 tb=0 bias=0 act=none dtype=float32 const=none | warm | any | "
                            "matmul_cpu v3 | tile_m=8 tile_n=32\n");
                      return text;
                    },
                    [](const std::string& text) { return AnswerLock::parse(text, "a.lock").status(); }));
}

// Times what `make` writes to a file, once it is there.
Prepare file_to(const TemporaryFolder& folder, const std::function<std::string(int)>& make,
                const std::function<void(const std::string& path, int n)>& read) {
  return [&folder, make, read](int n) {
    const std::string path = folder.file(str(n, ".npy"));
    std::ofstream(path, std::ios::binary) << make(n);
    return [path, read, n] { read(path, n); };
  };
}

TEST(LinearTime, B1Logs) {
  const TemporaryFolder folder;
  int stores = 0;
  const auto import = [&](const std::string& path, int n) {
    const auto store = Store::open(folder.file(str("db", ++stores)), Store::Mode::kWrite).value();
    const auto report = exchange::import_file(path, *store, {});
    ASSERT_TRUE(report.is_ok()) << report.message();
    EXPECT_EQ(report->accounted(), n);
  };
  // Every second line is damaged: what is wrong with each is reported.
  const auto autotvm = [](int n) {
    std::string text;
    for (int i = 0; i < n; ++i)
      text += i % 2 == 1
                  ? "{\"input\": [\n"
                  : str(R"({"input": ["llvm -mcpu=core-avx2", "dense_nopack.x86", [["TENSOR", [8, )", i + 1,
                        R"(], "float32"]], {}], "config": {"index": 1, "code_hash": null, "entity": )",
                        R"([["tile_k", "sp", [-1, 4]]]}, "result": [[0.00)", i + 1,
                        R"(], 0, 1.5, 1600000000.5], "version": 0.2, "tvm_version": "0.8.dev0"})", "\n");
    return text;
  };
  expect_linear("AutoTVM log, lines", 2'000, file_to(folder, autotvm, import), CLOCK_PROCESS_CPUTIME_ID);
  // As records_format.md says them: a job, and its trials.
  const auto records = [](int n) {
    std::string text =
        R"({"format":2,"kind":"job","job_uid":"u","job":"j1","request":"","tasks":[{"workload":"w","target":"t",)"
        R"("algorithms":"","uses":2}],"trials":9,"search":"random","seed":7,"options":{"min_repeat_ms":1,"repeats":9,)"
        R"("build_timeout_s":10,"run_timeout_s":10,"memory_limit_bytes":1,"cut_factor":2},"stop_below":0,)"
        R"("time_limit_s":0,"state":"finished","message":"","submitted":"2023-11-14T22:13:21Z","finished":""})"
        "\n";
    for (int i = 1; i < n; ++i)
      text += str(
          R"({"format":2,"kind":"trial","job_uid":"u","job":"j1","trial":"t)", i + 3, R"(","home_seq":)",
          i + 3,
          R"(,"task_index":0,"workload":"w","target":"t","algorithms":"","template":"toy","template_version":3,)",
          R"("config":{"a":)", i,
          R"(},"state":"done","leases":1,"rng_counter":1,"model_digest":"m","terminal":true,"attempt":1,)",
          R"("outcome":"ok","cut":false,"message":"","time_ns":1.5,"run_ns":[1.5,2e3],"cpu_ns":[1,2],)",
          R"("sentinel_before_ns":1,"sentinel_after_ns":1,"queue_ms":0,"build_ms":0.25,"run_ms":0,"max_error":0,)",
          R"("peak_gflops":0,"artifact":"","hardware":"h","toolchain":"t","harness_abi":1,"worker":"w",)",
          R"("worker_incarnation":"","host":"x","options":{"min_repeat_ms":1,"repeats":9,"build_timeout_s":10,)",
          R"("run_timeout_s":10,"memory_limit_bytes":4294967296,"cut_factor":2,"precision":0.02},)",
          R"("when":"2023-11-14T22:13:21.000000Z"})", "\n");
    return text;
  };
  expect_linear("records, lines", 500, file_to(folder, records, import), CLOCK_PROCESS_CPUTIME_ID);
}

// Results of other tuners: one document each, with a row per config.
TEST(LinearTime, B1ResultsOfOtherTuners) {
  const TemporaryFolder folder;
  int stores = 0;
  const auto import = [&](const std::string& path, int n) {
    const auto store = Store::open(folder.file(str("db", ++stores)), Store::Mode::kWrite).value();
    const auto report = exchange::import_file(path, *store, {});
    ASSERT_TRUE(report.is_ok()) << report.message();
    EXPECT_EQ(report->foreign.all(), n);
  };
  const auto t4 = [](int n) {
    return "{\"results\": " +
           list_of(n,
                   [](int i) {
                     return str(
                         R"({"configuration": {"TILE": )", i,
                         R"(}, "times": {"runtimes": [1.5, 2]}, "invalidity": "correct", "correctness": 1})",
                         "\n");
                   }) +
           "}";
  };
  expect_linear("T4 document, results", 500, file_to(folder, t4, import), CLOCK_PROCESS_CPUTIME_ID);
  const auto cache = [](int n) {
    std::string text =
        R"({"device_name": "d", "tune_params_keys": ["TILE"], "objective": "time", "cache": {)";
    for (int i = 0; i < n; ++i)
      text += str("\n\"", i, R"(": {"TILE": )", i, R"(, "time": 2.5, "times": [2, 3]},)");
    return text;
  };
  expect_linear("Kernel Tuner cache, rows", 500, file_to(folder, cache, import), CLOCK_PROCESS_CPUTIME_ID);
}

TEST(LinearTime, B1Expressions) {
  expect_linear("list of values, elements", 200,
                text_to([](int n) { return list_of(n, [](int i) { return str(i + 1, "*2"); }); },
                        [](const std::string& text) { return t1::value_list(text).status(); }));
  expect_linear("list of values, comprehension", 200,
                text_to([](int n) { return str("[i * 3 % 64 for i in range(", n, ") if i >= 0]"); },
                        [](const std::string& text) { return t1::value_list(text).status(); }));
  expect_linear("range comments", 100,
                text_to(
                    [](int n) {
                      std::string text;
                      for (int i = 0; i < n; ++i) text += str("// %RANGE% A", i, " a 1:4:1\n");
                      return text;
                    },
                    [](const std::string& text) { return range_comments(text).status(); }));
}

TEST(LinearTime, B1Models) {
  const TemporaryFolder folder;
  const auto chain = [](int n) {
    onnx::ModelProto model;
    model.add_opset_import()->set_version(17);
    auto& graph = *model.mutable_graph();
    auto& x = *graph.add_input();
    x.set_name("v0");
    x.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    x.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(4);
    for (int i = 0; i < n; ++i) {
      auto& node = *graph.add_node();
      node.set_op_type(i % 2 == 0 ? "Relu" : "Sigmoid");
      node.add_input(str("v", i));
      node.add_output(str("v", i + 1));
    }
    graph.add_output()->set_name(str("v", n));
    return model.SerializeAsString();
  };
  expect_linear("ONNX model, nodes", 250, file_to(folder, chain, [](const std::string& path, int) {
                  const auto read = read_model_file(path, {});
                  ASSERT_TRUE(read.is_ok()) << read.message();
                }));
  const auto tensor = [](int n) {
    tuner_arg out{
        .name = "t", .role = "input", .dtype = "float32", .layout = "", .rank = 1, .shape = {}, .bytes = 0};
    out.shape[0] = n;
    out.bytes = int64_t{4} * n;
    return out;
  };
  // Both are too large for what the allocator keeps: each read gets fresh pages.
  expect_linear("npy file, elements", 4'000'000,
                file_to(
                    folder, [&](int n) { return npy_bytes(tensor(n), random_tensor(tensor(n), 1).data()); },
                    [&](const std::string& path, int n) {
                      const auto read = read_tensor_file(path, tensor(n));
                      ASSERT_TRUE(read.is_ok()) << read.message();
                    }));
}

TEST(LinearTime, B1ListsOfJobsAndWorkers) {
  const TemporaryFolder folder;
  int stores = 0;
  const auto job = [](int i) {
    return JobRow{.id = str("j", i + 1),
                  .request_id = str("r", i),
                  .tasks = {{str("v1 matmul b=1 m=", i + 1,
                                 " n=96 k=128 ta=0 tb=0 bias=0 act=none dtype=float32 const=none"),
                             "llvm -mcpu=haswell -threads=1"}},
                  .trials = 1,
                  .search = "random"};
  };
  for (const bool best : {false, true})
    expect_linear(best ? "list of jobs, with their best" : "list of jobs, with what is known", 64,
                  [&](int n) {
                    const std::shared_ptr<Store> store =
                        Store::open(folder.file(str("jobs", ++stores)), Store::Mode::kWrite).value();
                    for (int i = 0; i < n; ++i) EXPECT_TRUE(store->add_job(job(i)).is_ok());
                    return std::function<void()>([store, best, n] {
                      const Answers answers(*store, [](const Target&) { return Present{}; });
                      v1::ListRequest request;
                      request.set_without_best(!best);
                      request.set_with_tuned(true);
                      request.set_after("");
                      int listed = 0;
                      do {
                        v1::ListReply reply;
                        ASSERT_TRUE(answers.list(request, std::nullopt, &reply).is_ok());
                        listed += reply.jobs_size();
                        request.set_after(reply.next());
                      } while (!request.after().empty());
                      EXPECT_EQ(listed, n);
                    });
                  });
  expect_linear("list of workers", 250, [](int n) {
    const auto workers = std::make_shared<Workers>(15'000);
    for (int i = 0; i < n; ++i)
      EXPECT_TRUE(workers->enter(
          str("s", i), {.life = {str("w", i), "1"}, .targets = {"llvm -mcpu=haswell -threads=1"}}, 1'000));
    return std::function<void()>(
        [workers, n] { EXPECT_EQ(workers->list(2'000).size(), static_cast<size_t>(n)); });
  });
}

}  // namespace
}  // namespace tuner
