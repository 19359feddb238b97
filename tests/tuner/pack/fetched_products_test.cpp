// Products whose tiles come by TMA, the whole way by the commands that a person types: packed, run by the
// runner, shipped as a bundle with NAME_pack, NAME_bind and NAME_launch. Kernels are those that NVRTC
// compiles; the driver for tests encodes their tensor maps and runs their text on the host
// (tests/measure_server/fake_cuda/source_module.h). So numbers of operands, extents and strides of manifests
// and launchers are those that the kernels mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler_core/codegen_cuda/cuda.h"
#include "measure_server/runner/pack_file.h"
#include "tests/tuner/command_line.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;

// Tails in every dimension; one with its operands as they are, one with a constant.
constexpr char kJobs[] = R"([
  {"op": "matmul", "name": "rows", "a": [37, 168], "b": [60, 168], "transpose_b": true, "bias": true,
   "dtype": "bfloat16", "target": "cuda -arch=sm_90a"},
  {"op": "matmul", "name": "packed", "a": [37, 168], "b": [168, 60], "constant": ["b"], "dtype": "bfloat16",
   "target": "cuda -arch=sm_90a"}
])";

class FetchedProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status there = nvrtc_available(); !there) GTEST_SKIP() << there.message();
    shell_.write("jobs.json", kJobs);
  }
  // On a host with the GPU for tests.
  std::string output_of(const std::string& script) {
    const CommandResult ran =
        shell_.run(str("export TUNER_LIBCUDA=" TUNER_FAKE_CUDA " TUNER_LIBNVML=" TUNER_FAKE_CUDA
                       " TUNER_NVRTC=" TUNER_FAKE_NVRTC
                       " TUNER_FAKE_CUDA_FAULTS=$PWD/faults TUNER_FAKE_CUDA_MAPS=$PWD/maps "
                       "TUNER_FAKE_CUDA_PROGRAMS=$PWD/programs\nmkdir -p programs\n",
                       script));
    EXPECT_EQ(ran.exit_code, 0) << script << "\n" << ran.out << ran.err;
    return ran.out;
  }
  // What became of each candidate of a pack: "task config" and its outcome.
  std::map<std::string, std::string> outcomes(const std::string& results) {
    std::istringstream lines(shell_.read(results));
    std::map<std::string, std::string> found;
    for (std::string line; std::getline(lines, line);) {
      const json row = json::parse(line);
      found[str(row["task"].dump(), " ", row["config"].get<std::string>())] = row["outcome"];
    }
    return found;
  }
  // The pack with one number of its tensor maps changed, in candidates that have some.
  int damage(const std::string& from, const std::string& to, const std::function<void(LaunchInfo&)>& change) {
    const Result<PackFile> file = PackFile::open((shell_.folder() / from).string());
    EXPECT_TRUE(file.is_ok()) << file.message();
    Pack pack = file->pack();
    int changed = 0;
    for (size_t t = 0; t < pack.tasks.size(); ++t) {
      for (size_t c = 0; c < pack.tasks[t].candidates.size(); ++c) {
        Artifact& artifact = pack.tasks[t].candidates[c].artifact;
        artifact = *file->artifact(t, c);
        for (LaunchInfo& launch : artifact.manifest.launches)
          if (!launch.tensor_maps.empty()) change(launch), ++changed;
      }
      for (size_t r = 0; r < pack.tasks[t].references.size(); ++r)
        pack.tasks[t].references[r].bytes = *file->reference(t, r);
      pack.tasks[t].checker = *file->checker(t);
    }
    const Status written = write_pack(pack, (shell_.folder() / to).string());
    EXPECT_TRUE(written.is_ok()) << written.message();
    return changed;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

TEST_F(FetchedProducts, APackIsRunByItsTensorMaps) {
  output_of("tuner pack jobs.json -o p.pack --candidates 5 --db none.db");
  output_of("runner run-pack p.pack -o p.jsonl --deadline 200");
  const auto right = outcomes("p.jsonl");
  EXPECT_GE(right.size(), 8u);
  int fetching = 0;
  for (const auto& [candidate, outcome] : right) {
    EXPECT_EQ(outcome, "ok") << candidate;
    fetching += candidate.find("tma=1") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(fetching, 2) << "the defaults fetch";
  EXPECT_THAT(shell_.read("maps"), HasSubstr("encoded"));
  EXPECT_THAT(shell_.read("maps"), Not(HasSubstr("refused")));
  EXPECT_EQ(shell_.read("faults"), "");

  // The runner gives the driver what the manifest says, so a wrong one is a wrong answer.
  const std::pair<const char*, std::function<void(LaunchInfo&)>> kDamages[] = {
      {"row_less", [](LaunchInfo& l) { --l.tensor_maps[0].map.extents[1]; }},
      {"strides", [](LaunchInfo& l) { l.tensor_maps[0].map.strides[0] -= 16; }},
      {"operand", [](LaunchInfo& l) { l.tensor_maps[0].operand = l.tensor_maps[0].operand == 0 ? 1 : 0; }},
  };
  for (const auto& [name, change] : kDamages) {
    SCOPED_TRACE(name);
    EXPECT_GE(damage("p.pack", str(name, ".pack"), change), 2);
    output_of(str("runner run-pack ", name, ".pack -o ", name, ".jsonl --deadline 200 || true"));
    for (const auto& [candidate, outcome] : outcomes(str(name, ".jsonl")))
      EXPECT_EQ(outcome == "ok", candidate.find("tma=1") == std::string::npos)
          << candidate << ": " << outcome;
  }
}

// Binds two sets of operands, launches them in turn, twice, and prints how many elements are wrong.
constexpr char kApplication[] = R"(#include <stdio.h>
#include <string.h>
#include PRODUCT_HEADER
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define OF(what) JOINED(PRODUCT, what)
#define DO(call) do { CUresult r = call; if (r != CUDA_SUCCESS) { printf("%s: %d\n", #call, (int)r); return 1; } } while (0)
enum { M = 37, N = 60, K = 168 };
static float a_of(int set, int i, int k) { return (float)((i * 5 + k * 3 + set) % 9 - 4); }
static float b_of(int set, int k, int j) { return (float)((k * 7 + j * 2 + set) % 11 - 5); }
static unsigned short bits(float x) { unsigned u; memcpy(&u, &x, 4); return (unsigned short)(u >> 16); }
static CUdeviceptr copied(const void* from, size_t bytes) {
  CUdeviceptr p = 0;
  if (cuMemAlloc(&p, bytes) != CUDA_SUCCESS || cuMemcpyHtoD(p, from, bytes) != CUDA_SUCCESS) return 0;
  return p;
}
int main(int argc, char** argv) {
  static char image[1 << 21];
  static unsigned short a[M * K], b[N * K];
  static float bias[N], out[M * N];
  CUcontext context;
  CUdeviceptr to[2];
  OF(_kernel) kernel;
  OF(_operands) operands[2];
  int wrong = 0;
  FILE* f = fopen(argv[argc - 1], "rb");
  if (f == NULL || fread(image, 1, sizeof image - 1, f) == 0) return 2;
  fclose(f);
  DO(cuInit(0));
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  DO(cuCtxSetCurrent(context));
  DO(OF(_load)(&kernel, image));
  for (int set = 0; set < 2; ++set) {
    CUdeviceptr b_at;
    for (int i = 0; i < M * K; ++i) a[i] = bits(a_of(set, i / K, i % K));
    for (int k = 0; k < K; ++k)
      for (int j = 0; j < N; ++j) b[IS_PACKED ? k * N + j : j * K + k] = bits(b_of(set, k, j));
    for (int j = 0; j < N; ++j) bias[j] = IS_PACKED ? 0 : (float)(j + set);
    b_at = copied(b, sizeof b);
    (void)bias;
    DO(cuMemAlloc(&to[set], sizeof out));
#if IS_PACKED
    {
      CUdeviceptr packed;
      DO(cuMemAlloc(&packed, PACKED_B_PACKED_BYTES));
      DO(packed_pack(&kernel, b_at, packed, NULL));
      DO(packed_bind(&operands[set], copied(a, sizeof a), packed, to[set], 0));
    }
#else
    DO(rows_bind(&operands[set], copied(a, sizeof a), b_at, copied(bias, sizeof bias), to[set], 0));
#endif
  }
  for (int turn = 0; turn < 4; ++turn) {
    const int set = turn % 2;
    DO(OF(_launch)(&kernel, &operands[set], NULL));
    DO(cuMemcpyDtoH(out, to[set], sizeof out));
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j) {
        float sum = IS_PACKED ? 0 : (float)(j + set);
        for (int k = 0; k < K; ++k) sum += a_of(set, i, k) * b_of(set, k, j);
        wrong += out[i * N + j] != sum;
      }
  }
  DO(OF(_unload)(&kernel));
  printf("%d wrong\n", wrong);
  return 0;
}
)";

