// The C API: what an application meets, from opening to running, and every way in which it can go wrong.
#include "deploy/runtime/tuner_runtime_api.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/deploy/heard.h"
#include "tests/deploy/runtime_fixture.h"
#include "tests/random_seed.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using testing::kConv;
using testing::kMatmul;
using testing::kSoftmax;
using testing::Operands;
using testing::use_once;

using RuntimeApiTest = testing::ListeningTest;
using testing::Heard;

TEST_F(RuntimeApiTest, ATunedWorkloadRunsItsConfigAndIsRight) {
  const std::string config = tune(kMatmul), of_conv = tune(kConv);
  tuner_source* source = open(path("t.db"));
  EXPECT_EQ(use_once(source, kMatmul), "");
  EXPECT_EQ(use_once(source, kConv), "");
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(source, testing::workload_of(kMatmul).key().c_str(), &f), TUNER_OK)
      << tuner_last_error();
  const tuner_answer answer = describe(f);
  EXPECT_STREQ(answer.kind, "exact");
  EXPECT_EQ(answer.config, config);
  EXPECT_EQ(answer.target, host_target().name());
  EXPECT_STREQ(answer.note, "");
  EXPECT_EQ(answer.threads, 1);
  tuner_release(f);
  EXPECT_TRUE(heard_.lines.empty()) << heard_.lines[0];
}

TEST_F(RuntimeApiTest, OperandsAreThoseOfTheWorkloadWhateverTheKernelPacks) {
  tune(kMatmul);
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(open(path("t.db")), kMatmul.c_str(), &f), TUNER_OK) << tuner_last_error();
  ASSERT_EQ(tuner_num_operands(f), 4);
  const char* names[] = {"a", "b", "bias", "out"};
  const char* roles[] = {"input", "constant", "constant", "output"};
  for (int i = 0; i < 4; ++i) {
    tuner_operand o{};
    ASSERT_EQ(tuner_get_operand(f, i, &o), TUNER_OK);
    EXPECT_STREQ(o.name, names[i]);
    EXPECT_STREQ(o.role, roles[i]);
    EXPECT_STREQ(o.dtype, "float32");
    int64_t elements = 1;
    for (int d = 0; d < o.rank; ++d) elements *= o.shape[d];
    EXPECT_EQ(elements * 4, o.bytes) << o.name;
  }
  tuner_operand o{};
  EXPECT_EQ(tuner_get_operand(f, 4, &o), TUNER_INVALID);
  EXPECT_STREQ(tuner_last_error(), "tuner_get_operand: expected an index from 0 to 3, found 4");
  tuner_release(f);
}

// Its operand "out" is one, in and out; calls add up.
TEST_F(RuntimeApiTest, AnAccumulatedProductIsAddedToWhatOutHolds) {
  const std::string job = R"({"op": "matmul", "a": [13, 37], "b": [37, 51], "accumulate": true})";
  tune(job);
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(open(path("t.db")), job.c_str(), &f), TUNER_OK) << tuner_last_error();
  ASSERT_EQ(tuner_num_operands(f), 3);
  tuner_operand o{};
  ASSERT_EQ(tuner_get_operand(f, 2, &o), TUNER_OK);
  EXPECT_STREQ(o.name, "out");
  EXPECT_STREQ(o.role, "inout");
  Operands operands(job);
  ASSERT_EQ(tuner_run(f, nullptr, operands.pointers()), TUNER_OK) << tuner_last_error();
  EXPECT_EQ(operands.wrong(), 0u);
  ASSERT_EQ(tuner_run(f, nullptr, operands.pointers()), TUNER_OK) << tuner_last_error();
  EXPECT_GT(operands.wrong(), 600u) << "the second call adds again";
  std::vector<void*> args(operands.pointers(), operands.pointers() + 3);
  args[2] = args[0];
  EXPECT_EQ(tuner_run(f, nullptr, args.data()), TUNER_INVALID);
  EXPECT_THAT(tuner_last_error(), HasSubstr("operand 2 (out) overlaps operand 0 (a)"));
  tuner_release(f);
}

