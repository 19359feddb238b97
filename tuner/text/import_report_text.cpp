#include "tuner/text/import_report_text.h"

#include <cstdio>

#include "tuner/text/facts.h"

namespace tuner {

using nlohmann::ordered_json;

namespace {

std::string part(const char* what, const exchange::ImportReport::Count& count) {
  if (count.all() == 0) return "";
  return str(", ", count.added, " new ", what, count.known > 0 ? str(" (", count.known, " known)") : "");
}

ordered_json counts(const exchange::ImportReport::Count& count) {
  return new_and_known_json(count.added, count.known);
}

}  // namespace

void print_import_report(const exchange::ImportReport& r) {
  std::printf("%s: %s, %lld lines%s%s%s%s%s", r.source.c_str(), std::string(format_name(r.format)).c_str(),
              static_cast<long long>(r.lines), part("records", r.trials).c_str(),
              part("records of another tuner", r.foreign).c_str(), part("jobs", r.jobs).c_str(),
              part("races", r.races).c_str(), part("kernels", r.kernels).c_str());
  if (r.blank > 0) std::printf(", %lld blank or header", static_cast<long long>(r.blank));
  std::printf(", %lld skipped\n", static_cast<long long>(r.skipped));
  if (r.unmatched > 0)
    std::printf(
        "%s: %lld of %lld records of another tuner match no template of ours (workload, target or knobs): "
        "kept, "
        "but they change no answer and warm no search\n",
        r.source.c_str(), static_cast<long long>(r.unmatched), static_cast<long long>(r.foreign.all()));
  for (const auto& [line, why] : r.why)
    std::fprintf(stderr, "tuner: %s: %s%s\n", r.source.c_str(),
                 line > 0 ? str("skipped line ", line, ": ").c_str() : "", why.c_str());
  if (r.outside > 0)
    std::fprintf(stderr,
                 "tuner: %s: left out %lld of %lld rows, which the job's space does not have; the first, in "
                 "line %lld: %s\n",
                 r.source.c_str(), static_cast<long long>(r.outside), static_cast<long long>(r.lines),
                 static_cast<long long>(r.first_outside.first), r.first_outside.second.c_str());
  if (static_cast<int64_t>(r.why.size()) < r.skipped)
    std::fprintf(stderr, "tuner: %s: and %lld more lines\n", r.source.c_str(),
                 static_cast<long long>(r.skipped) - static_cast<long long>(r.why.size()));
}

ordered_json import_report_json(const exchange::ImportReport& r) {
  ordered_json why = ordered_json::array();
  for (const auto& [line, text] : r.why) why.push_back({{"line", line}, {"why", text}});
  return {{"file", r.source},
          {"format", format_name(r.format)},
          {"lines", r.lines},
          {"blank", r.blank},
          {"records", counts(r.trials)},
          {"jobs", counts(r.jobs)},
          {"races", counts(r.races)},
          {"foreign", counts(r.foreign)},
          {"kernels", counts(r.kernels)},
          {"unmatched", r.unmatched},
          {"outside",
           {{"rows", r.outside}, {"first_line", r.first_outside.first}, {"why", r.first_outside.second}}},
          {"skipped", r.skipped},
          {"why", std::move(why)}};
}

}  // namespace tuner