TEST_F(FetchedProducts, ABundlesLauncherBindsPacksAndLaunches) {
  if (std::string(TUNER_CUDA_HEADERS).empty()) GTEST_SKIP() << "no cuda.h here";
  output_of("tuner build jobs.json -o out --db none.db");
  for (const char* name : {"rows", "packed"})
    EXPECT_THAT(shell_.read(str("out/cuda/", name, ".h")), HasSubstr("tma=1")) << "the default";
  shell_.write("main.c", kApplication);
  const auto printed = [&](const std::string& name) {
    return output_of(str(TUNER_CC " -std=c99 -Wall -Wextra -Werror -isystem " TUNER_CUDA_HEADERS
                                  " -Iout/cuda -DPRODUCT=",
                         name, " -DIS_PACKED=", name == "packed" ? 1 : 0, " -DPRODUCT_HEADER='\"", name,
                         ".h\"' main.c out/cuda/", name,
                         ".c " TUNER_FAKE_CUDA " -Wl,-rpath,$(dirname " TUNER_FAKE_CUDA
                         ") -o application\n./application out/cuda/",
                         name, ".cubin"));
  };
  EXPECT_EQ(printed("rows"), "0 wrong\n");
  EXPECT_EQ(printed("packed"), "0 wrong\n");
  EXPECT_THAT(shell_.read("maps"), Not(HasSubstr("refused")));
  // The application sees a launcher that binds the other operand.
  shell_.run("sed -i 's/operands->pointers\\[1\\], extents/operands->pointers[0], extents/' out/cuda/rows.c");
  EXPECT_NE(printed("rows"), "0 wrong\n");
}

}  // namespace
}  // namespace tuner
