// Kernels of GPUs in job files: what a launch is, which configs have one, what is refused, what travels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler_core/ir/foreign_code.h"
#include "templates/registry/registry.h"
#include "templates/source_kernel/foreign_program.h"
#include "templates/source_kernel/source_document.h"
#include "templates/source_kernel/source_kernel_json.h"
#include "templates/workload/operators/kernel.h"

namespace tuner {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Files final : public JobFolder {
 public:
  std::map<std::string, std::string> texts;
  bool has(const std::string& name) const override { return texts.contains(name); }
  Result<std::string> read(const std::string& name, size_t most) const override {
    if (!texts.contains(name)) return invalid_argument(name, ": cannot be read: No such file or directory");
    if (texts.at(name).size() > most) return invalid_argument(name, ": is longer than ", most, " bytes");
    return texts.at(name);
  }
};

// As much of a cubin as a reader of job files looks at.
std::string cubin_with(const std::string& kernel) {
  std::string bytes(
      "\x7f"
      "ELF\x02\x01",
      6);
  bytes.resize(64, '\0');
  bytes[18] = static_cast<char>(190);
  return bytes + std::string("\0.text.", 7) + kernel + std::string("\0", 1);
}

Files files() {
  Files made;
  made.texts["add.cu"] = "extern \"C\" __global__ void add(const float* x, float* y, int n, double by) {}\n";
  made.texts["plain.c"] = "void plain(const float* x, float* y, int n, double by) {}\n";
  made.texts["add_1.ptx"] = ".version 8.0\n.target sm_80\n.visible .entry add(\n.param .u64 x)\n{}\n";
  made.texts["add_2.ptx"] = ".version 8.0\n.target sm_80\n.visible .entry add2(\n.param .u64 x)\n{}\n";
  made.texts["add.cubin"] = cubin_with("add");
  return made;
}

json right_entry() {
  return json::parse(R"({
    "op": "kernel", "language": "cuda", "source": "add.cu", "function": "add", "sizes": {"n": 1000},
    "arguments": [{"name": "x", "type": "float32", "shape": ["n"]},
                  {"name": "y", "type": "float32", "shape": ["n"], "role": "out"},
                  {"name": "count", "type": "int32", "value": "n"},
                  {"name": "by", "type": "float64", "value": 0.5}],
    "grid": ["(n + BLOCK - 1) // BLOCK", 2], "block": ["BLOCK", "ROWS"],
    "shared_bytes": "4 * BLOCK * STAGES",
    "knobs": {"BLOCK": [32, 64, 128, 256, 512, 1024], "ROWS": [1, 2, 4, 8], "STAGES": [1, 2, 64], "ORDER": ["rows", "columns"]},
    "default": {"BLOCK": 128, "ROWS": 2},
    "flags": ["--use_fast_math"],
    "reference": {"source": "plain.c", "function": "plain", "flags": ["-O1", "-DN={n}"]}
  })");
}
json ready_entry() {
  return json::parse(R"({
    "op": "kernel", "language": "ptx", "sizes": {"n": 1000},
    "arguments": [{"name": "x", "type": "float32", "shape": ["n"]},
                  {"name": "y", "type": "float32", "shape": ["n"], "role": "out"}],
    "function": "add", "grid": "(n + BLOCK - 1) // BLOCK", "block": "BLOCK",
    "configs": [
      {"config": {"BLOCK": 64, "KIND": "a"}, "file": "add_1.ptx"},
      {"config": {"BLOCK": 256, "KIND": "a"}, "file": "add_1.ptx", "shared_bytes": 1024},
      {"config": {"BLOCK": 64, "KIND": "b"}, "file": "add_2.ptx", "function": "add2", "grid": [7, 3], "block": ["2 * BLOCK", 2, 1]}],
    "reference": {"source": "plain.c", "function": "plain"}
  })");
}

Result<std::shared_ptr<const SourceKernel>> read(const json& of, const Files& from = files()) {
  json_input::Reader in(of, "job.json: ");
  in.get("op");
  std::shared_ptr<const SourceKernel> kernel = read_source_kernel(in, from);
  RETURN_IF_ERROR(in.finish());
  return kernel;
}
const SourceKernel& kernel_of(const json& of) {
  static std::vector<std::shared_ptr<const SourceKernel>> kept;
  const auto made = read(of);
  CHECK(made.is_ok()) << made.message();
  kept.push_back(*made);
  return *kept.back();
}

