// Sources of users as kernels: what is compiled computes what the text says, and neither compiler nor text
// gets at what is not theirs.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "compiler_core/artifact/instruction_sets.h"
#include "compiler_core/foreign/compile_foreign.h"
#include "compiler_core/foreign/compilers.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/foreign/run_foreign.h"
#include "compiler_core/foreign/ship_foreign.h"
#include "compiler_core/ir/foreign_code.h"
#include "compiler_core/runtime/cpu_instructions.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/target.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"

namespace tuner {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::Optional;
using ::testing::ResultOf;

Buffer buffer(const std::string& name, BufferRole role, int64_t n, DType dtype = DType::kFloat32) {
  return make_buffer(name, dtype, {n}, MemoryScope::kGlobal, role);
}

constexpr const char* kScale =
    "#include \"scale.h\"\nstatic void scale(const float* in, float* out, int n) {\n  for (int i = 0; i < n; "
    "++i) out[i] = in[i] * FACTOR + OFFSET;\n}\n";

Program scale(const std::string& text = kScale, bool cxx = false) {
  ForeignCode code{.files = std::make_shared<std::vector<ForeignCode::File>>(
                       std::vector<ForeignCode::File>{{"scale.c", text}, {"scale.h", "#define OFFSET 1\n"}}),
                   .cxx = cxx,
                   .compiler = cxx ? "c++" : "cc",
                   .words = {"-O3", "-DFACTOR=3"},
                   .source = "scale.c",
                   .function = "scale",
                   .arguments = {"(const float*){0}", "(float*){1}", "(int32_t)5"}};
  Program program{.name = "kernel_of_test",
                  .args = {buffer("in", BufferRole::kInput, 5), buffer("out", BufferRole::kOutput, 5)}};
  program.foreign = std::make_shared<const ForeignCode>(std::move(code));
  return program;
}

std::string refusal(const Program& program) {
  const Result<Artifact> artifact = compile_foreign(program, "llvm -mcpu=x86-64", 1);
  EXPECT_FALSE(artifact.is_ok());
  if (!artifact.is_ok()) {
    EXPECT_EQ(artifact.status().code(), StatusCode::kInvalidConfig) << artifact.message();
  }
  return artifact.is_ok() ? "" : artifact.message();
}

// Rules for networks are in Linux 6.7 and newer.
bool landlock_network() { return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1U) >= 4; }

class Foreign : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status able = can_confine(); !able) GTEST_SKIP() << able.message();
    if (const Result<Compiler> compiler = find_compiler("cc"); !compiler) GTEST_SKIP() << compiler.message();
  }
};

TEST_F(Foreign, WhatIsCompiledComputesWhatTheTextSays) {
  for (const bool cxx : {false, true}) {
    const Result<Artifact> artifact = compile_foreign(scale(kScale, cxx), "llvm -mcpu=x86-64", 1);
    ASSERT_TRUE(artifact.is_ok()) << artifact.message();
    EXPECT_THAT(artifact->manifest.toolchain, HasSubstr("source:c"));
    const Result<Kernel> kernel = Kernel::load(*artifact);
    ASSERT_TRUE(kernel.is_ok()) << kernel.message();
    float in[5] = {1, 2, 3, 4, 5}, out[5] = {};
    void* args[] = {in, out};
    ASSERT_TRUE(kernel->call(args, {}).is_ok());
    for (int i = 0; i < 5; ++i) EXPECT_EQ(out[i], in[i] * 3 + 1);
    // The same text is the same bytes, in whatever folder it was compiled.
    EXPECT_EQ(compile_foreign(scale(kScale, cxx), "llvm -mcpu=x86-64", 1)->binary, artifact->binary);
  }
  EXPECT_EQ(to_text(scale()), "// scale.c, by cc -O3 -DFACTOR=3\nscale(in, out, (int32_t)5)\n");
  EXPECT_THAT(*foreign_assembly(scale()), HasSubstr("kernel_of_test"));
}

