#include "tuner/daemon/edge/releases.h"

#include <algorithm>

#include "compiler_core/base/status.h"
#include "templates/schedule_template.h"

namespace tuner {
namespace {

constexpr size_t kMostNamed = 8;

}  // namespace

std::vector<TemplateVersion> own_templates() {
  std::vector<TemplateVersion> own;
  for (const AnyTemplate* t : all_templates()) own.push_back({std::string(t->name()), t->version()});
  return own;
}

std::string version_text(int version) { return version == 0 ? "none" : str("version ", version); }

std::string lacks_text(const std::vector<Lack>& lacks) {
  std::string text = "gets no trials of ";
  for (size_t i = 0; i < std::min(lacks.size(), kMostNamed); ++i)
    text += str(i == 0 ? "" : ", ", lacks[i].wanted.name, " (found ", version_text(lacks[i].found),
                ", expected ", version_text(lacks[i].wanted.version), ")");
  if (lacks.size() > kMostNamed) text += str(" and ", lacks.size() - kMostNamed, " more templates");
  const bool newer =
      std::ranges::any_of(lacks, [](const Lack& lack) { return lack.found > lack.wanted.version; });
  return text +
         (newer ? ". The worker is newer than the daemon: update the daemon, or run the daemon's release "
                  "of measure_server there"
                : ". Update the worker: run the daemon's release of measure_server there");
}

std::string lacks_line(std::string_view worker_id, const std::vector<Lack>& lacks) {
  return str("worker ", worker_id, " ", lacks_text(lacks));
}

}  // namespace tuner
