// What `tuner build` writes: libraries that export what they should and hold the code that was measured,
// names that cannot clash, and a folder that is whole or as it was.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "compiler_core/codegen/library.h"
#include "db/store.h"
#include "templates/schedule_template.h"
#include "tests/random_seed.h"
#include "tests/tuner/command_line.h"
#include "tuner/bundle/bundle_folder.h"
#include "tuner/study/present.h"

namespace tuner {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr char kDense[] =
    R"({"name":"dense","op":"matmul","a":[5,33],"b":[33,20],"bias":true,"constant":["b"],"target":"cpu"})";
constexpr char kSoftmax[] = R"({"name":"soft","op":"softmax","rows":7,"columns":19,"target":"cpu"})";
constexpr char kDenseKey[] = "v1 matmul b=1 m=5 n=20 k=33 ta=0 tb=0 bias=1 act=none dtype=float32 const=b";

class BundleTest : public ::testing::Test {
 protected:
  BundleTest() {
    write("dense.json", kDense);
    write("both.json", str("[", kDense, ",", kSoftmax, "]"));
  }
  void write(const std::string& name, std::string_view text) { shell_.write(name, text); }
  CommandResult build(const std::string& arguments) { return shell_.run("tuner build " + arguments); }
  json manifest(const std::string& folder) { return json::parse(shell_.read(folder + "/manifest.json")); }
  // Refused: exit code 2, one line with `reason`, and `folder` as it was.
  void expect_refused(const std::string& arguments, const std::string& reason,
                      const std::string& folder = "out") {
    const auto before = shell_.tree(folder);
    const bool there = fs::exists(shell_.folder() / folder);
    const CommandResult refused = build(arguments);
    EXPECT_EQ(refused.exit_code, 2) << arguments << "\n" << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(reason)) << arguments;
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    EXPECT_EQ(shell_.tree(folder), before) << arguments;
    EXPECT_EQ(fs::exists(shell_.folder() / folder), there) << arguments;
  }

  testing::CommandLine shell_{TUNER_BIN_DIR};
};

// The bytes of a section of an ELF file, by name.
std::string section(const std::string& elf, const std::string& name) {
  Elf64_Ehdr header;
  CHECK(elf.size() >= sizeof header) << "no ELF file";
  std::memcpy(&header, elf.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), elf.data() + header.e_shoff, sections.size() * sizeof sections[0]);
  const char* names = elf.data() + sections[header.e_shstrndx].sh_offset;
  for (const Elf64_Shdr& s : sections)
    if (names + s.sh_name == name) return elf.substr(s.sh_offset, s.sh_size);
  return {};
}

// The default config of the dense layer as a worker builds it: the template's own names.
Program measured_program() {
  const Result<Workload> workload = workload_from_key(kDenseKey);
  CHECK(workload.is_ok()) << workload.message();
  const auto serving = templates_for(*workload, host_target());
  CHECK(serving.is_ok()) << serving.message();
  const auto instance = serving->front()->apply(*workload, host_target());
  CHECK(instance.is_ok()) << instance.message();
  const ConfigSpace& space = (*instance)->space();
  const auto program = (*instance)->instantiate(space.at(space.default_index()));
  CHECK(program.is_ok()) << program.message();
  return *program;
}

// Records the default config as tuned, measured with the artifact of this digest.
void record_default(const std::string& path, const std::string& digest,
                    Constants constants = Constants::kWarm) {
  const Result<Workload> workload = workload_from_key(kDenseKey);
  const Target target = host_target();
  const AnyTemplate* t = templates_for(*workload, target)->front();
  const auto instance = t->apply(*workload, target);
  auto store = Store::open(path, Store::Mode::kWrite);
  ASSERT_TRUE(store.is_ok()) << store.message();
  JobRow job{.id = "j1",
             .request_id = "r1",
             .tasks = {{kDenseKey, target.name(), "", 1, constants}},
             .trials = 1,
             .search = "random"};
  ASSERT_TRUE((*store)->add_job(job).is_ok());
  std::vector<TrialRow> trials(1);
  trials[0].job_id = "j1";
  trials[0].template_name = t->name();
  trials[0].template_version = t->version();
  trials[0].config = (*instance)->space().at((*instance)->space().default_index()).to_text();
  ASSERT_TRUE((*store)->add_trials(trials).is_ok());
  std::vector<MeasureRecord> records(1);
  records[0].trial_id = trials[0].id;
  records[0].run_ns = {1000, 1001, 1002};
  records[0].artifact_digest = digest;
  const Present now = present_here(target);
  records[0].environment = {
      .hardware = now.hardware, .toolchain = toolchain_fingerprint(), .harness_abi = now.harness_abi};
  records[0].finished_at_us = 1'700'000'000'000'000;
  ASSERT_TRUE((*store)->add_records(records).is_ok());
}

