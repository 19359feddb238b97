// What a change to the tree costs, counted: how far verbs, folders, functions and helpers may grow. Prints
// the table that deploy/check.sh shows; a row that is above its bound fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/layering/tree.h"

namespace tuner::tree {
namespace {

void print_row(const char* what, size_t found, size_t most) {
  std::printf("structure: %-78s %5zu (at most %zu)\n", what, found, most);
}

std::string listed(const std::vector<std::string>& places) {
  std::string text;
  for (const std::string& place : places) text += "\n  " + place;
  return text;
}

const std::vector<SourceFile>& sources() {
  static const std::vector<SourceFile> files = read_files(kProgram, {".h", ".cpp"});
  return files;
}

// What tuner/cli has beside verbs: the program, what verbs share, and lists of subcommands.
bool is_shared_by_verbs(const std::string& name) {
  static const std::set<std::string> kShared = {"app.cpp",  "command.cpp", "command.h",  "log.h",
                                                "main.cpp", "main.h",      "program.cpp"};
  return kShared.contains(name) || name.ends_with("_commands.h");
}

// A verb is a file that defines one function add_NAME(Command ...). Beside verbs there are no files of
// helpers: else a verb could be long by being two files.
TEST(Structure, AVerbIsAnAdapter) {
  constexpr size_t kMostLines = 200;
  const std::regex adds(R"(^void add_\w+\(Command [^;]*\{$)");
  size_t verbs = 0, longest = 0;
  std::vector<std::string> longer, others;
  for (const SourceFile& file : sources()) {
    if (!file.path.starts_with("tuner/cli/")) continue;
    longest = std::max(longest, file.lines.size());
    if (file.lines.size() > kMostLines)
      longer.push_back(file.path + ": " + std::to_string(file.lines.size()) + " lines");
    if (is_shared_by_verbs(fs::path(file.path).filename())) continue;
    const auto added = std::ranges::count_if(
        file.lines, [&](const std::string& line) { return std::regex_search(line, adds); });
    if (added == 1)
      ++verbs;
    else
      others.push_back(file.path + " adds " + std::to_string(added) + " commands");
  }
  print_row("lines of the longest verb of tuner/cli", longest, kMostLines);
  EXPECT_TRUE(longer.empty()) << "a verb reads options, calls a room beside tuner/cli, and tells"
                              << listed(longer);
  print_row("files of tuner/cli that are no verb", others.size(), 0);
  EXPECT_TRUE(others.empty()) << "what helps a verb stands where its subject is" << listed(others);
  EXPECT_GT(verbs, 30u) << "the tree was not found below " << TUNER_SOURCE_DIR;
}

// A folder that is read by what it reads cannot be understood, built or tested alone.
TEST(Structure, NoFolderReadsItselfByWayOfOthers) {
  std::map<std::string, std::set<std::string>> reads;  // folder -> folders
  for (const Include& i : includes_of_the_tree()) {
    const std::string from = fs::path(i.file).parent_path(), to = fs::path(i.included).parent_path();
    if (is_ours(i) && from != to) reads[from].insert(to);
  }
  std::map<std::string, std::set<std::string>> reached = reads;  // by one or more arrows
  for (bool grew = true; grew;) {
    grew = false;
    for (auto& [folder, all] : reached) {
      const size_t before = all.size();
      for (const std::string& next : std::set<std::string>(all))
        if (const auto further = reads.find(next); further != reads.end())
          all.insert(further->second.begin(), further->second.end());
      grew = grew || all.size() > before;
    }
  }
  ASSERT_GT(reached.size(), 20u);
  std::vector<std::string> in_cycles;
  for (const auto& [folder, all] : reached)
    if (all.contains(folder)) in_cycles.push_back(folder);
  print_row("folders that read a folder which reads them", in_cycles.size(), 0);
  EXPECT_TRUE(in_cycles.empty()) << listed(in_cycles);
}

// Shown by one field that was added for real: the message, the member, its description, a migration, its
// filler.
TEST(Structure, AFieldOfARecordStandsInFiveFiles) {
  std::vector<std::string> places;
  for (const SourceFile& file : read_files(kProgram, {".h", ".cpp", ".proto", ".sql"}))
    if (std::ranges::any_of(file.lines, [](const std::string& line) {
          return line.find("page_faults") != std::string::npos;
        }))
      places.push_back(file.path);
  print_row("product files that name the record field page_faults", places.size(), 5);
  EXPECT_LE(places.size(), 5u) << listed(places);
  EXPECT_GE(places.size(), 3u) << "the field has gone; name another one here";
}

// A template is its file, its test and these lines.
TEST(Structure, ACpuTemplateIsListedTwice) {
  std::vector<std::string> places;
  for (const SourceFile& file :
       read_files({"templates", "tests/templates", "tuner"}, {".h", ".cpp", ".txt"})) {
    const std::string name = fs::path(file.path).filename();
    if (name == "transpose_cpu.cpp" || name.ends_with("_test.cpp")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i)
      if (file.lines[i].find("transpose_cpu") != std::string::npos)
        places.push_back(file.path + ":" + std::to_string(i + 1));
  }
  print_row("lines outside its file and its test that name the template transpose_cpu", places.size(), 2);
  EXPECT_LE(places.size(), 2u) << listed(places);
  EXPECT_GE(places.size(), 1u) << "the template has gone; name another one here";
}

// A room of the daemon is read in one go.
TEST(Structure, RoomsHaveHeadersOfAHundredLines) {
  size_t longest = 0, rooms = 0;
  std::vector<std::string> places;
  for (const SourceFile& file : sources()) {
    if (!file.path.starts_with("tuner/daemon/rooms/") || !file.path.ends_with(".h")) continue;
    ++rooms;
    longest = std::max(longest, file.lines.size());
    if (file.lines.size() > 100) places.push_back(file.path);
  }
  print_row("lines of the longest header of a room", longest, 100);
  EXPECT_TRUE(places.empty()) << listed(places);
  EXPECT_GT(rooms, 10u) << "the rooms were not found";
}

// An operator is its header, its source, its place in the list of operators, and its source's line for CMake.
// The templates that serve it and the importer that finds it in networks are work of their own.
TEST(Structure, AnOperatorStandsInFourFiles) {
  constexpr size_t kMostFiles = 4;
  const std::string room = "templates/workload/operators/";
  const std::regex workload(R"(^struct ([A-Z]\w*Workload) \{)");
  const std::vector<SourceFile> files = read_files(kProgram, {".h", ".cpp", ".txt", ".proto", ".sql"});
  size_t operators = 0, most = 0;
  for (const SourceFile& header : files) {
    std::smatch match;
    const auto names_one = [&](const std::string& line) { return std::regex_search(line, match, workload); };
    if (!header.path.starts_with(room) || std::ranges::none_of(header.lines, names_one)) continue;
    ++operators;
    const std::string name = match[1], source = "operators/" + fs::path(header.path).stem().string() + ".";
    std::vector<std::string> places;
    for (const SourceFile& file : files) {
      if (file.path.starts_with("templates/cpu/") || file.path.starts_with("templates/cuda/") ||
          file.path.starts_with("templates/npu/") || file.path.starts_with("tuner/model/") ||
          file.path == "compiler_core/graph/CMakeLists.txt")  // operators of networks may have the same names
        continue;
      if (std::ranges::any_of(file.lines, [&](const std::string& line) {
            return line.find(name) != std::string::npos || line.find(source) != std::string::npos;
          }))
        places.push_back(file.path);
    }
    most = std::max(most, places.size());
    EXPECT_LE(places.size(), kMostFiles) << name << " is named in" << listed(places);
    EXPECT_GE(places.size(), 3u) << name << " is not found any more";
  }
  print_row("product files that name an operator, besides templates and importer", most, kMostFiles);
  EXPECT_GE(operators, 9u) << "operators are not found any more";
}

// What differs from device to device stands behind compiler_core/backend.h. The folders of back ends may ask,
// as may templates, which are of one kind of device each.
TEST(Structure, OnlyBackEndsAskForTheKindOfDevice) {
  const std::vector<std::string> back_ends = {"compiler_core/codegen/",        "compiler_core/codegen_cuda/",
                                              "compiler_core/target",          "compiler_core/runtime/cuda_",
                                              "compiler_core/artifact/",       "compiler_core/backends/",
                                              "compiler_core/codegen_npu/",    "compiler_core/npu/",
                                              "measure_server/runner/device_", "templates/"};
  const std::regex asks(
      R"(\bis_(cuda|cpu|gpu|npu)\(|DeviceKind|binary_kind::kCubin|\b(cpu|cuda|npu)_(family|backend)\(|starts_with\("(cuda|llvm|nvrtc)|[=!]= "(cuda|llvm|nvrtc)|compile_cuda|codegen_cuda/)");
  std::vector<std::string> places;
  for (const SourceFile& file : sources()) {
    if (std::ranges::any_of(back_ends,
                            [&](const std::string& folder) { return file.path.starts_with(folder); }))
      continue;
    for (size_t i = 0; i < file.lines.size(); ++i)
      if (!file.lines[i].starts_with("//") && std::regex_search(file.lines[i], asks))
        places.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  }
  print_row("questions for the kind of device outside back ends, templates and target", places.size(), 0);
  EXPECT_TRUE(places.empty()) << listed(places);
  EXPECT_TRUE(std::regex_search("  if (target.is_cuda()) return;", asks));
  EXPECT_TRUE(std::regex_search("  if (words[0] == \"cuda\") return;", asks));
}

// The word "ok", or an outcome that means nothing else; and a role beside the word `role`, whatever is done
// with it there.
bool names_an_outcome(const std::string& code) {
  static const std::regex outcome(
      R"re("(ok|invalid_config|build_error|build_timeout|run_timeout|crashed|wrong_answer|out_of_memory|device_lost|unable|other_version)")re");
  return std::regex_search(code, outcome);
}
bool names_a_role(const std::string& code) {
  static const std::regex role(
      R"re(\brole\b.*"(input|constant|output|packed|intermediate|inout)"|"(intermediate|inout)")re");
  return std::regex_search(code, role);
}

// Outcomes and roles have enumerators. Text is for messages and files, and one file each knows the words.
TEST(Structure, OutcomesAndRolesAreEnumeratorsNotText) {
  const std::set<std::string> words = {"compiler_core/base/outcome.cpp", "compiler_core/base/buffer_role.cpp",
                                       "compiler_core/base/status.cpp",  // the names of StatusCode
                                       // Verdicts of a judge, some of which are spelt like outcomes.
                                       "tuner/judge/kernel_verdict.cpp",
                                       // What job files call the roles of a user's arguments.
                                       "templates/source_kernel/source_kernel.h"};
  // Other words that are spelt alike: answers of SQLite's `PRAGMA integrity_check`.
  const std::regex of_sqlite(R"(SqlValue\("ok"\)|\*text != "ok")");
  std::vector<std::string> places;
  for (const SourceFile& file : sources()) {
    if (words.contains(file.path)) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      const std::string code = line.substr(0, std::min(line.find("//"), line.find("/*")));
      if ((names_an_outcome(code) && !std::regex_search(code, of_sqlite)) || names_a_role(code))
        places.push_back(file.path + ":" + std::to_string(i + 1) + ": " + line);
    }
  }
  print_row("literals of outcomes and of roles of arguments outside the files of their names", places.size(),
            0);
  EXPECT_TRUE(places.empty()) << listed(places);
  EXPECT_TRUE(names_an_outcome("  if (reply.outcome == \"ok\") return;"));
  EXPECT_TRUE(names_an_outcome("  return verdict(\"crashed\", why);"));
  EXPECT_TRUE(names_a_role("  if (arg.role != \"output\") continue;"));
  EXPECT_TRUE(names_a_role("  args.push_back({.role = \"constant\"});"));
  EXPECT_FALSE(names_a_role("  b.input(\"input\", shape);"));
}

// A user's source is one more template. Who speaks of such kernels by name is what reads them and what serves
// them; all others see a workload whose key names a document.
TEST(Structure, OnlyJobsAndTemplatesAskForKernelsOfUsers) {
  const std::regex asks(
      R"([=!]= "kernel"|\bSourceKernel\b|\bKernelWorkload\b|\bread_source_kernel\(|\bkernel_workload\()");
  std::vector<std::string> places;
  for (const SourceFile& file : sources()) {
    if (file.path.starts_with("templates/") || file.path.starts_with("tuner/jobs/")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i)
      if (std::regex_search(file.lines[i], asks))
        places.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  }
  print_row("questions for kernels of users outside jobs and templates", places.size(), 0);
  EXPECT_TRUE(places.empty()) << listed(places);
  EXPECT_TRUE(std::regex_search("  if (op == \"kernel\") return;", asks));
}

// Functions of a file, told by what clang-format makes of them: a head that ends in `{`, and `}` below its
// first letter. A body of a member of a class is indented by two.
struct Function {
  size_t first = 0, lines = 0;  // counted from 1
};
std::vector<Function> functions_of(const SourceFile& file) {
  const std::regex other(
      R"(^\s*(namespace|class|struct|enum|union|extern|if|for|while|switch|do|else|return|try|case)\b)");
  const std::regex lambda(R"(\[[^\]]*\]\s*[({])");
  const std::regex ends_statement(R"([;{}:]\s*(//.*)?$|^\s*(//|#|$))");
  std::vector<Function> found;
  const std::vector<std::string>& lines = file.lines;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].ends_with("{")) continue;
    size_t head = i;
    while (head > 0 && !std::regex_search(lines[head - 1], ends_statement)) --head;
    std::string text;
    for (size_t k = head; k <= i; ++k) text += lines[k];
    const size_t indent = text.find_first_not_of(' ');
    if (indent > 2 || text.find('(') == std::string::npos || std::regex_search(text, other) ||
        std::regex_search(text, lambda))
      continue;
    const std::string end = std::string(indent, ' ') + "}";
    for (size_t k = i + 1; k < lines.size(); ++k) {
      if (!lines[k].starts_with(end)) continue;
      found.push_back({head + 1, k - head + 1});
      break;
    }
  }
  return found;
}

