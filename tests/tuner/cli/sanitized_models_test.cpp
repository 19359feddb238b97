// Programs that run compiled networks, under sanitizers: the calls of the header and what a context owns
// (address, undefined), and 8 threads with contexts and tensors of their own (thread). Kernels have no
// instrumentation, so Valgrind runs them, as code for AVX2. One small network here, all in the long suite
// (TUNER_TEST_ROUNDS).
#include <gtest/gtest.h>

#include "tests/models/networks.h"
#include "tests/models/recurrent_networks.h"
#include "tests/random_seed.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using testing::CommandResult;

// THREADS contexts, each with tensors that end where a page begins that nobody may touch. All of them give
// what the first run gave.
constexpr std::string_view kProgram = R"(#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include "net.h"

extern const tuner_model tuner_net_model;
static tuner_weights* weights;
static float* answers[16];

static void* tensor(int64_t bytes) { /* never freed */
  const size_t page = 4096, rounded = ((size_t)bytes + 63) / 64 * 64, pages = (rounded + page - 1) / page * page;
  char* room = mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED || mprotect(room + pages, page, PROT_NONE) != 0) exit(3);
  return room + pages - rounded;
}
static void* owned(int64_t bytes, int32_t exact) { /* tools see what lies behind it, byte by byte */
  void* memory = NULL;
  if (!exact) return tensor(bytes);
  if (posix_memalign(&memory, 64, (size_t)bytes) != 0) exit(3);
  return memory;
}

static void* runs(void* seed) {
  const tuner_model* const model = &tuner_net_model;
  tuner_context* context;
  const void* in[16];
  void* out[16];
  const int32_t first = seed == NULL;
  int32_t i, run;
  int64_t e;
  if (tuner_context_create(model, weights, NULL, &context) != 0) return "no context";
  for (i = 0; i < model->num_inputs; ++i) {
    float* const x = owned(model->inputs[i].bytes, first);
    for (e = 0; e < model->inputs[i].bytes / 4; ++e) x[e] = (float)((e * 37 + i) % 101) / 101 - 0.5f;
    in[i] = x;
  }
  for (i = 0; i < model->num_outputs; ++i) out[i] = owned(model->outputs[i].bytes, first);
  for (run = 0; run < RUNS; ++run) {
    if (tuner_context_run(context, in, out) != 0) return "a run failed";
    for (i = 0; i < model->num_outputs; ++i) {
      const float* const y = out[i];
      if (first && run == 0) {
        answers[i] = malloc((size_t)model->outputs[i].bytes);
        memcpy(answers[i], y, (size_t)model->outputs[i].bytes);
      }
      for (e = 0; e < model->outputs[i].bytes / 4; ++e)
        if (!isfinite(y[e]) || y[e] != answers[i][e]) return "another answer";
    }
  }
  tuner_context_destroy(context);
  for (i = 0; first && i < model->num_inputs; ++i) free((void*)in[i]);
  for (i = 0; first && i < model->num_outputs; ++i) free(out[i]);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  const char *fault, *wrong;
  int t;
  if (tuner_weights_open(&tuner_net_model, "out/net.weights", &weights) != 0) return 3;
  fault = runs(NULL);
  for (t = 0; t < THREADS; ++t)
    if (pthread_create(&threads[t], NULL, runs, threads) != 0) return 3;
  for (t = 0; t < THREADS; ++t)
    if (pthread_join(threads[t], (void**)&wrong) == 0 && wrong != NULL) fault = wrong;
  for (t = 0; t < tuner_net_model.num_outputs; ++t) free(answers[t]);
  tuner_weights_close(weights);
  if (fault != NULL) fprintf(stderr, "%s\n", fault);
  return fault == NULL ? 0 : 1;
}
)";

struct Network {
  std::string name, bytes;
};

// The smallest one first.
std::vector<Network> small_networks() {
  std::vector<Network> all;
  for (const std::string& name : testing::recurrent_network_names())
    all.push_back({name, *testing::recurrent_network(name, {.units = 24})});
  for (const std::string name : {"ocr", "speech_encoder"})
    all.push_back({name, *testing::network(name, {.image = 64, .narrower = 8})});
  return all;
}

class SanitizedModels : public ::testing::Test {
 protected:
  void SetUp() override {
    shell_.write("app.c", kProgram);
    networks_ = small_networks();
    networks_.resize(std::min<size_t>(networks_.size(), wanted_rounds(1)));
  }
  void expect_success(const std::string& script) {
    const CommandResult ran = shell_.run(script);
    EXPECT_EQ(ran.exit_code, 0) << script << "\n" << ran.out << ran.err;
  }
  bool compiler_has(const std::string& sanitizer) {
    shell_.write("probe.c", "int main(void) { return 0; }\n");
    return shell_.run(str("cc -fsanitize=", sanitizer, " probe.c -o probe && ./probe")).exit_code == 0;
  }
  void compile(const Network& network, const std::string& options = "") {
    shell_.write("net.onnx", network.bytes);
    expect_success("rm -rf out\ntuner compile net.onnx -o out --name net --no-tune " + options);
  }
  static std::string built(const std::string& flags, int threads, int runs) {
    return str("cc -std=c11 -D_GNU_SOURCE -O1 -g ", flags, " -DTHREADS=", threads, " -DRUNS=", runs,
               " -Iout/include app.c out/lib/libnet.a -lm -pthread -o app\n");
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
  std::vector<Network> networks_;
};

TEST_F(SanitizedModels, RunsTouchOnlyWhatIsTheirs) {
  if (!compiler_has("address,undefined")) GTEST_SKIP() << "no address sanitizer here";
  for (const Network& network : networks_) {
    SCOPED_TRACE(network.name);
    compile(network);
    expect_success(built("-fsanitize=address,undefined -fno-sanitize-recover=all", 1, 3) + "./app");
  }
}

TEST_F(SanitizedModels, EightThreadsShareTheWeightsOnly) {
  if (!compiler_has("thread")) GTEST_SKIP() << "no thread sanitizer here";
  for (const Network& network : networks_) {
    SCOPED_TRACE(network.name);
    compile(network);
    expect_success(built("-fsanitize=thread", 8, 20) + "TSAN_OPTIONS=halt_on_error=1 ./app");
  }
}

TEST_F(SanitizedModels, KernelsTouchOnlyTheirTensors) {
  if (wanted_rounds(1) == 1) GTEST_SKIP() << "in the long suite";
  if (shell_.run("valgrind --version").exit_code != 0) GTEST_SKIP() << "no Valgrind here";
  for (const Network& network : networks_) {
    SCOPED_TRACE(network.name);
    compile(network, "--target 'llvm -mcpu=haswell'");
    expect_success(built("", 1, 2) + "valgrind -q --error-exitcode=9 --leak-check=full ./app");
  }
}

}  // namespace
}  // namespace tuner
