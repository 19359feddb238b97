#include "tuner/cli/command.h"

#include <cstdio>
#include <utility>

#include "compiler_core/base/printable.h"
#include "db/store.h"
#include "db/writer_lock.h"
#include "tuner/bundle/cpu_variants.h"
#include "tuner/model/model_extents.h"
#include "tuner/text/hint.h"
#include "tuner/text/progress_line.h"

namespace tuner::cli {

Command add_command(Command app, CommandContext& context, const std::string& name,
                    const std::string& description, std::function<int()> body) {
  const Command command = app.add_subcommand(name, description);
  command.add_flag("-v,--verbose", context.verbose, "Say what is being done, on stderr; twice: more");
  command.run([&context, command, body = std::move(body)] {
    remember_command(command.app());
    context.exit_code = body();
  });
  return command;
}

void add_db_option(Command command, std::string& path) {
  path = default_db_path();
  command.add_option("--db", path, "Database file").type_name("DATABASE").show_default();
}

Option add_daemon_option(Command command, std::string& address, const std::string& more) {
  return command.add_option("--daemon", address, "HOST:PORT, unix:/path or a credentials file" + more)
      .type_name("ADDRESS");
}

Option add_job_file(Command command, std::string& file, const std::string& help) {
  return command.add_option("FILE", file, help).offers(offer_files({".json"}));
}
Option add_job_file(Command command, std::vector<std::string>& files, const std::string& help) {
  return command.add_option("FILE", files, help).offers(offer_files({".json"}));
}

void add_identity_option(Command command, std::string& folder) {
  command
      .add_option("--identity", folder,
                  "Folder of the farm's keys and of whom it lets in; else DATABASE.identity")
      .type_name("DIR");
}

void add_json_option(Command command, bool& json) {
  command.add_flag("--json", json, "Print the facts as one JSON document");
}

void add_extent_options(Command command, int64_t& batch, std::vector<std::string>& dims) {
  command.add_option("--batch", batch, "First extent of every input of a model")
      .in_range(int64_t{1}, ModelExtents::kMost)
      .type_name("N");
  command.add_option("--dim", dims, "A named extent that the model leaves open; may be given several times")
      .type_name("NAME=N");
}

void add_target_option(Command command, std::string& target) {
  command
      .add_option(
          "--target", target,
          "Use this target instead of the file's: cpu, llvm -mcpu=... -threads=N, or cuda -arch=sm_NN")
      .type_name("TARGET");
}

void add_cpus_option(Command command, std::string& cpus) {
  command
      .add_option(
          "--for", cpus,
          "CPUs, joined by commas: one library with kernels for each, of which a program gets the best "
          "that its CPU runs. avx2, avx512, amx, or LLVM's names of CPUs")
      .type_name("LIST")
      .offers(offer_list(cpu_words()));
}

Status with_way_to_write(const Status& status, const std::string& db_path) {
  if (status.code() != StatusCode::kAborted || !db::has_writer(db_path)) return status;
  return Status(status.code(), str(status.message(),
                                   ". A daemon goes on with its jobs when it is started again: end it, then ",
                                   this_command(), ", then start it"));
}

void add_lock_option(Command command, std::string& path) {
  command
      .add_option("--lock", path,
                  "Use the configs of this lock file (`tuner lock` writes it), whatever the database says")
      .type_name("FILE");
}

int report(const Status& status) {
  if (status) return kExitDone;
  leave_progress();
  std::fprintf(stderr, "tuner: %s\n", with_commands(printable_lines(status.message())).c_str());
  return status.code() == StatusCode::kInvalidArgument ? kExitWrongUse : kExitFailed;
}

}  // namespace tuner::cli