// Threads of OpenMP sleep in its library after a call. Without it they would wake up in memory that is gone.
TEST_F(Foreign, TheLibraryOfItsThreadsStaysWhenAKernelGoes) {
  const auto is_loaded = [] { return dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr; };
  if (is_loaded()) GTEST_SKIP() << "this program has it anyway";
  Program program = scale(
      "#include \"scale.h\"\nstatic void scale(const float* in, float* out, int n) {\n"
      "#pragma omp parallel for num_threads(2)\n  for (int i = 0; i < n; ++i) out[i] = in[i] * FACTOR + "
      "OFFSET;\n}\n");
  auto code = std::make_shared<ForeignCode>(*program.foreign);
  code->words.emplace_back("-fopenmp");
  program.foreign = code;
  const Result<Artifact> artifact = compile_foreign(program, "llvm -mcpu=x86-64", 2);
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  {
    const Result<Kernel> kernel = Kernel::load(*artifact);
    ASSERT_TRUE(kernel.is_ok()) << kernel.message();
    float in[5] = {1, 2, 3, 4, 5}, out[5] = {};
    void* args[] = {in, out};
    ASSERT_TRUE(kernel->call(args, {}).is_ok());
    EXPECT_EQ(out[4], 16);
  }
  EXPECT_TRUE(is_loaded());
}

TEST_F(Foreign, WhatIsShippedNamesTheInstructionSetsThatItMayUse) {
  const auto shipped = [](const char* flag) {
    Program program = scale();
    auto code = std::make_shared<ForeignCode>(*program.foreign);
    code->parameters = {{"const float*", "in"}, {"float*", "out"}, {"int", "n"}};
    if (*flag != 0) code->words.emplace_back(flag);
    program.foreign = code;
    const Result<ShippedKernel> made =
        ship_foreign(program, parse_target("llvm -mcpu=x86-64").value(), {.function = "scale"});
    EXPECT_TRUE(made.is_ok()) << made.message();
    return made ? made->instruction_sets : std::vector<std::string>();
  };
#if defined(__x86_64__)
  EXPECT_THAT(shipped(""), IsEmpty());
  EXPECT_THAT(shipped("-mfma"), IsSupersetOf({"fma", "avx", "sse4.2"}));
  EXPECT_THAT(shipped("-mxop"), AllOf(IsSupersetOf({"xop", "fma4", "avx"}), Not(Contains("avx2"))));
  EXPECT_THAT(shipped("-march=native"), Each(ResultOf(cpu_has, Optional(true))));
#elif defined(__aarch64__)
  EXPECT_THAT(shipped("-march=armv8.2-a+dotprod"), ::testing::ElementsAre("dotprod"));
#endif
  for (const InstructionSet& set : kInstructionSets) EXPECT_NE(cpu_has(set.name), std::nullopt) << set.name;
  EXPECT_EQ(cpu_has("avx4096"), std::nullopt);
}

TEST_F(Foreign, WhatTheCompilerRefusesIsToldInItsWords) {
  EXPECT_THAT(refusal(scale("void scale(const float* in, float* out, int n) { out[0] = in[0] + oops; }")),
              HasSubstr("scale.c:1:"));
  EXPECT_THAT(refusal(scale("void other(void) {}")), HasSubstr("scale"));
  EXPECT_THAT(refusal(scale("void scale(const double* in, float* out, int n) {}")),
              HasSubstr("incompatible pointer type"));
  EXPECT_THAT(refusal(scale("void gone(int); void scale(const float* in, float* out, int n) { gone(n); }")),
              HasSubstr("gone"));
  EXPECT_THAT(refusal(scale("#error \x1b[2J cleared\n")), HasSubstr("\\x1b"));
  std::string many;
  for (int i = 0; i < 2000; ++i)
    many += "#warning a long line that says little but says it again and again\n#error more\n";
  EXPECT_LE(refusal(scale(many)).size(), 5000u);
  Program unknown = scale();
  ForeignCode code = *unknown.foreign;
  code.compiler = "tcc";
  unknown.foreign = std::make_shared<const ForeignCode>(code);
  const Result<Artifact> none = compile_foreign(unknown, "llvm -mcpu=x86-64", 1);
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr("is not on this host's list (cc, c++)"));
}

