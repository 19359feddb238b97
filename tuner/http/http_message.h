// A request over HTTP and its reply, as a handler sees them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/transport/peer.h"

namespace tuner::http {

struct Request {
  std::string method;         // "GET"
  std::string path;           // "/metrics": before the first '?', as it was sent
  std::string query;          // what follows the '?'
  std::string authorization;  // the header of this name; empty: none
  std::string body;
  transport::Peer peer;
};

struct Reply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;  // left out of the answer to HEAD, whose length stays
  std::vector<std::pair<std::string, std::string>> headers = {};  // besides those of type and length
};

// Called from the server's thread.
using Handler = std::function<Reply(const Request&)>;

}  // namespace tuner::http
