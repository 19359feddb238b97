// The subcommands of `tuner farm slurm`, one file each, and what they share: where a farm lies.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "tuner/cli/command.h"
#include "tuner/cli/log.h"
#include "tuner/farm/slurm_farm.h"

namespace tuner::cli {

void add_farm_up(Command slurm, CommandContext& context);
void add_farm_status(Command slurm, CommandContext& context);
void add_farm_scale(Command slurm, CommandContext& context);
void add_farm_down(Command slurm, CommandContext& context);

inline std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.lexically_normal().string();
}

struct FarmPlace {
  std::string name = "workers", folder;
  std::string path() const {
    return absolute_path(folder.empty() ? slurm::default_folder(name) : folder + "/" + name);
  }
  // --name and --folder.
  void offer(Command act) {
    act.add_option("--name", name, "Name of these workers; their jobs are called tuner-NAME")
        .type_name("NAME")
        .show_default();
    act.add_option("--folder", folder,
                   "Folder for the farm's script and logs, which all nodes see (default: "
                   "~/.local/state/tuner/slurm)")
        .type_name("DIR");
  }
};

}  // namespace tuner::cli