TEST_F(BundleTest, TheShippedMachineCodeIsTheMeasuredOne) {
  const CommandResult built = build("dense.json -o out --name lib --emit obj,so,a");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const std::string shipped = shell_.read("out/obj/dense.o");
  const auto measured = compile_object(measured_program(), host_target());
  ASSERT_TRUE(measured.is_ok()) << measured.message();
  ASSERT_GT(section(shipped, ".text").size(), 64u);
  EXPECT_EQ(section(shipped, ".text"), section(measured->object, ".text"));
  EXPECT_EQ(section(shipped, ".rodata"), section(measured->object, ".rodata"));
  // The static library holds that object as it is, the shared one its code.
  EXPECT_THAT(shell_.read("out/lib/liblib.a"), HasSubstr(shipped));
}

TEST_F(BundleTest, TheManifestSaysWhetherTheCodeIsTheMeasuredOne) {
  const auto artifact = compile(measured_program(), host_target());
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  record_default(shell_.folder() / "same.db", artifact->manifest.digest);
  record_default(shell_.folder() / "other.db", std::string(64, '0'));

  const CommandResult same = build("dense.json -o same --db same.db");
  ASSERT_EQ(same.exit_code, 0) << same.err;
  const json exact = manifest("same").at("kernels")[0];
  EXPECT_EQ(exact.at("answer").at("kind"), "exact");
  EXPECT_EQ(exact.at("answer").at("rests_on")[0].at("workload"), kDenseKey);
  EXPECT_EQ(exact.at("tuned"), true);
  EXPECT_EQ(exact.at("measured").at("time_ns"), 1001);
  EXPECT_EQ(exact.at("same_code_as_measured"), true);
  EXPECT_EQ(same.err, "");

  const CommandResult other = build("dense.json -o other --db other.db");
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(manifest("other").at("kernels")[0].at("same_code_as_measured"), false);
  EXPECT_THAT(other.err, HasSubstr("generates other code for the config than was measured"));
  EXPECT_THAT(other.err, ::testing::ContainsRegex("tuner rerun --db other.db t[0-9]+\n"));
}

// Warm and cold constants have times of their own, and so answers. Warm ones are built unless the command is
// told.
TEST_F(BundleTest, TheAnswerIsOfTheKindOfTimesThatTheCommandAsksFor) {
  record_default(shell_.folder() / "cold.db", std::string(64, '0'), Constants::kCold);
  ASSERT_EQ(build("dense.json -o cold --db cold.db --constants cold").exit_code, 0);
  EXPECT_EQ(manifest("cold").at("kernels")[0].at("answer").at("kind"), "exact");
  EXPECT_EQ(manifest("cold").at("kernels")[0].at("constants"), "cold");
  ASSERT_EQ(build("dense.json -o warm --db cold.db").exit_code, 0);
  EXPECT_NE(manifest("warm").at("kernels")[0].at("answer").at("kind"), "exact");
}

TEST_F(BundleTest, AFallbackIsSaidWithTheCommandThatEndsIt) {
  const CommandResult built = build("both.json -o out --db none.db");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const json written = manifest("out");
  for (const json& k : written.at("kernels")) {
    EXPECT_EQ(k.at("answer").at("kind"), "default");
    EXPECT_FALSE(k.at("answer").at("note").get<std::string>().empty());
    EXPECT_EQ(k.at("tuned"), false);
  }
  EXPECT_THAT(
      built.err,
      HasSubstr("2 of 2 kernels run default configs. To tune them: tuner submit both.json --db none.db"));
}

