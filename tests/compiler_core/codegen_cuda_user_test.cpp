// Users' kernels for GPUs become artifacts: what is compiled and launched, and what is refused in which
// words. Needs NVRTC, no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compiler_core/codegen_cuda/compile_confined.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/nvcc.h"
#include "compiler_core/codegen_cuda/ship_user_kernel.h"
#include "compiler_core/codegen_cuda/user_kernel.h"
#include "compiler_core/codegen_cuda/user_kernel_text.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/runtime/cuda_fit.h"
#include "tests/support/temporary_folder.h"

namespace tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Where nvcc is: that of the toolkit whose NVRTC is used, as an operator would list it; else empty.
std::string nvcc_here() {
  for (const char* place : {"/usr/local/cuda/bin/nvcc", "/usr/local/cuda-13.0/bin/nvcc", "/usr/bin/nvcc"})
    if (std::filesystem::exists(place)) return place;
  return {};
}

// By each of the two compilers.
std::string by = kNvrtcCompiler;
class UserKernelCuda : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    by = GetParam();
    setenv("TUNER_CUDA_COMPILER", TUNER_CUDA_COMPILER_PATH, 1);
    if (const Status able = can_compile_confined(); !able) GTEST_SKIP() << able.message();
    if (by == kNvrtcCompiler) return;
    if (nvcc_here().empty()) GTEST_SKIP() << "there is no nvcc here";
    setenv("TUNER_COMPILERS", ("cc,c++,nvcc=" + nvcc_here()).c_str(), 1);
  }
  void TearDown() override { unsetenv("TUNER_COMPILERS"); }
};
INSTANTIATE_TEST_SUITE_P(By, UserKernelCuda, ::testing::Values("nvrtc", "nvcc"),
                         [](const auto& info) { return std::string(info.param); });

constexpr char kScale[] = R"(#include "by.h"
extern "C" __global__ void __launch_bounds__(256) scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = BY * x[i] * FACTOR;
}
)";

// scale() over 1000 floats, as a job file would have it.
struct Made {
  std::string text = kScale, function = "scale", source = "scale.cu";
  ForeignLaunch launch{.grid = {8, 1, 1}, .block = {128, 1, 1}};
  std::vector<std::string> words = {"-DFACTOR=2"};
  std::vector<ForeignCode::Parameter> parameters = {
      {.type = "const float*", .name = "x", .operand = 0},
      {.type = "float*", .name = "y", .operand = 1},
      {.type = "int32_t", .name = "n", .bytes = std::string("\xe8\3\0\0", 4)}};
};
Program program_of(const Made& made) {
  Program program{.name = "tuner_kernel"};
  program.args = {make_buffer("x", DType::kFloat32, {1000}, MemoryScope::kGlobal, BufferRole::kInput),
                  make_buffer("y", DType::kFloat32, {1000}, MemoryScope::kGlobal, BufferRole::kOutput)};
  program.foreign = std::make_shared<const ForeignCode>(
      ForeignCode{.files = std::make_shared<const std::vector<ForeignCode::File>>(
                      std::vector<ForeignCode::File>{{"by.h", "#define BY 3\n"}, {made.source, made.text}}),
                  .cxx = true,
                  .compiler = by,
                  .words = made.words,
                  .source = made.source,
                  .function = made.function,
                  .parameters = made.parameters,
                  .launch = made.launch});
  return program;
}
Target target(const std::string& arch = "sm_90a") { return *parse_target("cuda -arch=" + arch); }
Result<Artifact> compiled(const Made& made, const std::string& arch = "sm_90a") {
  return compile_user_kernel(program_of(made), target(arch));
}
// The message of a config that is refused for good.
std::string refusal(const Made& made, const std::string& arch = "sm_90a") {
  const Result<Artifact> result = compiled(made, arch);
  EXPECT_FALSE(result.is_ok());
  if (result.is_ok()) return "";
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidConfig) << result.message();
  return result.message();
}

TEST_P(UserKernelCuda, ASourceBecomesACubinWithItsLaunch) {
  const Result<Artifact> artifact = compiled({});
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  const Manifest& m = artifact->manifest;
  EXPECT_EQ(m.kind, binary_kind::kCubin);
  EXPECT_EQ(m.abi_version, 4) << "it has a scalar";
  EXPECT_THAT(m.toolchain,
              ::testing::StartsWith(by == kNvrtcCompiler ? "nvrtc " : "source:nvcc Cuda compilation tools"));
  EXPECT_EQ(m.toolchain, *user_kernel_toolchain(*program_of({}).foreign));
  EXPECT_GE(toolkit_major(m.toolchain), 12);
  ASSERT_EQ(m.launches.size(), 1u);
  const LaunchInfo& launch = m.launches[0];
  EXPECT_EQ(launch.kernel, "scale");
  EXPECT_THAT(launch.grid, ElementsAre(8, 1, 1));
  EXPECT_THAT(launch.params, ElementsAre(0, 1));
  ASSERT_EQ(launch.scalars.size(), 1u);
  EXPECT_EQ(launch.scalars[0].place, 2);
  EXPECT_GT(launch.registers, 0);
  EXPECT_GE(launch.blocks_per_sm, 1);
  const Result<Manifest> back = parse_manifest(m.to_json());
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ(back->launches[0].scalars[0].bytes, std::string("\xe8\3\0\0", 4));
  // The knob is in the code, the same text gives the same bytes.
  EXPECT_EQ(compiled({})->binary, artifact->binary);
  Made other;
  other.words = {"-DFACTOR=4"};
  EXPECT_NE(compiled(other)->binary, artifact->binary);
}