TEST(SourceLaunch, ALaunchFollowsFromSizesAndKnobs) {
  const SourceKernel& k = kernel_of(right_entry());
  EXPECT_EQ(k.language, SourceLanguage::kCuda);
  EXPECT_EQ(k.compiler, "cc") << "of the reference";
  EXPECT_THAT(k.reference.flags, ElementsAre("-O1", "-DN={n}"));
  const auto launch = launch_of(k, Config({{"BLOCK", 256}, {"ROWS", 4}, {"STAGES", 2}, {"ORDER", 0}}));
  ASSERT_TRUE(launch.is_ok()) << launch.message();
  EXPECT_THAT(launch->grid, ElementsAre(4, 2, 1));
  EXPECT_THAT(launch->block, ElementsAre(256, 4, 1));
  EXPECT_EQ(launch->shared_bytes, 2048);
  EXPECT_EQ(launch->threads(), 1024);
}

// Whose compiler "compiler" is, and what a worker needs.
TEST(SourceLaunch, AnNvccCompilesTheKernelAndTheReferenceHasACompilerOfItsOwn) {
  const auto with = [](const char* change) -> const SourceKernel& {
    json entry = right_entry();
    entry.merge_patch(json::parse(change));
    return kernel_of(entry);
  };
  const auto compilers = [](const SourceKernel& k) {
    return std::array{program_of(k, default_config(k)).foreign->compiler,
                      reference_program(k).foreign->compiler, k.compiler};
  };
  EXPECT_THAT(compilers(with("{}")), ElementsAre("nvrtc", "cc", "cc"));
  EXPECT_THAT(compilers(with(R"({"compiler": "nvrtc"})")), ElementsAre("nvrtc", "cc", "cc"));
  EXPECT_THAT(compilers(with(R"({"compiler": "clang"})")), ElementsAre("nvrtc", "clang", "clang"));
  EXPECT_THAT(compilers(with(R"({"compiler": "nvcc"})")), ElementsAre("nvcc", "cc", "nvcc,cc"));
  EXPECT_THAT(compilers(with(R"({"compiler": "nvcc-12", "reference": {"compiler": "clang"}})")),
              ElementsAre("nvcc-12", "clang", "nvcc-12,clang"));
  EXPECT_THAT(compilers(with(R"({"reference": {"compiler": "clang"}})")),
              ElementsAre("nvrtc", "clang", "clang"));
  // What is right runs on the host, and says whose kernel it is for.
  EXPECT_EQ(reference_program(with(R"({"compiler": "nvcc"})")).foreign->kernel_compiler, "nvcc");
  const SourceKernel& alone = with(R"({"compiler": "nvcc", "reference": "default"})");
  EXPECT_EQ(alone.compiler, "nvcc");
  EXPECT_EQ(alone.host_compiler(), "");
  // A stored document says the same.
  const SourceKernel& k = with(R"({"compiler": "nvcc"})");
  const auto back = parse_source_document(source_document(k));
  ASSERT_TRUE(back.is_ok()) << back.message();
  EXPECT_EQ((*back)->compiler, "nvcc,cc");
}

TEST(SourceLaunch, ConfigsThatNoDeviceLaunchesAreNotInTheSpace) {
  const SourceKernel& k = kernel_of(right_entry());
  // By hand. At most 1024 threads: of ROWS 1, 2, 4, 8 a BLOCK of 32, 64 or 128 has 4, 256 has 3, 512 has 2,
  // 1024 has
  // 1. STAGES 1 and 2 fit always; 64 stages of 4 * BLOCK bytes are at most 232,448 bytes up to a BLOCK of
  // 512.
  ConfigSpace any;
  ASSERT_TRUE(k.declare(any).is_ok());
  ASSERT_TRUE(any.seal().is_ok());
  const int pairs = 3 * 4 + 3 + 2 + 1;
  EXPECT_EQ(any.size(), (pairs * 2U + (pairs - 1U)) * 2U);
  // A device with 48 KiB: 64 stages up to a BLOCK of 128.
  ConfigSpace small;
  ASSERT_TRUE(k.declare(small, 48 << 10).is_ok());
  ASSERT_TRUE(small.seal().is_ok());
  EXPECT_EQ(small.size(), (pairs * 2U + 3U * 4U) * 2U);
}