TEST_F(BundleTest, TheLibraryExportsTheEntriesAndNothingElse) {
  ASSERT_EQ(build("both.json -o out --name pair").exit_code, 0);
  const CommandResult symbols =
      shell_.run("nm -D --defined-only out/lib/libpair.so | cut -d' ' -f3; readelf -d out/lib/libpair.so");
  EXPECT_THAT(symbols.out,
              ::testing::StartsWith("tuner_pair_dense\ntuner_pair_dense_pack\ntuner_pair_soft\n\n"));
  EXPECT_THAT(symbols.out, HasSubstr("soname: [libpair.so]"));
  EXPECT_THAT(symbols.out, Not(HasSubstr("NEEDED")));
  // Linked into a program as they are, the objects ask for no executable stack.
  EXPECT_EQ(shell_.run("ar t out/lib/libpair.a").out, "dense.o\nsoft.o\n");
  EXPECT_NE(shell_.run("cd /; readelf -SW " + (shell_.folder() / "out/lib/libpair.a").string())
                .out.find(".note.GNU-stack"),
            std::string::npos);
}

TEST_F(BundleTest, TheSameInputGivesTheSameBytes) {
  ASSERT_EQ(build("both.json -o one --emit so,a,obj,asm,llvm,schedule").exit_code, 0);
  ASSERT_EQ(build("both.json -o two --emit so,a,obj,asm,llvm,schedule").exit_code, 0);
  EXPECT_EQ(shell_.tree("one"), shell_.tree("two"));
  EXPECT_EQ(shell_.tree("one").size(), 2u + 4 + 2 + 2 * 4 + 1);
  const json files = manifest("one").at("files");
  for (const auto& [path, bytes] : shell_.tree("one"))
    if (path != "manifest.json") {
      EXPECT_EQ(files.at(path), sha256_hex(bytes)) << path;
    }
}

TEST_F(BundleTest, EmitSaysWhatIsWritten) {
  ASSERT_EQ(build("dense.json -o out --name d --emit asm,llvm").exit_code, 0);
  const auto tree = shell_.tree("out");
  ASSERT_EQ(tree.size(), 3u);
  EXPECT_THAT(tree.at("asm/dense.s"), HasSubstr("tuner_d_dense:"));
  EXPECT_THAT(tree.at("llvm/dense.ll"), HasSubstr("define i32 @tuner_d_dense("));
  EXPECT_TRUE(tree.contains("manifest.json"));
  expect_refused("dense.json -o no --emit so,exe",
                 "--emit: expected words out of so, a, obj, asm, defines, llvm, npu, trace, schedule", "no");
  expect_refused("dense.json -o no --emit ''", "found an empty word", "no");
}

TEST_F(BundleTest, ARebuildReplacesAndLeavesNothingBehind) {
  ASSERT_EQ(build("both.json -o out --name lib").exit_code, 0);
  ASSERT_TRUE(shell_.tree("out").contains("schedule/soft.txt"));
  write("out/notes.txt", "mine");
  ASSERT_EQ(build("dense.json -o out --name lib --emit so").exit_code, 0);
  const auto tree = shell_.tree("out");
  EXPECT_EQ(tree.at("notes.txt"), "mine");
  EXPECT_FALSE(tree.contains("lib/liblib.a"));
  EXPECT_FALSE(fs::exists(shell_.folder() / "out/schedule"));
  EXPECT_EQ(tree.size(), 1u + 1 + 4 + 2 + 1);
}

TEST_F(BundleTest, AFolderIsWholeOrAsItWas) {
  ASSERT_EQ(build("dense.json -o out --name lib").exit_code, 0);
  write(
      "late.json",
      str("[", kDense, R"(,{"op":"softmax","rows":8,"columns":64,"target":"cuda -arch=sm_80 -emulated"}])"));
  expect_refused("late.json -o out --name lib", "Build for \"cuda -arch=sm_80\"");
  expect_refused("late.json -o new/deep --name lib", "Build for \"cuda -arch=sm_80\"", "new");
  expect_refused("dense.json -o out --name other", "holds the library \"lib\", and a folder holds one");
  expect_refused("dense.json -o dense.json", "is a file; expected a folder for -o", "none");
  expect_refused("dense.json -o dense.json/x", "cannot be made: Not a directory", "none");
  shell_.run(
      "mkdir foreign; echo '{\"mine\": 1}' >foreign/manifest.json; mkdir -p way/include; echo mine "
      ">way/include/lib.h");
  expect_refused("dense.json -o foreign", "holds a manifest.json that this command did not write", "foreign");
  expect_refused("dense.json -o way --name lib",
                 "way/include/lib.h: is there already, and not from a build of this name", "way");
  shell_.run("flock out sleep 5 >/dev/null 2>&1 & echo $! >locker; sleep 0.5");
  expect_refused("dense.json -o out --name lib", "another build is writing there");
  shell_.run("kill $(cat locker)");
}