// The assembler and the linker name their files with the folder in which they ran.
TEST_F(Foreign, WhatTheAssemblerAndTheLinkerSayNamesNoFolderOfTheHosts) {
  const std::string body = "\nvoid scale(const float* in, float* out, int n) { WHAT }\n";
  for (const auto& [what, said] : {std::pair("__asm__(\"no_such_instruction\");", "no such instruction"),
                                   {"extern void none(void); none();", "undefined reference to `none'"}}) {
    std::string text = body;
    text.replace(text.find("WHAT"), 4, what);
    const std::string message = refusal(scale(text));
    EXPECT_THAT(message, HasSubstr(said));
    EXPECT_EQ(message.find("tuner-source"), std::string::npos) << message;
    EXPECT_EQ(message.find("/tmp"), std::string::npos) << message;
  }
}

// Every way of a text to a file of the host's that its author did not bring.
TEST_F(Foreign, ATextReadsNoFileOfTheHosts) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("secret.h")) << "#define SECRET 12345\n";
  const std::string path = folder.file("secret.h"),
                    body = "\nvoid scale(const float* in, float* out, int n) {}\n";
  for (const std::string& text :
       {str("#include \"", path, "\"", body), str("#define WHERE \"", path, "\"\n#include WHERE", body),
        str("#include <../../..", path, ">", body), str("__asm__(\".incbin \\\"", path, "\\\"\");", body),
        str("__asm__(\".include \\\"", path, "\\\"\");", body), str("#include \"/etc/passwd\"", body),
        str("__asm__(\".incbin \\\"/etc/passwd\\\"\");", body),
        str("#include \"/proc/self/environ\"", body)}) {
    const std::string message = refusal(scale(text));
    EXPECT_EQ(message.find("12345"), std::string::npos) << text;
    EXPECT_EQ(message.find("root:"), std::string::npos) << text;
  }
}

TEST_F(Foreign, WhatAConfigDefinesIsAHeader) {
  EXPECT_EQ(foreign_definitions(scale()), "#define FACTOR 3\n");
  EXPECT_EQ(foreign_definitions(Program{.name = "ours"}),
            "// ours: its template is ours, and no macros of a user's decide what it is\n");
}

TEST_F(Foreign, ALibraryOfTheHostsThatIsNotListedIsRefused) {
  const Result<Artifact> artifact = compile_foreign(
      scale("#include <stdlib.h>\nvoid scale(const float* in, float* out, int n) { if (n < 0) abort(); }"),
      "llvm -mcpu=x86-64", 1);
  ASSERT_TRUE(artifact.is_ok()) << artifact.message();
  EXPECT_TRUE(check_needed_libraries(artifact->binary).is_ok());
  std::string other = artifact->binary;
  const size_t at = other.find("libc.so.6");
  ASSERT_NE(at, std::string::npos);
  other.replace(at, 9, "libz.so.1");
  EXPECT_THAT(check_needed_libraries(other).message(), HasSubstr("it needs libz.so.1"));
}

// What is assembled is the text that was read, and nothing else.
TEST_F(Foreign, AnArtifactIsMadeOfItsListing) {
  const Program program = scale(
      "#include <math.h>\nvoid scale(const float* in, float* out, int n) { for (int i = 0; i < n; ++i) "
      "out[i] = expf(in[i]); }");
  Result<ForeignListing> listing = list_foreign(program);
  ASSERT_TRUE(listing.is_ok()) << listing.message();
  EXPECT_THAT(listing->assembly, HasSubstr("kernel_of_test:"));
  const Result<Artifact> made = assemble_foreign(*listing, program, "llvm -mcpu=x86-64", 1);
  ASSERT_TRUE(made.is_ok()) << made.message();
  EXPECT_EQ(made->manifest.entry, "kernel_of_test");
  const DynamicSymbols symbols = dynamic_symbols(made->binary);
  EXPECT_THAT(symbols.imported, ::testing::Contains("expf"));
  EXPECT_EQ(symbols.exported, std::vector<std::string>{"kernel_of_test"});
  EXPECT_TRUE(dynamic_symbols(made->binary.substr(0, 100)).imported.empty());
  EXPECT_EQ(list_foreign(scale("void scale(")).status().code(), StatusCode::kInvalidConfig);
}

