// Certificates of a farm: an authority of its own, and what it signs. PEM texts in and out; P-256 keys, X.509
// v3. OpenSSL stays behind this header.
#pragma once

#include <cstdint>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner::identity {

struct KeyAndCertificate {
  std::string key, certificate;
};

// Of a signed certificate: what the farm's list keeps of it.
struct Issued {
  KeyAndCertificate pem;
  std::string serial;   // hexadecimal digits, 128 random bits
  int64_t until_s = 0;  // its end, in seconds since 1970
};

// The URI in a worker's certificate is this and the worker's name.
inline constexpr char kWorkerUri[] = "tuner://worker/";

// A new authority, valid for so many days.
Result<KeyAndCertificate> make_authority(int days);
// For the daemon (TLS server only), and for a worker (TLS client only). Failed: the authority cannot be read.
Result<Issued> issue_daemon(const KeyAndCertificate& authority, int days);
Result<Issued> issue_worker(const KeyAndCertificate& authority, const std::string& name, int days);

// The end of a certificate, in seconds since 1970. Failed: it cannot be read.
Result<int64_t> end_of_certificate(const std::string& pem);

}  // namespace tuner::identity
