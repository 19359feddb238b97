// StatusServer: the status pages on a socket, for Prometheus and for whoever asks whether the daemon lives.
//
// One thread, 16 connections, two seconds each, 8 KiB of request: a scraper needs no more, and nobody gets
// more. It is apart from the gate and gRPC on purpose: it tells when those do not answer.
#pragma once

#include <memory>
#include <string>

#include "compiler_core/base/status.h"
#include "tuner/daemon/status_page.h"

namespace tuner {

class StatusServer {
 public:
  // `address`: one that check_listen_address() allows; port 0 takes a free one.
  static Result<std::unique_ptr<StatusServer>> start(const std::string& address, StatusPages pages);
  virtual ~StatusServer() = default;  // stops
  virtual const std::string& address() const = 0;
};

}  // namespace tuner
