// The memory of a compiled model: processes that run it share its weights, and each has an arena of its own,
// no more.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/graph/builder.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/packed_model.h"
#include "tests/tuner/processes.h"
#include "tuner/model/compiled_model.h"

namespace tuner {
namespace {

using namespace std::chrono_literals;
using testing::CommandResult;
using testing::eventually;
using testing::Process;

// What a process has besides arena and workspace: the table of steps, arguments of kernels, pages of heap and
// stack.
constexpr int64_t kBesidesBytes = 128 << 10;

// Two products with 9.4 MB of weights; what lies between them, 2.46 MB, is the arena, and no multiple of a
// large page.
graph::Graph network() {
  graph::GraphBuilder builder("large", model_evaluator());
  const auto weights = [&](const std::string& name, std::vector<int64_t> shape) {
    const graph::TensorType type{DType::kFloat32, std::move(shape)};
    std::vector<double> numbers(static_cast<size_t>(type.elements()));
    for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = std::sin(static_cast<double>(k)) / 32;
    return builder.constant(name, type, graph::Constant::of(numbers, type.dtype));
  };
  const auto product = [&](graph::ValueId in, graph::ValueId by, const std::string& result) {
    auto made = builder.add(
        {.name = result, .op = "MatMul", .attributes = {}, .inputs = {in, by}, .outputs = {}}, {result});
    CHECK(made.is_ok()) << made.message();
    return made->at(0);
  };
  const graph::ValueId x = builder.input("x", {DType::kFloat32, {200, 512}});
  const graph::ValueId between = product(x, weights("w1", {512, 3072}), "between");
  return builder.finish({product(between, weights("w2", {3072, 256}), "y")});
}

// With a word more, it makes a context and runs it.
constexpr char kProgram[] = R"(
#include <stdio.h>
#include "net.h"

static void* make(size_t bytes) { return memset(aligned_alloc(64, bytes), 0, bytes); }

int main(int count, char** words) {
  void* x = make(NET_X_BYTES);
  void* y = make(NET_Y_BYTES);
  tuner_context* context = NULL;
  if (count > 1 && (net_create(words[1], NULL, &context) != 0 || net_run(context, x, y) != 0)) return 1;
  puts("ready");
  fflush(stdout);
  pause();
  return 0;
}
)";

// The sum of some fields of /proc/PID/smaps, of one mapped file or of all memory.
int64_t mapped_bytes(pid_t pid, const std::vector<std::string>& fields, const std::string& file = "") {
  std::ifstream in(str("/proc/", pid, "/smaps"));
  std::string line;
  bool counts = false;
  int64_t sum = 0;
  while (std::getline(in, line)) {
    const std::string word = line.substr(0, line.find(' '));
    if (!word.ends_with(':'))
      counts = file.empty() || line.ends_with(file);
    else if (counts && std::ranges::count(fields, word.substr(0, word.size() - 1)) > 0)
      sum += 1024 * std::atoll(line.c_str() + word.size());
  }
  return sum;
}
int64_t private_bytes(pid_t pid, const std::string& file = "") {
  return mapped_bytes(pid, {"Private_Clean", "Private_Dirty"}, file);
}

class ModelMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status written =
        testing::write_packed(testing::packed_model(network(), "net", host_target()), at("net"));
    ASSERT_TRUE(written) << written.message();
    shell_.write("program.c", kProgram);
    const CommandResult made = shell_.run(
        "cc -std=c11 -O2 program.c -Inet/include -Lnet/lib -lnet -Wl,-rpath,$PWD/net/lib -pthread -o "
        "program");
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  std::string at(const std::string& name) const { return (shell_.folder() / name).string(); }
  std::unique_ptr<Process> start(const std::string& log, bool runs) const {
    std::vector<std::string> words{at("program")};
    if (runs) words.push_back(at("net/net.weights"));
    auto process = std::make_unique<Process>(words, at(log));
    EXPECT_TRUE(eventually(60s, [&] { return process->out() == "ready\n"; })) << process->err();
    return process;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(ModelMemory, ASecondProcessAddsItsArenaOnly) {
  const auto model = CompiledModel::open(at("net"));
  ASSERT_TRUE(model.is_ok()) << model.message();
  const tuner_model& table = model->table();
  const int64_t own = table.arena_bytes + table.workspace_bytes + table.workspace_bytes_per_thread;
  EXPECT_GT(table.arena_bytes, 2 << 20);
  const auto idle = start("idle", /*runs=*/false), first = start("first", true),
             second = start("second", true);
  for (const Process* process : {first.get(), second.get()}) {
    const pid_t pid = process->tree().at(0);
    const std::string file = at("net/net.weights");
    EXPECT_GE(mapped_bytes(pid, {"Rss"}, file), table.weights_bytes) << "read as a whole, to check it";
    EXPECT_EQ(private_bytes(pid, file), 0);
    EXPECT_EQ(mapped_bytes(pid, {"Anonymous"}, file), 0) << "copied";
    const int64_t grown = private_bytes(pid) - private_bytes(idle->tree().at(0));
    EXPECT_GE(grown, table.arena_bytes);
    EXPECT_LE(grown, own + kBesidesBytes) << "arena " << table.arena_bytes << ", with workspace " << own;
    RecordProperty("private_bytes", std::to_string(grown));
    RecordProperty("arena_and_workspace_bytes", std::to_string(own));
  }
}

}  // namespace
}  // namespace tuner