// --- one run, for an answer ---

std::vector<std::string> bytes_of(const std::vector<float>& numbers) {
  return {std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float))};
}

TEST_F(Foreign, OneRunGivesItsAnswer) {
  const auto answers = run_foreign(scale(), bytes_of({1, 2, 3, 4, 5}));
  ASSERT_TRUE(answers.is_ok()) << answers.message();
  ASSERT_EQ(answers->size(), 1u);
  EXPECT_EQ((*answers)[0], bytes_of({4, 7, 10, 13, 16})[0]);
  const auto each = run_foreign_each(scale(), {bytes_of({1, 2, 3, 4, 5}), bytes_of({2, 2, 3, 4, 5})});
  ASSERT_TRUE(each.is_ok()) << each.message();
  EXPECT_EQ(each->at(0), *answers);
  EXPECT_EQ(each->at(1), bytes_of({7, 7, 10, 13, 16}));
  // What is not written is seen.
  const auto none =
      run_foreign(scale("void scale(const float* in, float* out, int n) {}"), bytes_of({1, 2, 3, 4, 5}));
  EXPECT_EQ((*none)[0], std::string(20, '\xff'));
  EXPECT_EQ(run_foreign(scale(kScale, /*cxx=*/true), bytes_of({1, 2, 3, 4, 5}))->at(0), answers->at(0));
}

TEST_F(Foreign, ARunThatGoesWrongIsToldWithWhatItPrinted) {
  const auto wrong = [](const std::string& body) {
    ForeignRun run;
    run.deadline = std::chrono::milliseconds(1500);
    const auto answers = run_foreign(scale("#include <stdio.h>\n#include <stdlib.h>\n#include "
                                           "<unistd.h>\n#include <signal.h>\n#include <sys/socket.h>\n"
                                           "void scale(const float* in, float* out, int n) {" +
                                           body + "}"),
                                     bytes_of({1, 2, 3, 4, 5}), run);
    EXPECT_FALSE(answers.is_ok());
    return answers.message();
  };
  EXPECT_THAT(wrong("*(volatile int*)0 = 1;"), HasSubstr("scale did not end well: signal 11 (SIGSEGV)"));
  EXPECT_THAT(wrong("puts(\"here \\x1b[2J\"); fflush(stdout); abort();"),
              HasSubstr("it printed: here \\x1b[2J"));
  EXPECT_THAT(wrong("for (;;) pause();"), HasSubstr("scale did not end within 1 s"));
  EXPECT_THAT(wrong("remove(\"tuner_operand_1\"); _exit(0);"), HasSubstr("tuner_operand_1"));
}

// What it could do to the host, each told by what it leaves in its answer.
TEST_F(Foreign, ARunTouchesNothingOfTheHosts) {
  const TemporaryFolder folder;
  const std::string there = folder.file("there");
  std::ofstream(there) << "theirs";
  ::chmod(folder.path().c_str(), 0777);
  ::chmod(there.c_str(), 0666);
  const auto answers = run_foreign(
      scale(str("#include <errno.h>\n#include <fcntl.h>\n#include <signal.h>\n#include "
                "<sys/mount.h>\n#include <sys/socket.h>\n#include <netinet/in.h>\n"
                "#include <arpa/inet.h>\n#include <unistd.h>\n"
                "void scale(const float* in, float* out, int n) {"
                "  out[0] = open(\"",
                there,
                "\", O_RDONLY) >= 0;"
                "  out[1] = open(\"",
                there, "\", O_WRONLY) >= 0 || unlink(\"", there,
                "\") == 0;"
                "  out[2] = kill(",
                ::getpid(),
                ", 0) == 0;"
                "  out[3] = geteuid() == 0 || mount(\"none\", \"/usr\", \"tmpfs\", 0, 0) == 0;"
                "  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = "
                "{htonl(INADDR_LOOPBACK)}};"
                "  const int s = socket(AF_INET, SOCK_STREAM, 0); errno = 0;"
                "  out[4] = connect(s, (struct sockaddr*)&a, sizeof a) == 0 || errno == ECONNREFUSED; }")),
      bytes_of({1, 2, 3, 4, 5}));
  ASSERT_TRUE(answers.is_ok()) << answers.message();
  const auto* const out = reinterpret_cast<const float*>(answers->at(0).data());
  EXPECT_EQ(out[0], 0) << "it read a file";
  EXPECT_EQ(out[1], 0) << "it wrote a file";
  EXPECT_EQ(out[2], 0) << "it may send signals";
  EXPECT_EQ(out[3], 0) << "it is root";
  if (landlock_network()) {
    EXPECT_EQ(out[4], 0) << "it has a network";
  }
}