TEST_F(RuntimeApiTest, ConstantsMayBeFreedOncePackedAndLieAnywhere) {
  tune(kMatmul);
  tuner_source* source = open(path("t.db"));
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(source, kMatmul.c_str(), &f), TUNER_OK) << tuner_last_error();
  Operands operands(kMatmul);
  std::vector<std::vector<char>> odd;  // at addresses that no vector is loaded from
  std::vector<const void*> constants(4, nullptr);
  for (int i = 1; i <= 2; ++i) {
    tuner_operand o{};
    ASSERT_EQ(tuner_get_operand(f, i, &o), TUNER_OK);
    auto& bytes = odd.emplace_back(static_cast<size_t>(o.bytes) + 4);
    std::memcpy(bytes.data() + 4, operands.pointers()[i], static_cast<size_t>(o.bytes));
    constants[static_cast<size_t>(i)] = bytes.data() + 4;
  }
  tuner_packed* packed = nullptr;
  ASSERT_EQ(tuner_pack(f, constants.data(), &packed), TUNER_OK) << tuner_last_error();
  for (auto& bytes : odd) std::ranges::fill(bytes, '\xff');
  odd.clear();
  tuner_close(source);  // functions outlive their source
  sources_.clear();
  ASSERT_EQ(tuner_run(f, packed, operands.without_constants().data()), TUNER_OK) << tuner_last_error();
  EXPECT_EQ(operands.wrong(), 0u);
  tuner_free_packed(packed);
  tuner_release(f);
}

TEST_F(RuntimeApiTest, AnOperandThatCannotBeIsNamed) {
  tune(kMatmul);
  tuner_source* source = open(path("t.db"));
  tuner_function *f = nullptr, *softmax = nullptr;
  ASSERT_EQ(tuner_find(source, kMatmul.c_str(), &f), TUNER_OK) << tuner_last_error();
  ASSERT_EQ(tuner_find(source, kSoftmax.c_str(), &softmax), TUNER_OK) << tuner_last_error();
  Operands operands(kMatmul);
  std::vector<void*> args = operands.without_constants();
  EXPECT_EQ(tuner_run(f, nullptr, args.data()), TUNER_INVALID);
  EXPECT_THAT(tuner_last_error(), HasSubstr("has constant operands: give them to tuner_pack first"));
  std::vector<const void*> constants(4, nullptr);
  tuner_packed* packed = nullptr;
  EXPECT_EQ(tuner_pack(f, nullptr, &packed), TUNER_INVALID);
  EXPECT_EQ(tuner_pack(f, constants.data(), &packed), TUNER_INVALID);
  EXPECT_STREQ(tuner_last_error(), "operand 1 (b): expected the constant's 7548 bytes, found NULL");
  ASSERT_EQ(tuner_pack(f, operands.constants(), &packed), TUNER_OK) << tuner_last_error();
  void* const a = args[0];
  args[0] = nullptr;
  EXPECT_EQ(tuner_run(f, packed, args.data()), TUNER_INVALID);
  EXPECT_STREQ(tuner_last_error(), "operand 0 (a): expected 1924 bytes, found NULL");
  args[0] = static_cast<char*>(a) + 4;
  EXPECT_EQ(tuner_run(f, packed, args.data()), TUNER_INVALID);
  EXPECT_THAT(tuner_last_error(), HasSubstr("operand 0 (a): expected an address that is a multiple of 64"));
  args[0] = args[3];
  EXPECT_EQ(tuner_run(f, packed, args.data()), TUNER_INVALID);
  EXPECT_THAT(tuner_last_error(), HasSubstr("operand 3 (out) overlaps operand 0 (a)"));
  // 1924 bytes of a: the last line of 64 may not be the result's first, the next one may.
  auto* const piece = static_cast<char*>(tuner_allocate(1 << 14));
  args[0] = piece;
  args[3] = piece + 1920;
  EXPECT_EQ(tuner_run(f, packed, args.data()), TUNER_INVALID);
  EXPECT_THAT(tuner_last_error(), HasSubstr("operand 3 (out) overlaps operand 0 (a)"));
  args[3] = piece + 1984;
  EXPECT_EQ(tuner_run(f, packed, args.data()), TUNER_OK) << tuner_last_error();
  tuner_free(piece);
  Operands rows(kSoftmax);
  EXPECT_EQ(tuner_run(softmax, packed, rows.pointers()), TUNER_INVALID);
  EXPECT_THAT(tuner_last_error(), HasSubstr("were packed for another function"));
  EXPECT_EQ(tuner_run(softmax, nullptr, rows.pointers()), TUNER_OK) << tuner_last_error();
  EXPECT_EQ(rows.wrong(), 0u);
  tuner_free_packed(packed);
  tuner_release(f);
  tuner_release(softmax);
}

