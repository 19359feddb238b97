// Visitor: who asks for a page, and what he may do. `serve` and `dashboard` decide it (dashboard_server.h).
#pragma once

#include <optional>
#include <string>

namespace tuner::dashboard {

struct Visitor {
  bool reads = false, changes = false;
  int refused_status = 401;  // where he may not: 401 nobody knows him, 403 he is known
  std::string why_not_read, why_not_change;
  std::optional<std::string> tenant;  // whose jobs he sees; nothing: everybody's
};

}  // namespace tuner::dashboard