// --- any program ---

ConfinedProgram shell(const TemporaryFolder& folder, const std::string& script) {
  return {.path = "/bin/sh",
          .words = {"sh", "-c", script},
          .folder = folder.path(),
          .deadline = std::chrono::seconds(20)};
}

TEST_F(Foreign, AConfinedProgramWritesItsFolderAndNothingElse) {
  const TemporaryFolder folder, other;
  std::ofstream(other.file("there")) << "theirs";
  const std::string there = other.file("there"), fresh = other.file("fresh");
  const Result<ConfinedEnd> end = run_confined(
      shell(folder, "echo mine > made; cat made; cat " + there + "; echo x > " + fresh + "; echo x >> " +
                        there + "; ls " + other.path().string() + "; rm -f " + there + "; ln -s " + there +
                        " link; cat link; echo x > /dev/null && echo null; id -u; echo $TMPDIR $SECRET"));
  ASSERT_TRUE(end.is_ok()) << end.message();
  EXPECT_THAT(end->output, HasSubstr("mine\n"));
  EXPECT_EQ(end->output.find("theirs"), std::string::npos) << end->output;
  EXPECT_THAT(end->output, HasSubstr("null\n"));
  EXPECT_THAT(end->output, HasSubstr(folder.path().string()));
  EXPECT_FALSE(std::filesystem::exists(fresh));
  std::ifstream in(there);
  std::string text;
  std::getline(in, text);
  EXPECT_EQ(text, "theirs");
}

TEST_F(Foreign, AConfinedProgramHasAnEnd) {
  const TemporaryFolder folder;
  ConfinedProgram hanging = shell(folder, "sleep 100 & sleep 100 & echo $$; wait");
  hanging.deadline = std::chrono::milliseconds(300);
  const Result<ConfinedEnd> end = run_confined(hanging);
  ASSERT_TRUE(end.is_ok());
  EXPECT_TRUE(end->timed_out);
  EXPECT_NE(::kill(-std::stoi(end->output), 0), 0) << "all that it started is gone";

  ConfinedProgram large =
      shell(folder, "head -c 1000000 /dev/zero > file; echo $?; while :; do echo yes; done");
  large.file_bytes = 4096;
  large.output_bytes = 100;
  large.deadline = std::chrono::milliseconds(500);
  const Result<ConfinedEnd> loud = run_confined(large);
  ASSERT_TRUE(loud.is_ok());
  EXPECT_TRUE(loud->timed_out);
  EXPECT_EQ(loud->output.size(), 100u);
  EXPECT_LE(std::filesystem::file_size(folder.path() / "file"), 4096u);
}

// Those that run in the folder or below, whoever's children they are.
std::vector<pid_t> processes_in(const TemporaryFolder& folder) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::filesystem::path at = std::filesystem::read_symlink(entry.path() / "cwd", error);
    if (!error && at.string().starts_with(std::filesystem::canonical(folder.path()).string()))
      found.push_back(std::stoi(name));
  }
  return found;
}

// Sessions of their own, several deep, and a program that ends before they do.
constexpr char kLeavesSessions[] =
    "for i in 1 2 3 4 5; do setsid sh -c 'setsid sh -c \"sleep 100 & sleep 100\" & sleep 100' & done; sleep "
    "0.2";