TEST_F(RuntimeApiTest, AWorkloadThatCannotBeIsOneLine) {
  tune(kSoftmax);
  tuner_source* source = open(path("t.db"));
  const auto refusal_of = [&](const char* workload) {
    tuner_function* f = nullptr;
    EXPECT_EQ(tuner_find(source, workload, &f), TUNER_INVALID) << workload;
    EXPECT_EQ(f, nullptr);
    return std::string(tuner_last_error());
  };
  EXPECT_EQ(refusal_of(R"({"op":"softmax","rows":0,"columns":4})"),
            "rows: expected an integer from 1 to 2147483648, found 0.");
  EXPECT_THAT(refusal_of("v1 softmax rows=1"), HasSubstr("columns"));
  EXPECT_THAT(refusal_of(""), ::testing::Not(HasSubstr("\n")));
  EXPECT_EQ(tuner_find(nullptr, "x", nullptr), TUNER_INVALID);
}

TEST_F(RuntimeApiTest, AFallbackIsSaidOnceForEachWorkload) {
  tune(kConv);
  tuner_source* first = open(path("t.db"));
  const std::string untuned = R"({"op":"softmax","rows":5,"columns":33})";
  EXPECT_EQ(use_once(first, untuned), "");
  EXPECT_EQ(use_once(first, untuned), "");
  tuner_source* second = open(path("t.db"));
  EXPECT_EQ(use_once(second, untuned), "");
  ASSERT_EQ(heard_.lines.size(), 1u);
  EXPECT_THAT(heard_.lines[0], HasSubstr("v1 softmax rows=5 columns=33"));
  EXPECT_THAT(heard_.lines[0], HasSubstr("TUNER_CAPTURE=shapes.json, then tuner submit shapes.json"));
  EXPECT_EQ(heard_.lines[0].find('\n'), std::string::npos);
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(second, untuned.c_str(), &f), TUNER_OK);
  EXPECT_EQ(describe(f).note, heard_.lines[0]);
  EXPECT_STRNE(describe(f).kind, "exact");
  tuner_release(f);
}

TEST_F(RuntimeApiTest, CompiledOnceThenFoundByTheNextProcess) {
  tune(kConv);
  const auto compiled = [&](tuner_source* source) {
    tuner_function* f = nullptr;
    EXPECT_EQ(tuner_find(source, kConv.c_str(), &f), TUNER_OK) << tuner_last_error();
    const std::pair result(describe(f).compiled, std::string(describe(f).digest));
    tuner_release(f);
    return result;
  };
  const auto first = compiled(open(path("t.db")));
  EXPECT_EQ(first.first, 1);
  const auto again = compiled(open(path("t.db")));  // knows nothing of the first but the folder
  EXPECT_EQ(again.first, 0);
  EXPECT_EQ(again.second, first.second);
  EXPECT_EQ(use_once(open(path("t.db")), kConv), "");
  EXPECT_EQ(compiled(open(path("t.db"), {.cache_dir = ""})).first, 1) << "nothing is kept";

  // A cache that was damaged costs time and nothing else.
  const fs::path kernel = folder_ / "cache" / "tuner" / "kernels" / (first.second + ".so");
  ASSERT_TRUE(fs::exists(kernel));
  fs::resize_file(kernel, fs::file_size(kernel) / 2);
  EXPECT_EQ(compiled(open(path("t.db"))).first, 1);
  EXPECT_EQ(compiled(open(path("t.db"))).first, 0);
  for (const auto& entry : fs::directory_iterator(folder_ / "cache" / "tuner" / "kernels" / "by_source"))
    std::ofstream(entry.path()) << "nonsense";
  EXPECT_EQ(compiled(open(path("t.db"))).first, 1);
}