TEST(SourceLaunch, TheProgramHasTheCallAndTheLaunch) {
  const SourceKernel& k = kernel_of(right_entry());
  const Program program = program_of(k, default_config(k));
  const ForeignCode& code = *program.foreign;
  ASSERT_TRUE(code.launch.has_value());
  EXPECT_THAT(code.launch->block, ElementsAre(128, 2, 1));
  EXPECT_THAT(code.words,
              ElementsAre("--use_fast_math", "-DBLOCK=128", "-DORDER=rows", "-DROWS=2", "-DSTAGES=1"));
  ASSERT_EQ(code.parameters.size(), 4u);
  EXPECT_EQ(code.parameters[0].operand, 0);
  EXPECT_EQ(code.parameters[1].operand, 1);
  EXPECT_EQ(code.parameters[2].operand, -1);
  EXPECT_EQ(code.parameters[2].bytes, std::string("\xe8\x03\0\0", 4));          // 1000
  EXPECT_EQ(code.parameters[3].bytes, std::string("\0\0\0\0\0\0\xe0\x3f", 8));  // 0.5
  // What is right comes from the host, by the host's compiler and flags.
  const Program right = reference_program(k);
  EXPECT_FALSE(right.foreign->launch.has_value());
  EXPECT_FALSE(right.foreign->cxx);
  EXPECT_EQ(right.foreign->function, "plain");
  EXPECT_THAT(right.foreign->words,
              ElementsAre("-O1", "-DN=1000", "-DBLOCK=128", "-DORDER=rows", "-DROWS=2", "-DSTAGES=1"));
}

TEST(SourceLaunch, OneTemplateServesItOnGpusAndNoneOnCpus) {
  const Workload gpu(kernel_workload(*read(right_entry())));
  const auto serving = templates_for(gpu, *parse_target("cuda -arch=sm_75"));
  ASSERT_TRUE(serving.is_ok()) << serving.message();
  ASSERT_EQ(serving->size(), 1u);
  EXPECT_EQ(serving->front()->name(), "source_kernel_cuda");
  EXPECT_THAT(templates_for(gpu, *parse_target("llvm -mcpu=x86-64-v3")).message(),
              HasSubstr("is one of a GPU"));
  // sm_75 has 64 KiB: 64 stages up to a BLOCK of 256, and 256 has three ROWS.
  const auto instance = serving->front()->apply(gpu, *parse_target("cuda -arch=sm_75"));
  ASSERT_TRUE(instance.is_ok()) << instance.message();
  EXPECT_EQ((*instance)->space().size(), (18U * 2U + 15U) * 2U);
}

TEST(SourceLaunch, KernelsThatComeCompiledAreTheSpace) {
  const SourceKernel& k = kernel_of(ready_entry());
  EXPECT_EQ(k.function, "add");
  EXPECT_TRUE(k.source.empty());
  ConfigSpace space;
  ASSERT_TRUE(k.declare(space).is_ok());
  ASSERT_TRUE(space.seal().is_ok());
  EXPECT_EQ(space.size(), 3u);
  EXPECT_EQ(space.describe(space.at(space.default_index())), "BLOCK=64 KIND=a") << "the first entry";
  EXPECT_FALSE(space.index_of(Config({{"BLOCK", 256}, {"KIND", 1}})).is_ok());
  const auto of = [&k](int64_t block, int64_t kind) {
    return program_of(k, Config({{"BLOCK", block}, {"KIND", kind}}));
  };
  const ForeignCode a = *of(256, 0).foreign, b = *of(64, 1).foreign;
  EXPECT_EQ(a.launch->form, ForeignLaunch::Form::kPtx);
  EXPECT_EQ(a.source, "add_1.ptx");
  EXPECT_THAT(a.launch->grid, ElementsAre(4, 1, 1));
  EXPECT_EQ(a.launch->shared_bytes, 1024);
  EXPECT_EQ(b.function, "add2");
  EXPECT_THAT(b.launch->grid, ElementsAre(7, 3, 1));
  EXPECT_THAT(b.launch->block, ElementsAre(128, 2, 1));
  EXPECT_EQ(b.launch->shared_bytes, 0);
  EXPECT_EQ(b.files->size(), 2u) << "its own file and the reference";
}

