#include "compiler_core/foreign/commands.h"

#include <sys/stat.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "compiler_core/base/printable.h"
#include "compiler_core/foreign/listed_programs.h"

namespace tuner {
namespace {

constexpr std::string_view kOwnFiles = "./", kBetween = "; ";
constexpr ProgramList kCommands{.variable = "TUNER_COMMANDS", .usual = "", .what = "program"};

Status may_run_own_files() {
  if (!listed_names(kCommands).empty()) return Status::ok();
  return not_found("this host runs no programs of jobs; its operator can allow them: TUNER_COMMANDS=./,NAME");
}

// Where we are root, programs of jobs run as a user that nobody else is: such a one must get at the file.
Status others_may_run(const ListedProgram& program) {
  if (::geteuid() != 0) return Status::ok();
  struct stat info {};
  for (std::filesystem::path folder = std::filesystem::path(program.path).parent_path();;
       folder = folder.parent_path()) {
    if (::stat(folder.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0)
      return not_found(
          "the program \"", printable(program.name), "\" is listed as ", printable(program.path),
          ", and other users may not enter ", printable(folder.string()),
          "; jobs run their programs as another user here. Its operator can list one in a folder such "
          "as /usr/local/bin");
    if (folder == folder.parent_path()) break;
  }
  if (::stat(program.path.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0)
    return not_found("the program \"", printable(program.name), "\" is listed as ", printable(program.path),
                     ", which other users may not run; jobs run their programs as another user here");
  return Status::ok();
}

Result<ListedProgram> find_command(std::string_view name) {
  ASSIGN_OR_RETURN(ListedProgram program, find_listed(kCommands, name));
  RETURN_IF_ERROR(others_may_run(program));
  return program;
}

// What tells one state of a program from another.
std::string version_text(ListedProgram& program) {
  std::string version;
  if (ask_version(program)) {
    version = program.version;
  } else {  // a shell has no --version
    struct stat info {};
    ::stat(program.path.c_str(), &info);
    version = str("of ", info.st_size, " bytes, ", info.st_mtim.tv_sec);
  }
  std::ranges::replace(version, ';', ',');
  return version;
}

// "command:make GNU Make 4.3" for "command:make".
Result<std::string> offer_text(std::string_view need) {
  if (!need.starts_with(kCommandWord)) return not_found("\"", need, "\" names no command");
  const std::string_view name = need.substr(kCommandWord.size());
  if (name == kOwnFiles) {
    RETURN_IF_ERROR(may_run_own_files());
    return std::string(need);
  }
  ASSIGN_OR_RETURN(ListedProgram program, find_command(name));
  return str(need, " ", version_text(program));
}

// Calls `f` for each part until it returns false.
template <class F>
void for_each_part(std::string_view text, std::string_view between, const F& f) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(between), text.size());
    if (!f(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + between.size(), text.size()));
  }
}

}  // namespace

void allow_own_commands() { ::setenv(kCommands.variable.data(), "make,cc,c++,sh,python3", /*overwrite=*/0); }

Result<std::string> command_path(const std::string& word, const std::string& folder) {
  if (!word.starts_with(kOwnFiles)) {
    ASSIGN_OR_RETURN(const ListedProgram program, find_command(word));
    return program.path;
  }
  RETURN_IF_ERROR(may_run_own_files());
  return str(folder, "/", word.substr(kOwnFiles.size()));
}

std::vector<std::pair<std::string, std::string>> command_offers() {
  std::vector<std::pair<std::string, std::string>> offers;
  const auto add = [&](const std::string& name) {
    const std::string need = str(kCommandWord, name);
    if (const Result<std::string> text = offer_text(need)) offers.emplace_back(need, *text);
  };
  add(std::string(kOwnFiles));
  for (const std::string& name : listed_names(kCommands))
    if (name.find('/') == std::string::npos) add(name);
  return offers;
}

Result<std::string> commands_toolchain(std::string_view needs) {
  std::string all;
  Status missing;
  for_each_part(needs, ",", [&](std::string_view need) {
    const Result<std::string> text = offer_text(need);
    if (!text) return missing = text.status(), false;
    all += str(all.empty() ? "" : kBetween, *text);
    return true;
  });
  RETURN_IF_ERROR(missing);
  return all;
}

std::string commands_now(std::string_view toolchain) {
  std::string all;
  for_each_part(toolchain, kBetween, [&](std::string_view part) {
    const Result<std::string> text = offer_text(part.substr(0, part.find(' ')));
    if (!text) return all.clear(), false;
    all += str(all.empty() ? "" : kBetween, *text);
    return true;
  });
  return all;
}

}  // namespace tuner