TEST_F(RuntimeApiTest, TheVeryCodeThatWasMeasuredIsTakenWhereItLies) {
  const Workload w = testing::workload_of(kSoftmax);
  const Target target = host_target();
  const auto instance = templates_for(w, target)->front()->apply(w, target);
  const auto program = (*instance)->instantiate((*instance)->space().at(0));
  ASSERT_TRUE(program.is_ok()) << program.message();
  const auto artifact = compile(*program, target);
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  const auto digest = save_artifact(*artifact, path("artifacts"));
  tune(kSoftmax, 1, *digest);
  tuner_function* f = nullptr;
  const std::string folder = path("artifacts");
  tuner_source* source = open(path("t.db"), {.artifact_dir = folder.c_str()});
  ASSERT_EQ(tuner_find(source, kSoftmax.c_str(), &f), TUNER_OK) << tuner_last_error();
  EXPECT_EQ(describe(f).digest, *digest);
  EXPECT_EQ(describe(f).compiled, 0);
  tuner_release(f);
  EXPECT_EQ(use_once(source, kSoftmax), "");
}

TEST_F(RuntimeApiTest, EightThreadsFindAndRunAtOnce) {
  tune(kMatmul, 2);
  tuner_source* source = open(path("t.db"), {.target = "cpu -threads=2"});
  const std::string untuned = R"({"op":"softmax","rows":6,"columns":40})";
  std::vector<std::string> problems(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < problems.size(); ++t)
    threads.emplace_back([&, t] {
      tuner_function *matmul = nullptr, *softmax = nullptr;
      if (tuner_find(source, kMatmul.c_str(), &matmul) != TUNER_OK ||
          tuner_find(source, untuned.c_str(), &softmax) != TUNER_OK)
        return void(problems[t] = tuner_last_error());
      Operands products(kMatmul, t), rows(untuned, t);
      tuner_packed* packed = nullptr;
      if (tuner_pack(matmul, products.constants(), &packed) != TUNER_OK)
        return void(problems[t] = tuner_last_error());
      for (int i = 0; i < 20 && problems[t].empty(); ++i) {
        products.poison();
        rows.poison();
        if (tuner_run(matmul, packed, products.without_constants().data()) != TUNER_OK ||
            tuner_run(softmax, nullptr, rows.pointers()) != TUNER_OK)
          problems[t] = tuner_last_error();
        else if (products.wrong() + rows.wrong() != 0)
          problems[t] = str("call ", i, ": ", products.wrong(), " and ", rows.wrong(), " wrong elements");
      }
      tuner_free_packed(packed);
      tuner_release(matmul);
      tuner_release(softmax);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(problems, ::testing::Each(std::string()));
  EXPECT_EQ(heard_.lines.size(), 1u) << "said once, though eight threads asked";
}

TEST_F(RuntimeApiTest, SeveralProcessesFillOneCache) {
  tune(kConv);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      tuner_source* source = nullptr;
      if (tuner_open(path("t.db").c_str(), nullptr, &source) != TUNER_OK) ::_exit(1);
      ::_exit(use_once(source, kConv).empty() ? 0 : 2);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(open(path("t.db")), kConv.c_str(), &f), TUNER_OK) << tuner_last_error();
  EXPECT_EQ(describe(f).compiled, 0);
  tuner_release(f);
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache"))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

TEST_F(RuntimeApiTest, AfterForkTheChildGoesOnWithWhatItHas) {
  tune(kMatmul, 2);
  tuner_source* source = open(path("t.db"), {.target = "cpu -threads=2"});
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(source, kMatmul.c_str(), &f), TUNER_OK) << tuner_last_error();
  Operands operands(kMatmul);
  tuner_packed* packed = nullptr;
  ASSERT_EQ(tuner_pack(f, operands.constants(), &packed), TUNER_OK);
  ASSERT_EQ(tuner_run(f, packed, operands.without_constants().data()), TUNER_OK);  // its pool has threads now
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);
    operands.poison();
    const bool ran = tuner_run(f, packed, operands.without_constants().data()) == TUNER_OK;
    tuner_free_packed(packed);
    tuner_release(f);
    tuner_close(source);
    ::_exit(ran && operands.wrong() == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  tuner_free_packed(packed);
  tuner_release(f);
}

TEST_F(RuntimeApiTest, AlgorithmsAreThoseAllowed) {
  tune(kConv);
  tuner_source* source = open(path("t.db"), {.algorithms = "winograd"});
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(source, kConv.c_str(), &f), TUNER_OK) << tuner_last_error();
  EXPECT_STREQ(describe(f).algorithm, "winograd");
  EXPECT_STRNE(describe(f).kind, "exact") << "what is tuned is direct";
  tuner_release(f);
  ASSERT_EQ(tuner_find(open(path("t.db"), {.algorithms = "direct"}), kConv.c_str(), &f), TUNER_OK);
  EXPECT_STREQ(describe(f).algorithm, "direct");
  EXPECT_STREQ(describe(f).kind, "exact");
  tuner_release(f);
  EXPECT_THAT(refusal(path("t.db"), TUNER_INVALID, {.constants = "icy"}),
              HasSubstr("tuner_options.constants: expected warm or cold, found \"icy\""));
  EXPECT_THAT(refusal(path("t.db"), TUNER_INVALID, {.algorithms = "magic"}),
              HasSubstr("tuner_options.algorithms: no algorithm is called \"magic\""));
}