TEST_P(UserKernelCuda, AKernelInANamespaceIsFoundByItsName) {
  Made made{.text =
                "namespace a { namespace b {\n__global__ void scale(const float* x, float* y, int n) "
                "{ y[threadIdx.x] = x[n]; } } }\n",
            .function = "a::b::scale"};
  const Result<Artifact> artifact = compiled(made);
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  EXPECT_EQ(artifact->manifest.launches[0].kernel, "_ZN1a1b5scaleEPKfPfi");
  made.function = "a::scale";
  EXPECT_THAT(refusal(made), HasSubstr("a::scale"));
}

TEST_P(UserKernelCuda, CubinsAreKeptByContent) {
  const TemporaryFolder folder;
  const auto with = [&](const Made& made) {
    return compile_user_kernel(program_of(made), target(), folder.file("c"));
  };
  const Result<Artifact> first = with({});
  ASSERT_TRUE(first.is_ok()) << first.message();
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.file("c")),
                         std::filesystem::directory_iterator());
  };
  EXPECT_EQ(count(), 1);
  const Result<Artifact> again = with({});
  ASSERT_TRUE(again.is_ok()) << again.message();
  EXPECT_EQ(again->manifest.to_json(), first->manifest.to_json());
  EXPECT_EQ(count(), 1);
  Made launched;  // another launch of the same cubin
  launched.launch.block = {64, 1, 1};
  EXPECT_NE(with(launched)->manifest.digest, first->manifest.digest);
  EXPECT_EQ(count(), 1);
}