TEST(SourceLaunch, ADocumentIsReadBackAndNamedByItsMeaning) {
  for (const json& of : {right_entry(), ready_entry()}) {
    const SourceKernel& k = kernel_of(of);
    const std::string document = source_document(k);
    const auto back = parse_source_document(document);
    ASSERT_TRUE(back.is_ok()) << back.message();
    EXPECT_EQ(source_document(**back), document);
    EXPECT_EQ(source_digest(**back), source_digest(k));
    ConfigSpace space;
    ASSERT_TRUE((*back)->declare(space).is_ok());
    EXPECT_TRUE(space.seal().is_ok());
  }
  const auto digest = [](const json& of) { return source_digest(kernel_of(of)); };
  const std::string first = digest(right_entry());
  for (const auto& [at, value] : {std::pair("/grid/1", "3"),
                                  {"/block/1", "\"ROWS + 0\""},
                                  {"/shared_bytes", "64"},
                                  {"/reference/flags/0", "\"-O2\""}}) {
    json other = right_entry();
    other[json::json_pointer(at)] = json::parse(value);
    EXPECT_NE(digest(other), first) << at;
  }
  // White space of a source does not count, bytes of a cubin do.
  Files spaced = files();
  spaced.texts["add.cu"].insert(0, "\n// a comment\n");
  EXPECT_EQ(source_digest(**read(right_entry(), spaced)), first);
  spaced.texts["add_1.ptx"].insert(0, "\n");
  EXPECT_NE(source_digest(**read(ready_entry(), spaced)), digest(ready_entry()));
  // A document whose launch is none is none.
  std::string torn = source_document(kernel_of(right_entry()));
  torn.replace(torn.find("\"grid\":["), 8, "\"gird\":[");
  EXPECT_FALSE(parse_source_document(torn).is_ok());
}

// Each row changes one thing of an entry that is right.
struct Wrong {
  const char *at, *value, *message;
};
void expect_refused(const json& whole, const std::vector<Wrong>& cases) {
  ASSERT_TRUE(read(whole).is_ok()) << read(whole).message();
  for (const Wrong& c : cases) {
    json of = whole;
    of[json::json_pointer(c.at)] = json::parse(c.value);
    const auto found = read(of);
    ASSERT_FALSE(found.is_ok()) << c.at << " " << c.value;
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(found.message(), HasSubstr(c.message)) << c.at << " " << c.value;
    EXPECT_EQ(found.message().find('\n'), std::string::npos) << found.message();
    EXPECT_TRUE(found.message().starts_with("job.json: ")) << found.message();
  }
}

TEST(SourceLaunch, WhatIsWrongWithASourceIsOneLineWithItsKey) {
  expect_refused(
      right_entry(),
      {{"/grid", "[]", "grid: expected 1 to 3 expressions: x, y, z; found []."},
       {"/grid", "[1, 1, 1, 1]", "grid: expected 1 to 3 expressions"},
       {"/grid", "null", "grid: expected an integer or an expression in quotes; found null."},
       {"/grid", "{\"x\": 1}", "grid: expected an integer or an expression in quotes"},
       {"/grid/0", "1.5", "grid[0]: expected an integer or an expression in quotes; found 1.5."},
       {"/grid/0", "\"n /\"", "grid[0]: column 3"},
       {"/grid/0", "\"m // BLOCK\"",
        "grid[0]: column 1: unknown name m; known are n, BLOCK, ORDER, ROWS, STAGES; in"},
       {"/grid/0", "\"n // (BLOCK - 128)\"", "the default config: grid[0]: column 3: division by zero"},
       {"/grid/0", "\"n // (BLOCK - 64)\"", "grid[0]: column 3: the divisor may be 0"},
       {"/grid/0", "0", "the default config: grid[0]: expected 1 to 2147483647, found 0; in \"0\""},
       {"/grid/1", "65536", "grid[1]: expected 1 to 65535, found 65536"},
       {"/block", "[]", "block: expected 1 to 3 expressions"},
       {"/block/1", "\"ROWS * 8\"", "the default config: block: expected at most 1024 threads, found 2048"},
       {"/block/0", "\"BLOCK - 128\"", "block[0]: expected 1 to 1024, found 0"},
       {"/block", "[1, 1, 65]", "block[2]: expected 1 to 64, found 65"},
       {"/shared_bytes", "-1", "shared_bytes: expected 0 to 232448, found -1"},
       {"/shared_bytes", "232449", "shared_bytes: expected 0 to 232448, found 232449"},
       {"/shared_bytes", "[1]", "shared_bytes: expected an integer or an expression in quotes"},
       {"/shared_bytes", "\"ORDER * 4\"", "shared_bytes: column 1"},
       {"/function", "\"add<32>\"", "function: expected a name for C"},
       {"/flags/0", "\"-I/etc\"", "flags[0]: the flag -I/etc is not allowed; allowed are those of NVRTC"},
       {"/flags/0", "\"--pre-include=/etc/passwd\"", "is not allowed"},
       {"/flags/0", "\"-O3\"", "is not allowed"},
       {"/flags/0", "\"--ptxas-options=-o x\"", "is not allowed"},
       {"/reference/flags/0", "\"-o x\"", "reference.flags[0]: the flag -o x is not allowed"},
       {"/reference/source", "\"add.cu\"",
        "reference.source: expected a file in C or C++ (.c, .cc, .cpp, .cxx), found add.cu; the reference "
        "runs on"},
       {"/configs", "[]", "configs"},
       {"/language", "\"opencl\"",
        R"(language: expected "c", "c++", "cuda", "ptx", "cubin" or "command", found "opencl".)"}});
  json without = right_entry();
  without.erase("block");
  EXPECT_THAT(read(without).message(), HasSubstr("block: expected how many threads a block has"));
  json needless = right_entry();
  needless["reference"] = "default";
  needless["compiler"] = "cc";
  EXPECT_THAT(read(needless).message(),
              HasSubstr("compiler: it compiles the reference function, and there is none; the kernel is "
                        "compiled by \"nvrtc\", or by an \"nvcc\" of the worker's list"));
  expect_refused(right_entry(), {{"/compiler", "\"nvcc -o x\"", "compiler: expected a name such as \"nvcc\""},
                                 {"/compiler", "\"nvcc,cc\"", "compiler: expected a name"},
                                 {"/reference/compiler", "\"/bin/sh\"", "compiler: expected a name"}});
}