TEST_F(RuntimeApiTest, ADatabaseIsReadWhileItIsWritten) {
  tune(kConv);
  auto writer = Store::open(path("t.db"), Store::Mode::kWrite);
  ASSERT_TRUE(writer.is_ok()) << writer.message();
  tuner_source* source = open(path("t.db"));
  std::atomic<bool> done{false};
  std::thread daemon([&] {
    for (int i = 0; !done; ++i)
      CHECK((*writer)->add_job({.id = str("w", i), .tasks = {{"w", "t"}}, .search = "random"}).is_ok()) << i;
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(use_once(source, kConv), "");
    const std::string shape = str(R"({"op":"softmax","rows":3,"columns":)", 20 + i, "}");
    EXPECT_EQ(use_once(source, shape), "");
    EXPECT_EQ(use_once(open(path("t.db")), kConv), "");
  }
  done = true;
  daemon.join();
}

TEST_F(RuntimeApiTest, FilesThatCannotBeOpenedSayWhy) {
  EXPECT_EQ(refusal(path("none.db"), TUNER_NOT_FOUND),
            path("none.db") +
                ": there is no database yet. The first `tuner submit FILE` makes it; or give another file "
                "to tuner_open()");
  EXPECT_EQ(refusal("", TUNER_INVALID),
            "tuner_open: path is empty, expected a database or a bundle; NULL opens the default database");
  fs::create_directories(folder_ / "folder");
  EXPECT_THAT(refusal(path("folder"), TUNER_NOT_FOUND),
              HasSubstr("there is no manifest.json in this folder"));
  write("text.db", "this is no database, but long enough to be looked at by SQLite ........................");
  EXPECT_THAT(refusal(path("text.db"), TUNER_INVALID),
              AllOf(HasSubstr("text.db"), EndsWith(". Give another file to tuner_open()")));
  tune(kConv);
  const auto size = fs::file_size(path("t.db"));
  fs::copy_file(path("t.db"), path("cut.db"));
  fs::resize_file(path("cut.db"), size / 2 / 4096 * 4096);
  tuner_source* source = nullptr;  // found out on opening or on the first question, never answered
  tuner_options options{.struct_bytes = sizeof options, .message = Heard::hear, .message_user = &heard_};
  if (tuner_open(path("cut.db").c_str(), &options, &source) == TUNER_OK) {
    tuner_function* f = nullptr;
    EXPECT_EQ(tuner_find(source, kConv.c_str(), &f), TUNER_FAILED) << tuner_last_error();
    tuner_close(source);
  }
  EXPECT_THAT(tuner_last_error(), HasSubstr("cut.db"));
  EXPECT_THAT(refusal(path("t.db"), TUNER_INVALID, {.target = "llvm -nonsense"}), HasSubstr("-nonsense"));
  EXPECT_THAT(refusal(path("t.db"), TUNER_INVALID, {.target = "cuda -arch=sm_80"}),
              HasSubstr("launched by the C file"));
  options = {.struct_bytes = 3};
  EXPECT_EQ(tuner_open(path("t.db").c_str(), &options, &source), TUNER_INVALID);
  EXPECT_THAT(tuner_last_error(), HasSubstr("struct_bytes"));
}

TEST_F(RuntimeApiTest, ADatabaseOfANewerReleaseIsRefused) {
  tune(kSoftmax);
  std::fstream file(path("t.db"), std::ios::in | std::ios::out | std::ios::binary);
  constexpr int kUserVersion = 60;  // in the header of an SQLite file: the schema's version, big-endian
  file.seekp(kUserVersion);
  file.write("\0\0\0\x63", 4);
  file.close();
  EXPECT_THAT(refusal(path("t.db"), TUNER_INVALID), HasSubstr("written by a newer tuner"));
}

TEST_F(RuntimeApiTest, AnOlderProgramsShorterOptionsAreTaken) {
  tune(kSoftmax);
  tuner_options options{.target = "cpu"};
  options.struct_bytes = offsetof(tuner_options, cache_dir);
  options.cache_dir = reinterpret_cast<const char*>(1);  // of which the older program knew nothing
  tuner_source* source = nullptr;
  ASSERT_EQ(tuner_open(path("t.db").c_str(), &options, &source), TUNER_OK) << tuner_last_error();
  tuner_close(source);
}

TEST_F(RuntimeApiTest, AnOlderProgramsShorterAnswerIsNotWrittenBehind) {
  tune(kSoftmax);
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(open(path("t.db")), kSoftmax.c_str(), &f), TUNER_OK) << tuner_last_error();
  tuner_answer answer{.struct_bytes = offsetof(tuner_answer, verdict), .verdict = "mine", .raced_ns = 7};
  ASSERT_EQ(tuner_describe(f, &answer), TUNER_OK) << tuner_last_error();
  EXPECT_STREQ(answer.verdict, "mine");
  EXPECT_EQ(answer.raced_ns, 7);
  tuner_release(f);
}

