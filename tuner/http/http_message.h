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
  std::string host, origin;   // the same
  std::string
      fetch_site;  // Sec-Fetch-Site: how a browser says where the request comes from; empty: it does not
  std::string body;
  transport::Peer peer;
};

struct Reply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;  // left out of the answer to HEAD, whose length stays
  std::vector<std::pair<std::string, std::string>> headers = {};  // besides those of type and length
  // If set, it makes the answer on another thread (Limits::slow_threads), and the rest of this reply is
  // ignored. For what waits for a disk or another process.
  std::function<Reply()> later = {};
  // True: the answer has no end. The client gets what HttpServer::publish() is given from now on. 503 if
  // Limits::followers have it already.
  bool follows = false;
};

// Called from the server's thread.
using Handler = std::function<Reply(const Request&)>;

}  // namespace tuner::http
