#include "tuner/farm/slurm_script.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tuner::slurm {

namespace {

bool is_word(std::string_view text, std::string_view more) {
  return std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || more.find(c) != std::string_view::npos;
  });
}

// What partitions, features, resources and times are made of.
Status check_words(const char* option, const std::string& value) {
  if (is_word(value, "_-.,:=&|()[]*+@/%")) return Status::ok();
  return invalid_argument(option, ": found \"", value, "\", expected letters, digits and _-.,:=&|()[]*+@/%");
}

// `%` is a placeholder in names of output files.
Status check_path(const char* what, const std::string& path) {
  if (path.starts_with('/') && is_word(path, "_-.,:=+@/")) return Status::ok();
  return invalid_argument(what, ": found \"", path,
                          "\", expected an absolute path of letters, digits and _-.,:=+@/");
}

std::string option(const char* name, const std::string& value) {
  return value.empty() ? "" : str("#SBATCH --", name, "=", value, "\n");
}

std::string cores_of(const WorkerWish& wish) {
  if (wish.cores == 0) return "#SBATCH --exclusive\n";
  return str("#SBATCH --cpus-per-task=", wish.cores, "\n#SBATCH --hint=nomultithread\n");
}

}  // namespace

std::string job_name(const std::string& name) { return "tuner-" + name; }

Status check_wish(const WorkerWish& wish) {
  if (wish.name.empty() || wish.name.size() > 64 || !is_word(wish.name, "_-"))
    return invalid_argument("--name: found \"", wish.name,
                            "\", expected at most 64 letters, digits, _ and -");
  if (wish.fleet.empty())
    return invalid_argument(
        "--credentials: ", wish.credentials,
        " is not of a fleet. Make one: tuner admin worker nodes --fleet --address HOST:PORT "
        "-o nodes.credentials");
  const std::pair<const char*, const std::string*> words[] = {
      {"--partition", &wish.partition}, {"--constraint", &wish.constraint}, {"--gres", &wish.gres},
      {"--time", &wish.time},           {"--account", &wish.account},       {"--qos", &wish.qos}};
  for (const auto& [name, value] : words) RETURN_IF_ERROR(check_words(name, *value));
  RETURN_IF_ERROR(check_path("--credentials", wish.credentials));
  RETURN_IF_ERROR(check_path("--program", wish.program));
  RETURN_IF_ERROR(check_path("--folder", wish.logs));
  return check_path("--work-root", wish.work_root);
}

std::string worker_id(const std::string& fleet, const std::string& array_job, const std::string& task,
                      int restarts) {
  return str(fleet, ".s", array_job, "-", task, "-", restarts);
}

// exec: the worker is then the batch process itself, which --signal=B: and scancel --batch reach.
std::string worker_script(const WorkerWish& wish) {
  return str(
      "#!/bin/bash\n"
      "# A worker per task of this job array. tuner farm slurm up wrote it; tuner farm slurm scale submits "
      "it again.\n"
      "#SBATCH --job-name=",
      job_name(wish.name), "\n", option("partition", wish.partition), option("constraint", wish.constraint),
      option("gres", wish.gres), option("time", wish.time), option("account", wish.account),
      option("qos", wish.qos), "#SBATCH --nodes=1\n#SBATCH --ntasks=1\n", cores_of(wish),
      "# Preempted or lost with its node, a task starts again, and writes on in the same log.\n"
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "# A minute before the time limit the worker finishes what it holds.\n"
      "#SBATCH --signal=B:TERM@60\n"
      "#SBATCH --output=",
      wish.logs, "/%A_%a.log\n",
      "set -eu\n"
      "id=",
      wish.fleet, ".s$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID-${SLURM_RESTART_COUNT:-0}\n",
      "root=", wish.work_root,
      "/tuner-slurm-$(id -u)\n"
      "umask 077\n"
      "mkdir -p \"$root\"\n"
      "[[ -O $root && ! -L $root ]] || { echo \"$root: belongs to somebody else; give --work-root\" >&2; "
      "exit 2; }\n"
      "find \"$root\" -maxdepth 1 -name '*.s*-*-*' -mtime +7 -exec rm -rf {} +  # of workers that are long "
      "gone\n"
      "echo \"worker $id begins on ${SLURMD_NODENAME:-$(hostname)}\" >&2\n"
      "exec ",
      wish.program, " --daemon ", wish.credentials,
      " --worker-id \"$id\" --work-dir \"$root/$id\" --shared-dir \"$root/shared\"\n");
}

}  // namespace tuner::slurm