TEST(TunerAllocate, MemoryIsAlignedAndZeroedEachTime) {
  for (int k = 0; k < 50; ++k) {
    auto* const bytes = static_cast<unsigned char*>(tuner_allocate(100));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0U);
    EXPECT_EQ(std::count(bytes, bytes + 100, 0), 100) << k;
    std::memset(bytes, 0xff, 100);
    tuner_free(bytes);
  }
}

// --- bundles ---

// Of no other test: notes are said once in a process.
const std::string kBundled = R"({"op":"softmax","rows":9,"columns":71})";

class BundleTest : public RuntimeApiTest {
 protected:
  // The folder that `tuner build` writes, of one softmax kernel.
  nlohmann::ordered_json make_bundle() {
    const Workload w = testing::workload_of(kBundled);
    const Target target = host_target();
    const auto instance = templates_for(w, target)->front()->apply(w, target);
    const auto program = (*instance)->instantiate((*instance)->space().at(0));
    const auto artifact = compile(*program, target);
    CHECK(artifact.is_ok()) << artifact.message();
    auto kernel = nlohmann::ordered_json::parse(artifact->manifest.to_json());
    kernel.erase("digest");
    kernel["workload"] = w.key();
    kernel["template"] = "softmax_cpu";
    kernel["config"] = {{"rows", 4}};
    kernel["algorithm"] = "direct";
    kernel["answer"] = {{"kind", "nearest"}, {"note", "not tuned itself"}};
    kernel["instruction_sets"] = nlohmann::ordered_json::array({"sse4.2"});
    fs::create_directories(folder_ / "bundle" / "lib");
    write("bundle/lib/libmine.so", artifact->binary);
    return {{"format", 1},
            {"bundle", "mine"},
            {"library", "lib/libmine.so"},
            {"digest", artifact->manifest.digest},
            {"kernels", {kernel}}};
  }
  std::string bundle_refusal(const nlohmann::ordered_json& manifest) {
    write("bundle/manifest.json", manifest.dump());
    return refusal(path("bundle"), TUNER_FAILED);
  }
};

