// DaemonAccess: where a daemon is, and by what right it is called. Clients and workers read it from the word
// that they are given as --daemon: an address (HOST:PORT or unix:/path), or a credentials file, as `tuner
// admin worker` and `tuner admin token` write it:
//
//   # alice may submit and query until 2027-02-21. Whoever has this file may, too.
//   daemon: farm.example:7070
//   token: tuner_6Jx...              or, of a worker, worker: NAME; of a fleet, worker: NAME.*
//   -----BEGIN CERTIFICATE-----      the farm's authority, which signed the daemon's certificate
//   ...
//   -----BEGIN CERTIFICATE-----      a worker's: its own certificate and key, instead of a token
//   -----BEGIN PRIVATE KEY-----
//
// Lines may be edited: a daemon that moves is found again by its `daemon:` line.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

// What every certificate of a daemon says it is, whatever its host is called: clients dial by any name or
// address, and check this one. Only a farm's authority can make such a certificate, and it signs for that
// farm alone.
inline constexpr char kDaemonName[] = "tuner-daemon";

// Ends the `worker:` line of credentials that many hosts share: each takes an id of its own,
// NAME.HOST-DIGITS.
inline constexpr std::string_view kOfAFleet = ".*";

struct DaemonAccess {
  std::string address;      // HOST:PORT or unix:/path
  std::string token;        // empty: none
  std::string worker;       // whose certificate it is, with kOfAFleet for a fleet; empty: nobody's
  std::string authority;    // PEM; empty: plain text, no TLS
  std::string certificate;  // PEM, with its key; empty: none
  std::string key;
  std::string file;  // where it was read; empty: from an address alone

  bool tls() const { return !authority.empty(); }
};

// True for unix:/path and HOST:PORT, as far as the text tells.
bool is_daemon_address(std::string_view text);
// Refuses a port that there is not: gRPC dials 99999 as 34463. `address` passed is_daemon_address().
Status check_daemon_port(std::string_view address);
// InvalidArgument: neither an address nor a file that can be read, with the line.
Result<DaemonAccess> find_daemon(const std::string& daemon);
// The text of a credentials file. InvalidArgument names `name` and the line.
Result<DaemonAccess> parse_credentials(std::string_view text, const std::string& name);
// As above; `comment` is one line.
std::string credentials_text(const DaemonAccess& access, const std::string& comment);

}  // namespace tuner
