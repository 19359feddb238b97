// Refuses requests that a page of somebody else makes a browser send.
//
//   DNS rebinding   a foreign name leads to this address: Host is that name, not ours
//   cross-site      a foreign page sends a request: Origin is that page's, or Sec-Fetch-Site says so
#pragma once

#include <string>

#include "compiler_core/base/status.h"
#include "tuner/http/http_message.h"

namespace tuner::dashboard {

struct OwnAddress {
  std::string address;  // "127.0.0.1:7071", as HttpServer::address()
  bool tls = false;     // other hosts reach it by names that are not known here; their certificates tell
};

// InvalidArgument: what was found and expected, in one line.
Status check_request(const http::Request& request, const OwnAddress& own);

}  // namespace tuner::dashboard
