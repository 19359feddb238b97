#include "measure_server/worker/worker_identity.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <random>

#include "proto/daemon_access.h"

namespace tuner {
namespace {

// A former life of this worker, or the one that a daemon just killed, may still be on its way out.
constexpr std::chrono::seconds kFolderPatience{2};

}  // namespace

std::string host_name() {
  char host[256] = "unknown";
  ::gethostname(host, sizeof host - 1);
  return host;
}

std::string random_incarnation() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", device(), device());
  return text;
}

Result<WorkFolder> open_work_folder(const std::string& path, bool next) {
  return next ? WorkFolder::open_first_free(path) : WorkFolder::open(path, kFolderPatience);
}

std::string worker_id_in(const WorkFolder& folder, const std::string& host, const std::string& given,
                         const std::string& name_in_credentials) {
  if (!given.empty()) return given;
  const bool fleet = name_in_credentials.ends_with(kOfAFleet);
  if (!name_in_credentials.empty() && !fleet)
    return folder.number() == 1 ? name_in_credentials : str(name_in_credentials, ".", folder.number());
  std::string warning;
  const std::string id = folder.worker_id(host, warning);
  if (!warning.empty()) spdlog::warn("{}", warning);
  return fleet ? str(name_in_credentials.substr(0, name_in_credentials.size() - kOfAFleet.size()), ".", id)
               : id;
}

}  // namespace tuner