TEST_P(UserKernelCuda, WhatTheCompilerRefusesComesBackCut) {
  EXPECT_THAT(refusal({.text = "__global__ void scale( {"}), HasSubstr("scale.cu(1): error"));
  std::string many;
  for (int i = 0; i < 500; ++i) many += "int f" + std::to_string(i) + "() { return oops; }\n";
  const std::string said = refusal({.text = many});
  EXPECT_LT(said.size(), 4200u);
  EXPECT_THAT(refusal({.text = "#error \x1b[31mred\n"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(refusal({.words = {"-DFACTOR=(2"}}), HasSubstr("error"));
}

TEST_P(UserKernelCuda, ASourceSeesNoFileOfTheHost) {
  for (const char* text : {"#include \"/etc/passwd\"\n", "#include </etc/passwd>\n",
                           "#define P \"/etc/passwd\"\n#include P\n"}) {
    const std::string said = refusal({.text = text});
    EXPECT_THAT(said, Not(HasSubstr("root:"))) << text;
    EXPECT_THAT(said, HasSubstr("/etc/passwd"));
  }
}

TEST_P(UserKernelCuda, ParametersAreThoseOfTheJobFile) {
  Made made;
  made.parameters.pop_back();
  EXPECT_EQ(refusal(made),
            "the kernel scale has 3 parameters (8, 8, 4 bytes), \"arguments\" has 2 (8, 8 bytes)");
  made = {};
  made.parameters[2].bytes.resize(8);
  EXPECT_THAT(refusal(made), HasSubstr("\"arguments\" has 3 (8, 8, 8 bytes)"));
  made = {};
  std::swap(made.parameters[1], made.parameters[2]);
  EXPECT_THAT(refusal(made), HasSubstr("\"arguments\" has 3 (8, 4, 8 bytes)"));
}

TEST_P(UserKernelCuda, LaunchesFitKernelAndDevice) {
  Made made;
  made.launch.block = {512, 1, 1};
  EXPECT_EQ(refusal(made), "the kernel allows 256 threads a block (__launch_bounds__), its launch has 512");
  made = {};
  made.launch.shared_bytes = 100 << 10;
  EXPECT_TRUE(compiled(made).is_ok());
  EXPECT_EQ(refusal(made, "sm_75"), "shared_bytes is 102400, 65536 there");
  made = {
      .text =
          "extern \"C\" __global__ void scale(const float* x, float* y, int n) {\n"
          "  __shared__ float s[10000];\n  extern __shared__ float d[];\n  s[threadIdx.x] = x[n];\n"
          "  __syncthreads();\n  d[threadIdx.x] = s[n];\n  __syncthreads();\n  y[threadIdx.x] = d[n];\n}\n"};
  made.launch.shared_bytes = 60 << 10;
  EXPECT_TRUE(compiled(made).is_ok()) << compiled(made).message();
  EXPECT_EQ(refusal(made, "sm_86"),
            "a block has 40000 bytes of static and 61440 bytes of dynamic shared memory, 101376 there");
  made.launch.shared_bytes = 200 << 10;
  EXPECT_THAT(refusal(made),
              HasSubstr("40000 bytes of static and 204800 bytes of dynamic shared memory, 232448"));
}

// One that was compiled elsewhere.
TEST_P(UserKernelCuda, CubinsAndPtxAreForTheirDevices) {
  const Result<Artifact> made = compiled({}, "sm_80");
  ASSERT_TRUE(made.is_ok()) << made.message();
  Made cubin{.text = made->binary, .source = "scale.cubin", .words = {}};
  cubin.launch.form = ForeignLaunch::Form::kCubin;
  for (const char* arch : {"sm_80", "sm_86"}) {
    const Result<Artifact> artifact = compiled(cubin, arch);
    ASSERT_TRUE(artifact.is_ok()) << arch << ": " << artifact.message();
    EXPECT_EQ(artifact->binary, made->binary);
    EXPECT_EQ(artifact->manifest.launches[0].registers, made->manifest.launches[0].registers);
  }
  EXPECT_EQ(refusal(cubin), "scale.cubin: is a cubin for sm_80, which sm_90a does not run");
  cubin.function = "other";
  EXPECT_EQ(refusal(cubin, "sm_80"), "scale.cubin: has no kernel other");
  cubin.function = "scale";
  cubin.text.resize(300);
  EXPECT_THAT(compiled(cubin, "sm_80").message(), HasSubstr("the file is cut short or damaged"));

  Made ptx{.text = ".version 8.0\n.target sm_80\n.visible .entry scale() { ret; }\n",
           .source = "scale.ptx",
           .words = {}};
  ptx.launch.form = ForeignLaunch::Form::kPtx;
  const Result<Artifact> artifact = compiled(ptx);
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  EXPECT_EQ(artifact->manifest.kind, binary_kind::kPtx);
  EXPECT_EQ(artifact->binary, ptx.text);
  EXPECT_TRUE(parse_manifest(artifact->manifest.to_json()).is_ok());
  EXPECT_EQ(refusal(ptx, "sm_75"), "scale.ptx: is PTX for sm_80, which sm_75 does not run");
  ptx.text.replace(ptx.text.find("sm_80"), 5, "sm_90a");
  EXPECT_TRUE(compiled(ptx).is_ok());
  EXPECT_THAT(refusal(ptx, "sm_100"), HasSubstr("is PTX for sm_90a, which sm_100 does not run"));
}

TEST_P(UserKernelCuda, TextsForPeople) {
  const Program program = program_of({});
  const std::string text = user_kernel_text(program);
  EXPECT_THAT(text, HasSubstr("// scale<<<dim3(8, 1, 1), dim3(128, 1, 1), 0>>>\n#define FACTOR 2\n"));
  EXPECT_THAT(text, HasSubstr(kScale));
  const Result<std::string> resources = user_kernel_resources(program, target());
  ASSERT_TRUE(resources.is_ok()) << resources.message();
  EXPECT_THAT(*resources, HasSubstr("block        128 x 1 x 1 = 128 threads"));
  const Result<std::string> sass = user_kernel_sass(program, target());
  ASSERT_TRUE(sass.is_ok()) << sass.message();
  EXPECT_THAT(*sass, HasSubstr("scale"));
}

TEST_P(UserKernelCuda, WhatIsShippedIsCubinSourceAndLauncher) {
  const Result<ShippedKernel> shipped =
      ship_user_kernel(program_of({}), target(), {.function = "twice", .about = "x"});
  ASSERT_TRUE(shipped.is_ok()) << shipped.message();
  std::map<std::string, std::string> files;
  for (const ShippedKernel::File& file : shipped->files) files[file.path] = file.bytes;
  EXPECT_EQ(files.at("cuda/twice.cubin"), compiled({})->binary);
  EXPECT_THAT(files.at("cuda/twice.cu"), HasSubstr("#define FACTOR 2\n"));
  EXPECT_EQ(files.at("cuda/by.h"), "#define BY 3\n");
  // x, y, then n as it lies in memory.
  EXPECT_THAT(files.at("cuda/twice.c"),
              HasSubstr("static const unsigned char scalar2[] = {232, 3, 0, 0};\n    void* parameters[] = "
                        "{(void*)&operands->pointers[0], (void*)&operands->pointers[1], (void*)scalar2};"));
  EXPECT_THAT(files.at("cuda/twice.h"), HasSubstr("TWICE_Y_BYTES 4000"));
}

TEST_P(UserKernelCuda, ItsTextIsWhatTheCubinWasAssembledFrom) {
  const Result<ListedCode> listed = list_user_kernel(program_of({}), target());
  ASSERT_TRUE(listed.is_ok()) << listed.message();
  EXPECT_THAT(listed->text, HasSubstr(".visible .entry scale("));
  EXPECT_EQ(listed->artifact.binary, compiled({})->binary);
}

// A function of the host's says what is right; records name who compiled the kernel.
TEST_P(UserKernelCuda, TheToolchainIsTheKernels) {
  ForeignCode reference{.compiler = "cc", .kernel_compiler = by};
  EXPECT_EQ(*user_kernel_toolchain(reference), compiled({})->manifest.toolchain);
}

TEST(Nvcc, OneThatIsNotListedIsNotFound) {
  unsetenv("TUNER_COMPILERS");
  by = "nvcc-9";
  const Result<Artifact> artifact = compiled({});
  by = kNvrtcCompiler;
  ASSERT_FALSE(artifact.is_ok());
  EXPECT_EQ(artifact.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(artifact.message(), HasSubstr("TUNER_COMPILERS=cc,c++,NAME=/PATH"));
}

TEST(Nvcc, WhatAnotherOneMadeIsNotTakenFromTheCache) {
  if (const Status able = can_compile_confined(); !able) GTEST_SKIP() << able.message();
  if (nvcc_here().empty()) GTEST_SKIP() << "there is no nvcc here";
  const TemporaryFolder folder;
  const std::string other = folder.file("toolkit/bin/nvcc"), cache = folder.file("c");
  std::filesystem::create_directories(folder.file("toolkit/bin"));
  std::ofstream(other) << "#!/bin/sh\ncase $1 in --version) echo release 99.1 ;; *) exec " << nvcc_here()
                       << " \"$@\" ;; esac\n";
  std::filesystem::permissions(other, std::filesystem::perms(0755));
  by = "nvcc";
  const auto kept_with = [&](const std::string& nvcc) {
    setenv("TUNER_COMPILERS", ("nvcc=" + nvcc).c_str(), 1);
    const Result<Artifact> made = compile_user_kernel(program_of({}), target(), cache);
    EXPECT_TRUE(made.is_ok()) << made.message();
    return std::distance(std::filesystem::directory_iterator(cache), std::filesystem::directory_iterator());
  };
  EXPECT_EQ(kept_with(nvcc_here()), 1);
  EXPECT_EQ(kept_with(other), 2);
  EXPECT_EQ(kept_with(nvcc_here()), 2);
  unsetenv("TUNER_COMPILERS");
  by = kNvrtcCompiler;
}

TEST(Nvcc, AKernelIsFoundByTheNameThatPeopleWrite) {
  const std::vector<std::string> symbols = {"plain", "_ZN2ns5otherEPf", "_ZN12_GLOBAL__N_16hiddenEPKfPfi",
                                            "_ZN1a4sameEv", "_ZN1b4sameEv"};
  const auto found = [&](const std::string& name) { return symbol_of_kernel(name, symbols); };
  EXPECT_EQ(*found("plain"), "plain");
  EXPECT_EQ(*found("ns::other"), "_ZN2ns5otherEPf");
  EXPECT_EQ(*found("::ns::other"), "_ZN2ns5otherEPf");
  EXPECT_EQ(*found("other"), "_ZN2ns5otherEPf") << "a namespace that is used";
  EXPECT_EQ(*found("hidden"), "_ZN12_GLOBAL__N_16hiddenEPKfPfi");
  EXPECT_EQ(*found("b::same"), "_ZN1b4sameEv");
  EXPECT_EQ(found("same").message(), "\"same\" means several of its kernels: a::same, b::same");
  EXPECT_THAT(found("lain").message(), HasSubstr("\"lain\" means none of its kernels: plain, ns::other, "));
  EXPECT_THAT(symbol_of_kernel("plain", {}).message(), HasSubstr("it has none"));
}

TEST(Nvcc, ItsToolkitIsThatOfItsRelease) {
  EXPECT_EQ(toolkit_major("source:nvcc Cuda compilation tools, release 13.0, V13.0.88"), 13);
  EXPECT_EQ(toolkit_major("source:nvcc-12 Cuda compilation tools, release 12.4, V12.4.131"), 12);
  EXPECT_EQ(toolkit_major("source:cc (Debian 12.2.0-14) 12.2.0"), 0);
  EXPECT_EQ(toolkit_major("source:nvcc"), 0);
}

}  // namespace
}  // namespace tuner
