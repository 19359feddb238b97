// Share: what a tenant may have of a farm.
#pragma once

#include <map>
#include <string>

namespace tuner {

struct Share {
  double weight = 1;    // of device time, beside other tenants'; above 0
  int most_leases = 0;  // trials and races at workers, at once; 0: no limit
  int most_jobs = 0;    // that have not ended; 0: no limit
  bool operator==(const Share&) const = default;
};
using ShareByTenant = std::map<std::string, Share, std::less<>>;

}  // namespace tuner