TEST(SourceLaunch, WhatIsWrongWithCompiledKernelsIsOneLineWithItsKey) {
  expect_refused(
      ready_entry(),
      {{"/configs", "[]", "configs: expected 1 to 512 entries, found 0."},
       {"/configs", "3", "configs: expected a list"},
       {"/configs/1", "3", "configs[1]: expected an object, found 3."},
       {"/configs/1/config", "{}", "configs[1].config: expected an object of knobs and values"},
       {"/configs/1/config", "{\"BLOCK\": 8}", "configs[1].config: expected the knobs of configs[0]"},
       {"/configs/1/config/BLOCK", "64", "configs[1].config: the config BLOCK=64 KIND=a is there twice"},
       {"/configs/1/config/BLOCK", "true",
        "configs[1].config.BLOCK: expected an integer, a number or a word"},
       {"/configs/1/config/BLOCK", "18446744073709551615", "expected an integer of 64 bits"},
       {"/configs/1/config/BLOCK", "2048", "configs[1].block[0]: expected 1 to 1024, found 2048"},
       {"/configs/0/file", "\"none.ptx\"", "configs[0].file: none.ptx: cannot be read"},
       {"/configs/0/file", "\"../up.ptx\"", "leads out of the folder"},
       {"/configs/0/file", "\"plain.c\"", "configs[0].file: plain.c is no PTX"},
       {"/configs/0/function", "\"sub\"",
        "configs[0].function: add_1.ptx has no kernel \"sub\": no \".entry\" names it"},
       {"/configs/2/function", "\"add\"", "configs[2].function: add_2.ptx has no kernel \"add\""},
       {"/configs/0/function", "\"a b\"", "configs[0].function: expected a symbol of letters"},
       {"/configs/0/grid", "\"BLOC\"",
        "configs[0].grid[0]: column 1: unknown name BLOC; known are n, BLOCK, KIND"},
       {"/configs/0/shared_bytes", "300000", "configs[0].shared_bytes: expected 0 to 232448, found 300000"},
       {"/configs/0/flie", "1", "flie"},
       {"/default", "{\"BLOCK\": 256, \"KIND\": \"b\"}", "default: \"configs\" has no such config"},
       {"/knobs", "{\"X\": [1]}", "knobs"},
       {"/source", "\"add.cu\"", "source"},
       {"/reference", "\"default\"", "reference: expected a function in C or C++, or files"},
       {"/language", "\"cubin\"",
        "configs[0].file: add_1.ptx is no cubin: expected an ELF file for CUDA devices"}});
  json cubin = ready_entry();
  cubin["language"] = "cubin";
  cubin["configs"] = json::parse(R"([{"config": {"BLOCK": 64}, "file": "add.cubin"}])");
  EXPECT_TRUE(read(cubin).is_ok()) << read(cubin).message();
  cubin["function"] = "sub";
  EXPECT_THAT(read(cubin).message(), HasSubstr("configs[0].function: add.cubin has no kernel \"sub\""));
}

}  // namespace
}  // namespace tuner