TEST_F(BundleTest, ItsKernelsAreLoadedAndItsNotesSaid) {
  write("none", "");
  const auto manifest = make_bundle();
  write("bundle/manifest.json", manifest.dump());
  tuner_source* source = open(path("bundle"));
  EXPECT_EQ(use_once(source, kBundled), "");
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(source, kBundled.c_str(), &f), TUNER_OK);
  EXPECT_STREQ(describe(f).kind, "nearest");
  EXPECT_STREQ(describe(f).config, "rows=4");
  EXPECT_EQ(describe(f).compiled, 0);
  tuner_release(f);
  EXPECT_EQ(heard_.lines, std::vector<std::string>{"not tuned itself"});
  EXPECT_EQ(use_once(open(path("bundle/manifest.json")), kBundled), "");
  EXPECT_THAT(use_once(source, kConv), HasSubstr("has no kernel for v1 conv2d"));
}

TEST_F(BundleTest, WhatIsDamagedIsNamed) {
  const auto manifest = make_bundle();
  auto broken = manifest;
  broken["digest"] = std::string(64, '0');
  EXPECT_THAT(bundle_refusal(broken), HasSubstr("the bundle is damaged or of two builds"));
  broken = manifest;
  broken["kernels"][0].erase("entry");
  EXPECT_THAT(bundle_refusal(broken),
              HasSubstr("kernels[0]: manifest: entry: expected a value, found nothing."));
  broken = manifest;
  broken["kernels"][0]["workload"] = 7;
  EXPECT_THAT(bundle_refusal(broken), HasSubstr("kernels[0]: workload"));
  broken["format"] = 2;
  EXPECT_THAT(bundle_refusal(broken),
              HasSubstr("format: expected 1, found 2; the bundle is of another release"));
  broken.erase("kernels");
  EXPECT_THAT(bundle_refusal(broken), HasSubstr("expected an object with \"kernels\""));
  write("bundle/manifest.json", "{");
  EXPECT_THAT(refusal(path("bundle"), TUNER_FAILED), HasSubstr("expected JSON"));
}

TEST_F(BundleTest, AKernelForAnotherCpuIsNotRun) {
  auto manifest = make_bundle();
  manifest["kernels"][0]["instruction_sets"].push_back("avx4096");
  write("bundle/manifest.json", manifest.dump());
  EXPECT_THAT(use_once(open(path("bundle")), kBundled), HasSubstr("this CPU lacks avx4096"));
  EXPECT_THAT(use_once(open(path("bundle"), {.algorithms = "winograd"}), kBundled),
              HasSubstr("it is there by direct, and allowed is winograd"));
  EXPECT_THAT(use_once(open(path("bundle"), {.target = "llvm -mcpu=haswell"}), kBundled),
              HasSubstr(" on \"llvm -mcpu=haswell"));
  // Another one of the same workload, for a CPU with less, is.
  auto other = manifest["kernels"][0];
  other["instruction_sets"] = nlohmann::ordered_json::array();
  other["config"] = {{"rows", 8}};
  other["algorithm"] = "tf32";
  manifest["kernels"].push_back(other);
  write("bundle/manifest.json", manifest.dump());
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(open(path("bundle")), kBundled.c_str(), &f), TUNER_OK) << tuner_last_error();
  EXPECT_STREQ(describe(f).config, "rows=8");
  tuner_release(f);
  EXPECT_THAT(use_once(open(path("bundle"), {.algorithms = "tf32x3"}), kBundled),
              HasSubstr("it is there by tf32, and allowed is tf32x3"));
}

// What failed is tried again: here the library was away.
TEST_F(BundleTest, AnAnswerThatFailedIsNotKept) {
  write("bundle/manifest.json", make_bundle().dump());
  tuner_source* source = open(path("bundle"));
  fs::rename(folder_ / "bundle/lib/libmine.so", folder_ / "away.so");
  EXPECT_THAT(use_once(source, kBundled), HasSubstr("cannot load"));
  fs::rename(folder_ / "away.so", folder_ / "bundle/lib/libmine.so");
  EXPECT_EQ(use_once(source, kBundled), "");
}

