#include "tuner/bundle/bundle_text.h"

#include <set>

#include "tuner/text/format.h"
#include "tuner/text/hint.h"

namespace tuner {

std::string bundle_text(const std::string& directory, const std::vector<BundleKernel>& kernels,
                        const std::vector<BundleFile>& files) {
  std::string text;
  for (const BundleKernel& k : kernels)
    text += str(k.function, ": ",
                is_choice(k.kind) ? k.time_ns > 0 ? format_time(k.time_ns) : "time not known here"
                                  : str("not tuned itself, ", answer_kind_name(k.kind), " config"),
                is_choice(k.kind) && k.time_ns > 0 && !k.certified ? " in one trial, not certified" : "",
                k.kind == AnswerKind::kLocked ? ", locked" : "", "\n");
  std::string list;
  for (const BundleFile& f : files)
    if (f.path.starts_with("lib/lib") || f.path == "manifest.json" || f.path.ends_with(".h"))
      list += (list.empty() ? "" : ", ") + f.path;
  return str(text, directory, ": ", list, "\n");
}

std::string submit_commands(const std::vector<std::string>& files, bool plain, const std::string& target) {
  std::string commands;
  for (const std::string& file : files) {
    const std::string submit =
        str("submit ", shell_quoted(file), target.empty() ? "" : " --target " + shell_quoted(target));
    commands += str(commands.empty() ? "" : "; ", plain ? "tuner " + submit : command_line(submit));
  }
  return commands;
}

std::string submit_commands(const std::vector<std::string>& files, const std::vector<BundleKernel>& kernels) {
  std::set<std::string> targets;
  for (const BundleKernel& k : kernels)
    if (k.kind == AnswerKind::kDefault) targets.insert(k.of.empty() ? "" : k.task.target_name);
  std::string all;
  for (const std::string& target : targets)
    all += str(all.empty() ? "" : "; ", submit_commands(files, /*plain=*/false, target));
  return all;
}

}  // namespace tuner