TEST(Structure, AFunctionFitsAPage) {
  constexpr size_t kMostLines = 80;
  size_t functions = 0;
  std::vector<std::string> longer;
  for (const SourceFile& file : sources())
    for (const Function& f : functions_of(file)) {
      ++functions;
      if (f.lines > kMostLines)
        longer.push_back(file.path + ":" + std::to_string(f.first) + ": " + std::to_string(f.lines) +
                         " lines");
    }
  print_row("functions of the product of more than 80 lines", longer.size(), 0);
  EXPECT_TRUE(longer.empty()) << listed(longer);
  EXPECT_GT(functions, 2'000u) << "functions are not found any more";
}

TEST(Structure, FunctionsAreFound) {
  const SourceFile file{"x.cpp",
                        {"namespace a {", "int f(int x,", "      int y) {", "  return x;", "}", "class B {",
                         "  void g() const {", "    if (x) {", "    }", "  }", "};"}};
  const std::vector<Function> found = functions_of(file);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].first, 2u);
  EXPECT_EQ(found[0].lines, 4u);
  EXPECT_EQ(found[1].lines, 4u);
}

// Declarations of functions in the body of a class, its constructors and destructor among them, `= delete`
// left out. Those of types that the class declares do not count.
std::vector<std::string> methods_of(const SourceFile& file, const std::string& name) {
  const std::regex comment("//.*"), quoted(R"("(\\.|[^"\\])*")"),
      access(R"(^\s*(public|private|protected):)"), argument_list("<[^<>]*>"),
      no_function(R"(^(using|friend|static_assert|struct|class|enum|union)\b)"),
      head("^class " + name + R"(\b[^;]*\{)");
  std::string text;
  for (const std::string& line : file.lines) {
    const std::string code = std::regex_replace(std::regex_replace(line, comment, ""), quoted, "");
    if (text.empty() && !std::regex_search(code, head)) continue;
    text += code + "\n";
  }
  std::vector<std::string> found;
  std::string statement;  // the bodies of functions and types left out
  const auto end_statement = [&] {
    std::string declared = std::regex_replace(statement, access, "");
    for (std::string before; before != declared;)
      before = std::exchange(declared, std::regex_replace(declared, argument_list, ""));
    declared.erase(0, declared.find_first_not_of(" \n"));
    const std::string until_value = declared.substr(0, declared.find_first_of("={"));
    if (until_value.find('(') != std::string::npos && !std::regex_search(declared, no_function) &&
        declared.find("= delete") == std::string::npos)
      found.push_back(until_value);
    statement.clear();
  };
  int depth = 0;
  for (size_t i = text.find('{'); i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' && depth++ == 0) continue;
    if (c == '}' && --depth == 0) break;
    if (depth == 1 || (c == '{' && depth == 2)) statement += c;
    const bool ends_body = c == '}' && depth == 1 && text[text.find_first_not_of(" \n", i + 1)] != ';';
    if (depth == 1 && (c == ';' || ends_body)) end_statement();
  }
  return found;
}

// A class that does everything is one that nobody can read, test or change alone. Interfaces that many call
// (Schedule, Store) are as large as what they offer.
TEST(Structure, AClassHasOneSubject) {
  const struct {
    const char *name, *file;
    size_t most;
  } classes[] = {{"Coordinator", "tuner/daemon/coordinator.h", 25},
                 {"Emitter", "compiler_core/codegen/emitter.h", 60},
                 {"KernelPrinter", "compiler_core/codegen_cuda/kernel_printer.h", 60}};
  for (const auto& c : classes) {
    const auto file = std::ranges::find(sources(), c.file, &SourceFile::path);
    ASSERT_NE(file, sources().end()) << c.file << " has gone: name the class's new file here";
    const std::vector<std::string> methods = methods_of(*file, c.name);
    print_row((std::string("methods of ") + c.name).c_str(), methods.size(), c.most);
    EXPECT_LE(methods.size(), c.most) << listed(methods);
    EXPECT_GE(methods.size(), 5u) << "methods of " << c.name << " are not found any more";
  }
}

TEST(Structure, MethodsAreFound) {
  const SourceFile file{"x.h",
                        {"class Forward;",
                         "class A : private B {",
                         " public:",
                         "  explicit A(int x) : x_(x) {}",
                         "  A(const A&) = delete;",
                         "  ~A();",
                         "  bool is(int y = f(1)) const { return y == x_; }",
                         "  void told(std::function<void(int)> tell,",
                         "            int more);",
                         "  // not() this",
                         "  struct Inner {",
                         "    int g() { return 1; }",
                         "  };",
                         "  using F = int();",
                         "",
                         " private:",
                         "  friend void h();",
                         "  std::function<void(int)> tell_;",
                         "  int x_ = f(2), z_{g(3)};",
                         "  template <class T>",
                         "  int t(T x) {",
                         "    if (x) {",
                         "    }",
                         "    return 1;",
                         "  }",
                         "};",
                         "class C {",
                         "  void other();",
                         "};"}};
  EXPECT_EQ(methods_of(file, "A").size(), 5u) << listed(methods_of(file, "A"));
  EXPECT_EQ(methods_of(file, "C").size(), 1u);
}

// clang-format leaves comments as they are. Pictures and tables, which are indented, may be wider; so may the
// text of other languages in raw strings.
TEST(Structure, CommentsObeyTheLimitOfColumns) {
  const std::regex picture(R"(^ *//(   |.*\S {2,}\S))"), raw(R"(R"(\w*)\()");
  std::vector<std::string> wide;
  size_t comments = 0;
  for (const SourceFile& file : read_files({"proto", "tuner", "measure_server", "compiler_core", "templates",
                                            "db", "deploy", "examples", "tests"},
                                           {".h", ".cpp"})) {
    std::string end_of_raw;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      std::smatch begun;
      if (!end_of_raw.empty()) {
        if (line.find(end_of_raw) != std::string::npos) end_of_raw.clear();
        continue;
      }
      if (std::regex_search(line, begun, raw)) {
        const std::string end = ")" + begun[1].str() + "\"";
        if (begun.suffix().str().find(end) == std::string::npos) end_of_raw = end;
        continue;
      }
      const size_t at = line.find("// ");
      if (at == std::string::npos) continue;
      ++comments;
      if (line.size() > 110 && !std::regex_search(line, picture) && line.find_first_of('"') > at)
        wide.push_back(file.path + ":" + std::to_string(i + 1) + ": " + line);
    }
  }
  print_row("lines of comments that are wider than 110 columns", wide.size(), 0);
  EXPECT_TRUE(wide.empty()) << listed(wide);
  EXPECT_GT(comments, 10'000u) << "comments are not found any more";
}

// A test that sleeps to give others time fails on a machine that is slower than its author's, or, where it
// counts what happens meanwhile, on one that is faster. tests/support/wait_until.h waits for the event. What
// is left is about time itself.
TEST(Structure, TestsWaitForEvents) {
  const std::regex sleeps("sleep_for|sleep_until"), passes(R"(\blet_pass\()");
  constexpr size_t kMostPauses = 51;
  std::vector<std::string> sleeping;
  size_t pauses = 0;
  for (const SourceFile& file : read_files({"tests"}, {".h", ".cpp"})) {
    if (file.path.starts_with("tests/bench/") || file.path == "tests/support/wait_until.h" ||
        file.path == "tests/layering/structure_test.cpp")
      continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      pauses += std::regex_search(file.lines[i], passes) ? 1 : 0;
      if (std::regex_search(file.lines[i], sleeps))
        sleeping.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
    }
  }
  print_row("sleeps of tests outside tests/support/wait_until.h", sleeping.size(), 0);
  EXPECT_TRUE(sleeping.empty()) << "wait_until() waits for an event" << listed(sleeping);
  print_row("pauses of tests that are about time itself", pauses, kMostPauses);
  EXPECT_LE(pauses, kMostPauses) << "wait_until() waits for an event";
  EXPECT_GT(pauses, 0u) << "pauses are not found any more";
}

// What stood in several places before compiler_core/base had it.
TEST(Structure, AHelperStandsOnce) {
  size_t more = 0;
  for (const char* name :
       {"median", "quantile", "lower_quartile", "student_t", "student_quantile", "floor_div_of",
        "floor_divide", "floor_div_value", "read_whole", "slurp", "now_us", "time_text"}) {
    const std::regex definition(std::string(R"(^(inline |constexpr |static )*[A-Za-z_:0-9<>]+ )") + name +
                                R"(\([^;]*\{)");
    std::vector<std::string> places;
    for (const SourceFile& file : sources())
      for (size_t i = 0; i < file.lines.size(); ++i)
        if (std::regex_search(file.lines[i], definition))
          places.push_back(file.path + ":" + std::to_string(i + 1));
    more += places.size() > 1 ? places.size() - 1 : 0;
    EXPECT_LE(places.size(), 1u) << name << " is defined in" << listed(places);
  }
  print_row("second definitions of helpers that compiler_core/base has", more, 0);
}

// Types that a file defines at the outermost level, by their full names, those of anonymous namespaces left
// out. Braces stand where clang-format puts them: a namespace does not indent.
std::vector<std::string> types_of(const SourceFile& file) {
  const std::regex opens(R"(^namespace ([a-z_0-9:]+ )?\{$)"), closes(R"(^\}  // namespace)");
  const std::regex type(
      R"(^(?:class|struct|union|enum class|enum)\s+([A-Za-z_0-9]+)(?: final)?(?:\s*:(?!:)[^;]*)?\s*\{)");
  std::vector<std::string> around, found;
  for (const std::string& line : file.lines) {
    std::smatch match;
    if (std::regex_search(line, match, opens)) around.push_back(match[1]);
    if (std::regex_search(line, closes) && !around.empty()) around.pop_back();
    if (std::ranges::find(around, "") != around.end() || !std::regex_search(line, match, type)) continue;
    std::string name;
    for (const std::string& space : around) name += space.substr(0, space.size() - 1) + "::";
    found.push_back(name + match[1].str());
  }
  return found;
}

// Two of one name are undefined behaviour where one program has both, and no compiler or linker says so: of
// the inline functions of the two (destructors, say) it keeps those of one.
TEST(Structure, ATypeHasANameOfItsOwn) {
  std::map<std::string, std::vector<std::string>> places;
  for (const SourceFile& file : sources())
    for (const std::string& name : types_of(file)) places[name].push_back(file.path);
  size_t twice = 0;
  for (const auto& [name, files] : places) {
    twice += files.size() > 1 ? 1 : 0;
    EXPECT_EQ(files.size(), 1u) << name << " is defined in" << listed(files);
  }
  print_row("types that two files define under one name", twice, 0);
  EXPECT_GT(places.size(), 400u) << "types are not found any more";
}

TEST(Structure, TypesAreFound) {
  const SourceFile file{
      "x.h",
      {"namespace a {", "struct Forward;", "struct One {", "  struct Inner {};", "};", "namespace b {",
       "class Two final : public One {", "};", "}  // namespace b", "namespace {", "struct Hidden {", "};",
       "}  // namespace", "enum class Three : uint8_t { kX };", "struct One::Impl {", "};",
       "}  // namespace a"}};
  EXPECT_EQ(types_of(file), (std::vector<std::string>{"a::One", "a::b::Two", "a::Three"}));
}

}  // namespace
}  // namespace tuner::tree