TEST_F(BundleTest, AnArgumentThatIsNoneOfTheWorkloadIsRefused) {
  auto manifest = make_bundle();
  manifest["kernels"][0]["args"][0]["name"] = "y";
  write("bundle/manifest.json", manifest.dump());
  EXPECT_THAT(use_once(open(path("bundle")), kBundled),
              HasSubstr("its argument y is no operand of v1 softmax"));
}

// A user's kernel: a file of its own beside the library, found by its key, since its source is not here.
TEST_F(BundleTest, AKernelOfAUserIsFoundByItsKey) {
  const std::string key = "v1 kernel mine rows=9 source=" + std::string(64, 'a');
  auto manifest = make_bundle();
  auto& kernel = manifest["kernels"][0];
  kernel["workload"] = key;
  kernel["digest"] = manifest["digest"];
  kernel["artifact"] = "artifact/mine.so";
  kernel["answer"]["note"] = "";
  manifest.erase("library");
  manifest.erase("digest");
  fs::create_directories(folder_ / "bundle/artifact");
  fs::rename(folder_ / "bundle/lib/libmine.so", folder_ / "bundle/artifact/mine.so");
  write("bundle/manifest.json", manifest.dump());
  tuner_function* f = nullptr;
  ASSERT_EQ(tuner_find(open(path("bundle")), key.c_str(), &f), TUNER_OK) << tuner_last_error();
  ASSERT_EQ(tuner_num_operands(f), 2);
  tuner_operand out{};
  ASSERT_EQ(tuner_get_operand(f, 1, &out), TUNER_OK);
  EXPECT_STREQ(out.role, "output");
  EXPECT_EQ(out.bytes, 9 * 71 * 4);
  std::vector<void*> operands = {tuner_allocate(out.bytes), tuner_allocate(out.bytes)};
  EXPECT_EQ(tuner_run(f, nullptr, operands.data()), TUNER_OK) << tuner_last_error();
  EXPECT_FLOAT_EQ(*static_cast<float*>(operands[1]), 1.0F / 71);
  for (void* operand : operands) tuner_free(operand);
  tuner_release(f);
  EXPECT_EQ(tuner_find(open(path("bundle")), "v1 kernel other source=b", &f), TUNER_NOT_FOUND);
  EXPECT_THAT(tuner_last_error(), HasSubstr("has no kernel for v1 kernel other"));
  write("bundle/artifact/mine.so", "other bytes");
  EXPECT_EQ(tuner_find(open(path("bundle")), key.c_str(), &f), TUNER_FAILED);
  EXPECT_THAT(tuner_last_error(), HasSubstr("mine.so: digest is "));
  tune(kSoftmax);
  EXPECT_EQ(tuner_find(open(path("t.db")), key.c_str(), &f), TUNER_NOT_FOUND);
  EXPECT_THAT(tuner_last_error(), HasSubstr("a database has no code of v1 kernel mine"));
}

// Whatever a manifest holds, opening and asking answer with a kernel or one line.
TEST_F(BundleTest, FuzzedManifests) {
  const std::string whole = make_bundle().dump();
  const RandomSeed seed(3);
  std::mt19937_64 random(seed);
  int opened = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = whole;
    for (uint64_t edits = 1 + random() % 2; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0)
        text.resize(at + 1);
      else
        text[at] = "0{}[],:\"x-"[random() % 10];
    }
    write("bundle/manifest.json", text);
    tuner_source* source = nullptr;
    tuner_options options{.struct_bytes = sizeof options, .message = Heard::hear, .message_user = &heard_};
    if (tuner_open(path("bundle").c_str(), &options, &source) == TUNER_OK) {
      ++opened;
      tuner_function* f = nullptr;
      const bool found = tuner_find(source, kBundled.c_str(), &f) == TUNER_OK;
      EXPECT_TRUE(found || *tuner_last_error() != 0) << text;
      tuner_release(f);
      tuner_close(source);
    } else {
      EXPECT_THAT(tuner_last_error(), ::testing::Not(HasSubstr("\n"))) << text;
    }
  }
  EXPECT_GT(opened, 20);
}

}  // namespace
}  // namespace tuner
