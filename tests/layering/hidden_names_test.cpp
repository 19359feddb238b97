// Sources of a folder are compiled together (deploy/compile_together.cmake), so a name in the anonymous
// namespace of one is in sight of those behind it. There it hides the name that a header declares in a
// namespace around it, and no compiler says so: the neighbour goes on with another constant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "tests/layering/tree.h"

namespace tuner::tree {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Declared {
  std::string space, name;  // "tuner::cli"; what stands in anonymous namespaces has that of the one around it
  bool anonymous = false, function = false;
};

// The constants, types and functions that a file declares at the level of a namespace. clang-format indents
// nothing there.
std::vector<Declared> declared_by(const SourceFile& file) {
  static const std::regex opens(R"(^namespace ([a-z_0-9:]+ )?\{$)"), closes(R"(^\}  // namespace)");
  static const std::regex type(
      R"(^(?:class|struct|union|enum class|enum|using)\s+([A-Za-z_]\w*)[^()]*(?:[{;=]|$))");
  static const std::regex constant(R"(\b(k[A-Z]\w*)(?:\[[^\]]*\])? ?[={])");
  static const std::regex function(R"(^(?:[\w:<>,*&]+[ *&]+)+([a-z_]\w*)\()");
  std::vector<std::string> around;
  std::vector<Declared> found;
  for (const std::string& line : file.lines) {
    std::smatch match;
    if (line.starts_with("namespace ") && std::regex_search(line, match, opens)) {
      around.push_back(match[1]);
      continue;
    }
    if (line.starts_with("}") && !around.empty()) {
      if (std::regex_search(line, closes)) around.pop_back();
      continue;
    }
    if (around.empty() || line.empty() || std::string_view(" #/}):").find(line[0]) != std::string_view::npos)
      continue;
    Declared d{.anonymous = std::ranges::find(around, "") != around.end()};
    for (const std::string& space : around)
      if (!space.empty()) d.space += (d.space.empty() ? "" : "::") + space.substr(0, space.size() - 1);
    const auto add = [&](const std::string& name, bool is_function) {
      d.name = name, d.function = is_function;
      found.push_back(d);
    };
    if (line.find("const") != std::string::npos && line.find('=') != std::string::npos &&
        line.find('(') > line.find('=')) {
      for (std::sregex_iterator at(line.begin(), line.end(), constant), end; at != end; ++at)
        add((*at)[1], false);
    } else if (std::regex_search(line, match, type)) {
      add(match[1], false);
    } else if (std::regex_search(line, match, function)) {
      add(match[1], true);
    }
  }
  return found;
}

using Files = std::map<std::string, SourceFile>;

using Includes = std::map<std::string, std::vector<std::string>>;

Includes includes_of(const Files& files) {
  static const std::regex include(R"(^#include "([^"]+)\")");
  Includes found;
  for (const auto& [path, file] : files)
    for (const std::string& line : file.lines)
      if (std::smatch match; line.starts_with("#include") && std::regex_search(line, match, include))
        found[path].push_back(match[1]);
  return found;
}

// Whether `path` includes `header`, by way of others too.
bool reads(const std::string& path, const std::string& header, const Includes& includes) {
  std::set<std::string> seen = {path};
  for (std::vector<std::string> left = {path}; !left.empty();) {
    const auto at = includes.find(left.back());
    left.pop_back();
    if (at == includes.end()) continue;
    for (const std::string& next : at->second)
      if (seen.insert(next).second) left.push_back(next);
  }
  return seen.contains(header);
}

bool has_word(const SourceFile& file, const std::string& word) {
  const auto part_of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (const std::string& line : file.lines)
    for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1))
      if ((at == 0 || !part_of_word(line[at - 1])) &&
          (at + word.size() == line.size() || !part_of_word(line[at + word.size()])))
        return true;
  return false;
}

// "x/a.cpp: name hides that of x/b.h, which x/c.cpp uses". Overloads of what the file itself reads are meant:
// calls with other arguments find the header's by their types.
std::vector<std::string> hidden(const Files& files) {
  const Includes includes = includes_of(files);
  std::map<std::string, std::vector<std::pair<std::string, Declared>>> of_headers;  // by name
  std::map<std::string, std::vector<std::string>> of_folder;                        // sources
  for (const auto& [path, file] : files) {
    if (path.ends_with(".cpp")) of_folder[fs::path(path).parent_path()].push_back(path);
    if (!path.ends_with(".h")) continue;
    for (const Declared& d : declared_by(file))
      if (!d.anonymous) of_headers[d.name].emplace_back(path, d);
  }
  std::vector<std::string> found;
  for (const auto& [folder, sources] : of_folder)
    for (const std::string& path : sources)
      for (const Declared& d : declared_by(files.at(path))) {
        const auto same = of_headers.find(d.name);
        if (!d.anonymous || same == of_headers.end()) continue;
        for (const auto& [header, theirs] : same->second) {
          if (theirs.space != d.space && !d.space.starts_with(theirs.space + "::")) continue;
          if (d.function && reads(path, header, includes)) continue;
          for (const std::string& other : sources)
            if (other != path && has_word(files.at(other), d.name) && reads(other, header, includes)) {
              std::ostringstream line;
              line << path << ": " << d.name << " hides that of " << header << ", which " << other << " uses";
              found.push_back(line.str());
              break;
            }
        }
      }
  return found;
}

TEST(HiddenNames, NoNeighbourUsesAnotherName) {
  Files files;
  for (SourceFile& file : read_files(kProgram, {".h", ".cpp"})) files[file.path] = std::move(file);
  size_t anonymous = 0, in_headers = 0;
  for (const auto& [path, file] : files)
    for (const Declared& d : declared_by(file)) ++(d.anonymous ? anonymous : in_headers);
  EXPECT_GT(anonymous, 2'500u) << "names are not found any more";
  EXPECT_GT(in_headers, 2'000u) << "names are not found any more";
  EXPECT_THAT(hidden(files), IsEmpty()) << "give it a name of its own";
}

// What each of these would do to a neighbour that uses the header's.
TEST(HiddenNames, ConstantsTypesAndFunctionsAreFound) {
  const SourceFile header{
      "x/h.h",
      {"namespace a {", "inline constexpr double kSlack = 2000, kRatio = 1.02;", "struct Row {",
       "  int kSlack = 1;", "};", "std::string text(int value);", "namespace b {",
       "inline constexpr int kInner = 1;", "}  // namespace b", "}  // namespace a"}};
  const SourceFile user{
      "x/user.cpp",
      {"#include \"x/h.h\"", "namespace a {", "double f(Row r) { return kSlack + kRatio + b::kInner; }",
       "std::string g() { return text(1); }", "}  // namespace a"}};
  const auto with = [&](std::vector<std::string> lines) {
    Files files = {{header.path, header}, {user.path, user}};
    lines.insert(lines.begin(), {"namespace a {", "namespace {"});
    lines.insert(lines.end(), {"}  // namespace", "}  // namespace a"});
    files["x/other.cpp"] = {"x/other.cpp", lines};
    return hidden(files);
  };
  EXPECT_THAT(with({"constexpr int kOwn = 1;", "struct Line {", "};", "int words() {", "}"}), IsEmpty());
  EXPECT_THAT(with({"constexpr double kLimit = 3, kSlack = 1'000;  // here"}),
              ElementsAre("x/other.cpp: kSlack hides that of x/h.h, which x/user.cpp uses"));
  EXPECT_THAT(with({"constexpr double kRatio = 1;"}), testing::SizeIs(1));
  EXPECT_THAT(with({"struct Row {", "};"}), testing::SizeIs(1));
  EXPECT_THAT(with({"using Row = int;"}), testing::SizeIs(1));
  EXPECT_THAT(with({"std::string text(double value) {", "}"}), testing::SizeIs(1));
  EXPECT_THAT(with({"constexpr int kInner = 1;"}), IsEmpty()) << "the header's is in another namespace";
}

}  // namespace
}  // namespace tuner::tree
