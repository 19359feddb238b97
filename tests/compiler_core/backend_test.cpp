// The door to back ends: the list, the families, what a name says, and a back end that registers itself.
#include "compiler_core/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/runtime/kernel_loader.h"
#include "compiler_core/te/te.h"

namespace tuner {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Made outside the list, as by a program of somebody else.
class ToyFamily final : public TargetFamily {
 public:
  std::string_view word() const override { return "toy"; }
  std::string_view usage() const override { return "\"toy -size=N\""; }
  std::span<const std::string_view> options() const override {
    static constexpr std::string_view kOptions[] = {"-size=", "-quick"};
    return kOptions;
  }
  Status set_option(std::string_view key, std::string_view value, Target& t) const override {
    if (key == "-quick") {
      t.numbers["quick"] = 1;
      return Status::ok();
    }
    ASSIGN_OR_RETURN(t.numbers["size"], target_number(key, value, 1, 9));
    return Status::ok();
  }
  Status complete(Target& t) const override {
    return t.numbers.contains("size") ? Status::ok() : invalid_argument("target: toy needs -size=N");
  }
  std::string name(const Target& t) const override {
    return str("toy -size=", t.numbers.at("size"), t.numbers.contains("quick") ? " -quick" : "");
  }
  std::string_view toolchain_word() const override { return "toymaker"; }
  bool near(const Target& /*a*/, const Target& /*b*/) const override { return true; }
  bool same_processor(const Target& a, const Target& b) const override { return a.numbers == b.numbers; }
  std::string difference(const Target& /*asked*/, const Target& /*there*/) const override { return {}; }
};
const ToyFamily toy;
const RegisterTargetFamily toy_is_known(toy);

class ToyBackend final : public Backend {
 public:
  const TargetFamily& family() const override { return toy; }
  Status available() const override { return unavailable("the toy is broken"); }
  std::string toolchain() const override { return "toymaker 1"; }
  std::vector<std::string> targets_of_host(std::string_view /*device*/) const override { return {}; }
  std::string hardware_here(const Target& /*target*/) const override { return {}; }
  Status runs_here(const Target& /*target*/) const override { return invalid_argument("there is no toy"); }
  Result<Artifact> compile(const Program& /*program*/, const Target& /*target*/,
                           const std::string& /*cache*/) const override {
    return available();
  }
  std::span<const CodeForm> forms() const override { return {}; }
  Result<std::string> text(std::string_view /*form*/, const Program& /*program*/,
                           const Target& /*target*/) const override {
    return available();
  }
  Result<ShippedKernel> ship(const Program& /*program*/, const Target& /*target*/,
                             const ShipRequest& /*request*/) const override {
    return available();
  }
  std::span<const std::string_view> identifier_endings() const override { return {}; }
};
const ToyBackend toy_backend;
const RegisterBackend toy_compiles(toy_backend);

TEST(TargetFamily, ARegisteredFamilyReadsItsNames) {
  const Result<Target> target = parse_target("toy -quick -size=3");
  ASSERT_TRUE(target.is_ok()) << target.message();
  EXPECT_EQ(target->name(), "toy -size=3 -quick");
  EXPECT_FALSE(target->is_cpu());
  EXPECT_EQ(parse_target("toy").message(), "target: toy needs -size=N");
  EXPECT_THAT(parse_target("toy -size=10").message(), HasSubstr("expected a number in 1..9, found \"10\""));
  EXPECT_THAT(parse_target("toy -size").message(), HasSubstr("-size needs a value"));
  EXPECT_THAT(parse_target("toy -size=1 -quick=2").message(), HasSubstr("unknown option \"-quick=2\""));
  EXPECT_THAT(parse_target("toy -size=1 -size=2").message(), HasSubstr("-size is given twice"));
  EXPECT_THAT(parse_target("tory -size=1").message(),
              HasSubstr("\"cuda -arch=sm_NN [-device=CLASS]\", \"npu\" or \"toy -size=N\""));
}

TEST(TargetFamily, NamesAndToolchainsTellFamiliesApart) {
  std::set<std::string_view> words, toolchains;
  for (const TargetFamily* family : target_families()) {
    EXPECT_TRUE(words.insert(family->word()).second) << family->word();
    EXPECT_TRUE(toolchains.insert(family->toolchain_word()).second) << family->toolchain_word();
    EXPECT_EQ(find_target_family(family->word()), family);
    EXPECT_EQ(family_of_toolchain(str(family->toolchain_word(), " 1.0")), family);
    EXPECT_EQ(family_of_toolchain(str(family->toolchain_word(), "x 1.0")), nullptr);
  }
  EXPECT_EQ(find_target_family("nothing"), nullptr);
}

TEST(TargetFamily, NearnessIsOfOneFamily) {
  const Target haswell = *parse_target("llvm -mcpu=haswell"),
               skylake = *parse_target("llvm -mcpu=skylake -threads=2"),
               zen5 = *parse_target("llvm -mcpu=znver5");
  EXPECT_TRUE(haswell.family->near(haswell, skylake));
  EXPECT_FALSE(haswell.family->near(haswell, zen5)) << "other vectors";
  EXPECT_EQ(haswell.family->difference(haswell, skylake), "tuned for skylake, 2 threads there");
  const Target a = *parse_target("cuda -arch=sm_90"), b = *parse_target("cuda -arch=sm_90a"),
               emulated = *parse_target("cuda -arch=sm_90 -emulated");
  EXPECT_TRUE(a.family->near(a, b));
  EXPECT_FALSE(a.family->near(a, emulated));
  const Target board = *parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu"),
               under_qemu = *parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -emulated");
  EXPECT_FALSE(board.family->near(board, under_qemu));
  EXPECT_FALSE(board.family->same_processor(board, under_qemu));
  EXPECT_TRUE(board.family->near(under_qemu, under_qemu));
}

TEST(Backend, EveryFamilyOfTheListHasOne) {
  EXPECT_EQ(&backend_of(*parse_target("llvm -mcpu=haswell")).family(), &cpu_family());
  EXPECT_EQ(&backend_of(*parse_target("cuda -arch=sm_80")).family(), &cuda_family());
  EXPECT_EQ(&backend_of(*parse_target("toy -size=1")), &toy_backend);
  for (const TargetFamily* family : target_families())
    EXPECT_NE(find_backend(*family), nullptr) << family->word();
}

TEST(Backend, ToolchainsAreThoseThatCanCompileHere) {
  const std::vector<std::string> here = toolchains_here();
  EXPECT_THAT(here, Contains(HasSubstr("llvm 22")));
  for (const std::string& toolchain : here) EXPECT_FALSE(toolchain.starts_with("toymaker")) << "it is broken";
  for (const Backend* backend : all_backends()) {
    const bool told = std::ranges::find(here, backend->toolchain()) != here.end();
    EXPECT_EQ(told, backend->available().is_ok());
    if (told) {
      EXPECT_EQ(family_of_toolchain(backend->toolchain()), &backend->family());
    }
  }
}

TEST(Backend, ThisHostIsResolvedByTheOneThatKnowsIt) {
  const Result<Target> cpu = resolve_target("cpu -threads=2");
  ASSERT_TRUE(cpu.is_ok()) << cpu.message();
  EXPECT_EQ(cpu->threads, 2);
  EXPECT_FALSE(backend_of(*cpu).hardware_here(*cpu).empty());
  EXPECT_TRUE(backend_of(*cpu).hardware_here(*parse_target("llvm -mcpu=cortex-a72")).empty());
  EXPECT_THAT(resolve_target("llvm -mcpu=notacpu").message(),
              StartsWith("target 'llvm -mcpu=notacpu': -mcpu=notacpu is not a CPU"));
  EXPECT_EQ(resolve_target("toy -size=2")->name(), "toy -size=2");
  EXPECT_THAT(resolve_target("cpu fast").message(), HasSubstr("found 'fast' after cpu"));
}

std::vector<std::string>& advice_told() {
  static std::vector<std::string> told;
  return told;
}

TEST(Backend, AdviceIsToldOfTargetsThatHaveAny) {
  on_target_advice([](const std::string& advice) { advice_told().push_back(advice); });
  for (const char* text : {"llvm -mcpu=haswell", "cuda -arch=sm_90a", "cuda -arch=sm_90", "toy -size=2"})
    EXPECT_TRUE(resolve_target(text).is_ok()) << text;
  on_target_advice(nullptr);
  EXPECT_TRUE(resolve_target("cuda -arch=sm_90").is_ok());
  EXPECT_THAT(advice_told(), ElementsAre(StartsWith("target \"cuda -arch=sm_90\": without the \"a\"")));
}

TEST(BackendDeathTest, ASecondOneOfAFamilyEndsTheProgram) {
  EXPECT_DEATH(RegisterBackend again(toy_backend), "two back ends are registered for toy");
}

TEST(Backend, AManifestSaysAllOfABuffer) {
  auto packed = std::make_shared<BufferNode>(
      *make_buffer("w.packed", DType::kBFloat16, {4, 64, 64}, MemoryScope::kGlobal, BufferRole::kPacked));
  packed->layout = "xor:8,8";
  const std::vector<ArgInfo> infos = argument_infos(
      {make_buffer("out", DType::kFloat32, {3, 5}, MemoryScope::kGlobal, BufferRole::kInOut), packed});
  ASSERT_EQ(infos.size(), 2u);
  EXPECT_EQ(infos[0].name, "out");
  EXPECT_EQ(infos[0].role, BufferRole::kInOut);
  EXPECT_EQ(infos[0].shape, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(infos[0].layout, "");
  EXPECT_EQ(infos[0].bytes, 60);
  EXPECT_EQ(infos[1].role, BufferRole::kPacked);
  EXPECT_EQ(infos[1].dtype, DType::kBFloat16);
  EXPECT_EQ(infos[1].layout, "xor:8,8");
  EXPECT_EQ(infos[1].bytes, 4 * 64 * 64 * 2);
}

TEST(Backend, AProgramUnderAnotherNamePacksUnderItToo) {
  Program plain{.name = "conv"};
  EXPECT_EQ(under_name(plain, "other").name, "other");
  EXPECT_EQ(under_name(plain, "other").packing, nullptr);
  plain.packing = std::make_shared<const Program>(Program{.name = "conv_pack"});
  const Program named = under_name(plain, "tuner_lib_conv");
  EXPECT_EQ(named.name, "tuner_lib_conv");
  EXPECT_EQ(named.packing->name, "tuner_lib_conv_pack");
  EXPECT_EQ(plain.packing->name, "conv_pack") << "the original stays";
}

TEST(Backend, AWorkerMeasuresWhatItsBackEndSays) {
  const Target old = *parse_target("llvm -mcpu=haswell"), here = *parse_target("llvm -mcpu=znver5"),
               two = *parse_target("llvm -mcpu=znver5 -threads=2");
  const Backend& cpus = backend_of(old);
  EXPECT_TRUE(cpus.measures(two, here, {}, 2));
  EXPECT_FALSE(cpus.measures(two, here, {}, 1)) << "more threads than CPUs";
  EXPECT_FALSE(cpus.measures(old, here, {}, 1)) << "nothing is known of what it can run";
  const Target board = *parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu"),
               under_qemu = *parse_target("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu -emulated");
  EXPECT_TRUE(cpus.measures(board, board, {}, 1));
  EXPECT_TRUE(cpus.measures(under_qemu, under_qemu, {}, 1));
  EXPECT_FALSE(cpus.measures(board, under_qemu, {}, 1)) << "its times are those of no board";
  EXPECT_FALSE(cpus.measures(under_qemu, board, {}, 1));
  EXPECT_FALSE(backend_of(here).runs_here(*parse_target("llvm -mcpu=x86-64 -emulated")))
      << "nothing emulates it";
  const Target toy_one = *parse_target("toy -size=1"), toy_two = *parse_target("toy -size=2");
  EXPECT_TRUE(toy_backend.measures(toy_one, toy_one, {}, 1));
  EXPECT_FALSE(toy_backend.measures(toy_two, toy_one, {}, 1));
  EXPECT_FALSE(cpus.measures(toy_one, here, {}, 1));
}

// Two kernels of a library are told apart by these endings: "dense" and "dense_pack" could not both be in it.
TEST(Backend, EachNameOfALaunchersHeaderHasAnEndingOfTheList) {
  Manifest m;
  m.kind = binary_kind::kCubin, m.entry = "dense", m.pack_entry = "dense_pack";
  m.target = "cuda -arch=sm_90a", m.abi_version = 2;
  m.args = {{.name = "w.packed", .role = BufferRole::kPacked, .shape = {8}, .bytes = 32},
            {.name = "y", .role = BufferRole::kOutput, .shape = {8}, .bytes = 32}};
  m.launches = {{.kernel = "dense", .block = {8, 1, 1}, .params = {0, 1}}};
  m.pack_args = {{.name = "w", .role = BufferRole::kConstant, .shape = {8}, .bytes = 32}, m.args[0]};
  m.pack_launches = {{.kernel = "dense_pack", .block = {8, 1, 1}, .params = {0, 1}}};
  const std::string header = cuda_launcher(m, "dense", "a layer").header;
  std::set<std::string> found;
  const auto in_word = [&](size_t i) { return std::isalnum(header[i]) != 0 || header[i] == '_'; };
  for (size_t at = 0; (at = header.find("dense_", at)) != std::string::npos; ++at) {
    const size_t end = header.find_first_not_of("abcdefghijklmnopqrstuvwxyz", at + 6);
    if (!in_word(at - 1) && !in_word(end)) found.insert(header.substr(at + 5, end - at - 5));
  }
  const auto endings = backend_of(*parse_target("cuda -arch=sm_90a")).identifier_endings();
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(endings.begin(), endings.end()));
}

TEST(Backend, EveryFormIsAText) {
  te::Builder b("twice");
  const Buffer x = b.input("x", {64});
  b.compute(
      "y", {64}, [&](const te::Indices& i) { return load(x, i) * float_imm(2); }, BufferRole::kOutput);
  const Program program = b.finish();
  const Target target = *resolve_target("cpu");
  ASSERT_FALSE(backend_of(target).forms().empty());
  for (const CodeForm& form : backend_of(target).forms()) {
    const Result<std::string> text = backend_of(target).text(form.name, program, target);
    ASSERT_TRUE(text.is_ok()) << form.name << ": " << text.message();
    EXPECT_THAT(*text, HasSubstr("twice")) << form.name;
  }
  const Result<ShippedKernel> shipped =
      backend_of(target).ship(program, target, {.function = "f", .library = "lib", .about = ""});
  ASSERT_TRUE(shipped.is_ok()) << shipped.message();
  EXPECT_EQ(shipped->manifest.entry, "tuner_lib_f");
  EXPECT_FALSE(shipped->object.empty());
}

TEST(Backend, WhatItDoesNotSayIsRefusedOrEmpty) {
  const Target target = *parse_target("toy -size=1");
  EXPECT_FALSE(toy_backend.emulates());
  EXPECT_THAT(toy_backend.compile_emulated({}, target).message(), HasSubstr("cannot be emulated"));
  EXPECT_THAT(toy_backend.estimate_ns({}, target).message(), HasSubstr("no time is estimated"));
  EXPECT_EQ(toy_backend.least_ns({}, target, {}), 0);
  EXPECT_FALSE(toy_backend.roofs(target, DType::kFloat32, 1).has_value());
  EXPECT_FALSE(toy_backend.resolve_here("cpu")->has_value());
}

TEST(KernelLoader, BinariesWithoutALoaderAreNotLoaded) {
  EXPECT_NE(find_kernel_loader(binary_kind::kSharedObject), nullptr);
  EXPECT_EQ(find_kernel_loader(binary_kind::kCubin), nullptr) << "its kernels run in the device child";
  EXPECT_EQ(find_kernel_loader("toy"), nullptr);
}

}  // namespace
}  // namespace tuner