// A manifest is a file like any other: somebody may have edited it, or a disk.
TEST_F(BundleTest, ADamagedManifestRemovesNothingOutsideTheFolder) {
  ASSERT_EQ(build("dense.json -o out --name lib").exit_code, 0);
  write("precious", "mine");
  const std::string folder = shell_.folder() / "out";
  const json good = manifest("out");
  json bad = good;
  for (const char* path : {"../precious", "lib/../../precious", "/etc/precious", "", ".", "..", "lib/.."})
    bad["files"][path] = "0";
  bad["files"][shell_.folder() / "precious"] = "0";
  write("out/manifest.json", bad.dump());
  ASSERT_EQ(build("dense.json -o out --name lib").exit_code, 0);
  EXPECT_EQ(shell_.read("precious"), "mine");
  EXPECT_EQ(manifest("out"), good);

  const RandomSeed seed(20);
  std::mt19937 random(seed);
  const std::string text = good.dump();
  int opened = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = text;
    for (uint32_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % damaged.size();
      if (random() % 3 == 0)
        damaged.resize(at + 1);
      else
        damaged[at] = "{}[]\",:.\\/0a\xff"[random() % 14];
    }
    write("out/manifest.json", damaged);
    const auto result = BundleFolder::open(folder, "lib");
    (result.is_ok() ? opened : refused) += 1;
    if (!result) {
      EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument) << result.message();
      EXPECT_EQ(result.message().find('\n'), std::string::npos) << result.message();
    }
  }
  EXPECT_GT(opened, 0);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(shell_.read("precious"), "mine");
  EXPECT_TRUE(shell_.tree("out").contains("lib/liblib.so"));
}

TEST_F(BundleTest, AFolderThatCannotBeWrittenIsSaid) {
  if (::geteuid() == 0) {
    // Root writes everywhere but here.
    expect_refused("dense.json -o /proc/tuner-build", "/proc/tuner-build: cannot be made", "none");
    return;
  }
  shell_.run("mkdir sealed; chmod 555 sealed");
  expect_refused("dense.json -o sealed", "sealed: cannot be written: Permission denied", "sealed");
  expect_refused("dense.json -o sealed/x", "sealed/x: cannot be made: Permission denied", "sealed");
}

TEST_F(BundleTest, NamesThatClashAreSaid) {
  write("two.json", str("[", kDense, R"(,{"name":"dense","op":"softmax","rows":2,"columns":3}])"));
  expect_refused("two.json -o out", "two kernels have the name \"dense\"");
  write("with.json", str("[", kDense, R"(,{"name":"dense_with","op":"softmax","rows":2,"columns":3}])"));
  expect_refused("with.json -o out", "the C name dense_with");
  write("case.json", str("[", kDense, R"(,{"name":"Dense","op":"softmax","rows":2,"columns":3}])"));
  expect_refused("case.json -o out", "DENSE");
  write("table.json", R"({"name":"k_find","op":"softmax","rows":2,"columns":3})");
  expect_refused("table.json -o out --name k", "needed by the library's table and by \"k_find\"");
  for (const char* name : {"3x3", "a-b", "double", "tuner_x", "_x"})
    expect_refused(str("dense.json -o out --name ", name), "--name: ");
  write("empty.json", "[]");
  expect_refused("empty.json -o out", "empty.json: ");
  expect_refused("nothing.json -o out", "nothing.json: ");
}