TEST_F(Foreign, WhatAConfinedProgramStartedEndsWithItInWhateverSession) {
  const TemporaryFolder folder;
  const Result<ConfinedEnd> end = run_confined(shell(folder, kLeavesSessions));
  ASSERT_TRUE(end.is_ok()) << end.message();
  EXPECT_EQ(end->status, 0);
  EXPECT_THAT(processes_in(folder), ::testing::IsEmpty());

  ConfinedProgram hanging = shell(folder, std::string(kLeavesSessions) + "; sleep 100");
  hanging.deadline = std::chrono::milliseconds(500);
  EXPECT_TRUE(run_confined(hanging)->timed_out);
  EXPECT_THAT(processes_in(folder), ::testing::IsEmpty());
}

TEST_F(Foreign, WhatAConfinedProgramStartedEndsWithTheProcessThatAskedForIt) {
  const TemporaryFolder folder;
  const pid_t caller = ::fork();
  if (caller == 0) {
    (void)run_confined(shell(folder, std::string(kLeavesSessions) + "; sleep 100"));
    ::_exit(0);
  }
  ASSERT_TRUE(wait_until(std::chrono::seconds(60), [&] { return processes_in(folder).size() >= 10; }));
  ::kill(caller, SIGKILL);
  ASSERT_EQ(::waitpid(caller, nullptr, 0), caller);
  EXPECT_TRUE(wait_until(std::chrono::seconds(60), [&] { return processes_in(folder).empty(); }));
}

TEST_F(Foreign, HowItEndedIsTold) {
  const TemporaryFolder folder;
  EXPECT_EQ(WEXITSTATUS(run_confined(shell(folder, "exit 3"))->status), 3);
  EXPECT_EQ(WTERMSIG(run_confined(shell(folder, "kill -9 $$"))->status), SIGKILL);
  ConfinedProgram gone = shell(folder, "");
  gone.path = "/usr/bin/there-is-no-such-program";
  EXPECT_THAT(run_confined(gone).message(), HasSubstr("cannot be started: exec: No such file or directory"));
}

// --- the operator's list ---

TEST_F(Foreign, CompilersComeFromTheOperatorsList) {
  const TemporaryFolder folder;
  const std::string script = folder.file("mycc");
  std::ofstream(script) << "#!/bin/sh\necho 'mycc 7'\n";
  ::chmod(script.c_str(), 0755);
  ASSERT_EQ(::setenv("TUNER_COMPILERS", ("mycc=" + script + ",cc").c_str(), 1), 0);
  EXPECT_EQ(find_compiler("mycc")->version, "mycc 7");
  EXPECT_TRUE(find_compiler("cc").is_ok());
  EXPECT_EQ(find_compiler("c++").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(listed_compilers(), (std::vector<std::string>{"mycc", "cc"}));
  std::ofstream(script) << "#!/bin/sh\necho 'mycc 8, which is newer'\n";
  EXPECT_EQ(find_compiler("mycc")->version, "mycc 8, which is newer");
  // nvcc names itself and its owner first.
  std::ofstream(script)
      << "#!/bin/sh\necho 'mycc: a driver'\necho 'Copyright 2005-2025'\necho 'Built at 01:58:59'\n"
         "echo 'tools, release 13.0, V13.0.88'\n";
  EXPECT_EQ(find_compiler("mycc")->version, "tools, release 13.0, V13.0.88");
  std::ofstream(script) << "#!/bin/sh\necho 'mycc 8, which is newer'\n";
  // A record of before names another version than one of today.
  EXPECT_EQ(toolchain_now("source:mycc 7"), "source:mycc 8, which is newer");
  EXPECT_EQ(toolchain_now("source:gone 1"), "");
  EXPECT_EQ(toolchain_now("llvm 22"), "");
  ::unsetenv("TUNER_COMPILERS");
  EXPECT_EQ(listed_compilers(), (std::vector<std::string>{"cc", "c++"}));
}

}  // namespace
}  // namespace tuner
