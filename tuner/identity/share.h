// Share: what a tenant may have of a farm.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace tuner {

struct Share {
  double weight = 1;          // of device time, beside other tenants'; above 0
  int most_leases = 0;        // trials and races at workers, at once; 0: no limit
  int most_jobs = 0;          // that have not ended; 0: no limit
  int most_source_mib = 256;  // sources of kernels that the daemon stores for it; 0: no limit
  bool operator==(const Share&) const = default;
};
// What is to be different; the rest stays.
struct ShareChange {
  std::optional<double> weight;
  std::optional<int> most_leases, most_jobs, most_source_mib;
  Share apply(Share share) const {
    share.weight = weight.value_or(share.weight);
    share.most_leases = most_leases.value_or(share.most_leases);
    share.most_jobs = most_jobs.value_or(share.most_jobs);
    share.most_source_mib = most_source_mib.value_or(share.most_source_mib);
    return share;
  }
};
using ShareByTenant = std::map<std::string, Share, std::less<>>;

}  // namespace tuner