TEST_F(BundleTest, ATaskThatStandsThereTwiceIsOneKernelUnlessItHasTwoNames) {
  write("plain.json",
        R"({"op":"matmul","a":[5,33],"b":[33,20],"bias":true,"constant":["b"],"target":"cpu"})");
  ASSERT_EQ(build("dense.json dense.json plain.json -o once --name lib").exit_code, 0);
  EXPECT_EQ(manifest("once").at("kernels").size(), 1u);
  write(
      "again.json",
      R"({"name":"again","op":"matmul","a":[5,33],"b":[33,20],"bias":true,"constant":["b"],"target":"cpu"})");
  ASSERT_EQ(build("dense.json again.json -o twice --name lib").exit_code, 0);
  EXPECT_EQ(manifest("twice").at("kernels").size(), 2u);
  EXPECT_THAT(shell_.run("nm -D out twice/lib/liblib.so 2>/dev/null || true").out,
              HasSubstr("tuner_lib_again"));
}

TEST_F(BundleTest, TheSameTaskByOtherAlgorithmsIsAnotherKernel) {
  const std::string conv =
      R"({"op":"conv2d","data":[1,4,8,8],"weight":[4,4,3,3],"target":"cpu","algorithms":)";
  write("ways.json", str("[", conv, R"(["direct"]},)", conv, R"(["winograd"]}])"));
  expect_refused("ways.json -o out", "two kernels have the name ");
}

TEST_F(BundleTest, ALibraryIsOfOneArchitectureAndSaysWhichCpuItNeeds) {
  const std::string arm =
      R"({"name":"arm","op":"softmax","rows":7,"columns":19,"target":"llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu"})";
  const std::string haswell =
      R"({"name":"old","op":"softmax","rows":7,"columns":19,"target":"llvm -mcpu=haswell"})";
  write("mixed.json", str("[", arm, ",", haswell, "]"));
  expect_refused("mixed.json -o out", "one library is of one architecture");
  write("arm.json", arm);
  ASSERT_EQ(build("arm.json -o arm").exit_code, 0);
  EXPECT_THAT(shell_.run("readelf -h arm/lib/libarm.so").out, HasSubstr("AArch64"));
  EXPECT_THAT(shell_.run("nm arm/lib/libarm.a").out, HasSubstr("T tuner_arm_arm"));
  write("old.json", haswell);
  ASSERT_EQ(build("old.json -o old").exit_code, 0);
  const std::string header = shell_.read("old/include/old.h");
  // Haswell: the sets of x86-64-v3, which have no instruction set of AVX-512.
  EXPECT_THAT(header, ContainsRegex(R"(tuner_cpu_has_sets\(\s*"avx avx2 bmi bmi2 f16c fma lzcnt movbe )"));
  EXPECT_THAT(header, Not(HasSubstr("avx512")));
}

// Functions of the same name in two libraries stay two.
TEST_F(BundleTest, TwoLibrariesLiveInOneProgram) {
  write("a.json", R"({"name":"add","op":"elementwise","rows":1,"columns":4,"bias":true})");
  write("b.json", R"({"name":"add","op":"elementwise","rows":1,"columns":4,"scale":true})");
  ASSERT_EQ(build("a.json -o a --name first").exit_code, 0);
  ASSERT_EQ(build("b.json -o b --name second").exit_code, 0);
  const auto caller = [](const char* library, const char* function) {
    return str(
        "#include \"", library, ".h\"\n#include <stdio.h>\nvoid ", function,
        "(void) {\n  _Alignas(64) float x[4] = {1, 2, 3, 4}, y[4] = {3, 3, 3, 3}, out[4];\n",
        "  if (add(x, y, out, NULL) == 0) printf(\"%g %g %g %g\\n\", out[0], out[1], out[2], out[3]);\n}\n");
  };
  write("call_first.c", caller("first", "call_first"));
  write("call_second.c", caller("second", "call_second"));
  write("main.c",
        "void call_first(void);\nvoid call_second(void);\nint main(void) { call_first(); call_second(); "
        "return 0; }\n");
  for (const char* libraries : {"-Wl,-rpath,$PWD/a/lib:$PWD/b/lib", "-static"}) {
    const CommandResult ran =
        shell_.run(str("cc -std=c11 -Wall -Wextra -Werror -Ia/include -Ib/include call_first.c call_second.c "
                       "main.c -La/lib -lfirst "
                       "-Lb/lib -lsecond ",
                       libraries, " -o caller && ./caller"));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.out, "4 5 6 7\n3 6 9 12\n");
    EXPECT_EQ(ran.err, "");  // no warning of the linker either
  }
}

}  // namespace
}  // namespace tuner
