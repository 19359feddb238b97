// tuner manual: the pages of this program and of those beside it, for packages. Not for people, so help does
// not list it.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "compiler_core/base/output_file.h"
#include "tuner/cli/command.h"
#include "tuner/command_line/manual.h"

namespace tuner::cli {

namespace {

namespace fs = std::filesystem;

// What PROGRAM --help prints.
Result<std::string> help_of(const fs::path& program) {
  // Quoted for the shell; our own folder may have any name.
  std::string quoted = "'";
  for (const char c : program.string()) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  std::FILE* pipe = ::popen((quoted + "' --help").c_str(), "r");
  if (pipe == nullptr) return failed(program.string(), ": cannot be started");
  std::string text;
  std::array<char, 4096> part{};
  for (size_t n; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), n);
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text.empty())
    return failed(program.string(), " --help failed; it is built beside tuner");
  return text;
}

Status write_pages(const CLI::App& app, const fs::path& folder) {
  std::error_code error;
  const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return failed("/proc/self/exe: ", error.message(), "; is /proc mounted?");
  std::vector<ManualPage> pages = manual_pages(app, TUNER_VERSION);
  for (const char* name : {"measure_server", "measure_runner", "runner"}) {
    ASSIGN_OR_RETURN(const std::string help, help_of(programs / name));
    pages.push_back(page_of_help(name, help, TUNER_VERSION));
  }
  RETURN_IF_ERROR(make_folders(folder));
  for (const ManualPage& page : pages) RETURN_IF_ERROR(replace_file(folder / page.name, page.text));
  return Status::ok();
}

}  // namespace

void add_manual_command(Command app, CommandContext& context) {
  auto folder = std::make_shared<std::string>();
  const Command command = add_command(
      app, context, "manual", "Write the manual pages of tuner, measure_server, measure_runner and runner",
      [app, folder] { return report(write_pages(app.app(), *folder)); });
  command.add_option("-o,--output", *folder, "The folder they go to").type_name("FOLDER").required();
  command.hide();
}

}  // namespace tuner::cli
