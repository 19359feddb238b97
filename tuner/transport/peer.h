// Peer: who is at the other end of a connection, as far as its socket and its certificate tell.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace tuner::transport {

struct Peer {
  enum class Way : uint8_t {
    kUnix,   // a Unix socket: the kernel tells whose process it is
    kPlain,  // TCP without TLS, on loopback: anybody on this machine
    kTls,    // TLS: nobody else reads it; who it is, its certificate tells, if it has one
  };
  Way way = Way::kPlain;
  uid_t uid = static_cast<uid_t>(-1);  // kUnix: of the process that connected
  // kTls: of the certificate that the client showed and whose key it holds. Worth nothing unless
  // `certificate_fault` is empty.
  std::string certificate;  // the URI in it; empty: it has none
  std::string serial;       // in hexadecimal digits; empty: no certificate was shown
  int64_t not_after_s = 0;  // its end, in seconds since 1970
  // Why our authority does not vouch for it, in OpenSSL's words; empty: it does.
  std::string certificate_fault;
};

}  // namespace tuner::transport
