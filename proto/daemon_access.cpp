#include "proto/daemon_access.h"

#include <charconv>
#include <cstdint>
#include <utility>

#include "compiler_core/base/input_file.h"

namespace tuner {
namespace {

constexpr size_t kMostBytes = 64 << 10;
constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Takes the first line off.
std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

bool is_daemon_address(std::string_view text) {
  if (text.starts_with("unix:")) return true;
  const size_t colon = text.rfind(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < text.size() &&
         text.find('/') == std::string_view::npos &&
         text.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

Status check_daemon_port(std::string_view address) {
  if (address.starts_with("unix:")) return Status::ok();
  const std::string_view text = address.substr(address.rfind(':') + 1);
  uint32_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65'535)
    return Status::ok();
  return invalid_argument(address, ": expected a port from 1 to 65535, found ", text);
}

Result<DaemonAccess> parse_credentials(std::string_view text, const std::string& name) {
  DaemonAccess access;
  access.file = name;
  std::string block;  // the PEM block that is being read
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = trimmed(next_line(text));
    const auto wrong = [&](const char* expected) {
      return invalid_argument(name, ":", number, ": expected ", expected,
                              ". Such a file is written by `tuner admin worker` or `tuner admin token`");
    };
    if (!block.empty() || line.starts_with(kBegin)) {
      block.append(line).push_back('\n');
      if (!line.starts_with(kEnd)) continue;
      std::string& place = line.find("KEY") != std::string_view::npos ? access.key
                           : access.authority.empty()                 ? access.authority
                                                                      : access.certificate;
      if (!place.empty()) return wrong("at most two certificates and one key");
      place = std::exchange(block, {});
      continue;
    }
    if (line.empty() || line.starts_with('#')) continue;
    const size_t colon = line.find(':');
    const std::string_view key = line.substr(0, colon);
    const std::string_view value =
        colon == std::string_view::npos ? std::string_view() : trimmed(line.substr(colon + 1));
    if (key == "daemon") {
      if (!is_daemon_address(value)) return wrong("daemon: HOST:PORT");
      if (const Status port = check_daemon_port(value); !port)
        return port.with_context(str(name, ":", number, ": "));
      access.address = value;
    } else if (key == "token") {
      if (value.empty() || value.find_first_of(" \t\"") != std::string_view::npos)
        return wrong("token: a word");
      access.token = value;
    } else if (key == "worker") {
      if (value.empty() || value.find_first_of(" \t\"") != std::string_view::npos)
        return wrong("worker: a name");
      access.worker = value;
    } else {
      return wrong("`daemon:`, `token:`, `worker:`, a comment or PEM");
    }
  }
  if (!block.empty()) return invalid_argument(name, ": the file ends inside a PEM block; copy it once more");
  if (access.address.empty())
    return invalid_argument(name, ": expected a line `daemon: HOST:PORT`, found none");
  if (access.certificate.empty() != access.key.empty())
    return invalid_argument(name, ": expected a certificate with its key, found one of them only");
  return access;
}

Result<DaemonAccess> find_daemon(const std::string& daemon) {
  if (daemon.starts_with("tls:"))
    return invalid_argument(
        daemon, ": expected HOST:PORT, unix:/path or a credentials file. Where a daemon ",
        "listens with tls:, give the file of `tuner admin token` or `tuner admin worker`");
  if (is_daemon_address(daemon)) {
    RETURN_IF_ERROR(check_daemon_port(daemon));
    DaemonAccess access;
    access.address = daemon;
    return access;
  }
  ASSIGN_OR_RETURN(const std::string text,
                   read_file(daemon, "HOST:PORT, unix:/path or a credentials file", kMostBytes));
  return parse_credentials(text, daemon);
}

std::string credentials_text(const DaemonAccess& access, const std::string& comment) {
  std::string text = "# " + comment + "\ndaemon: " + access.address + "\n";
  if (!access.worker.empty()) text += "worker: " + access.worker + "\n";
  if (!access.token.empty()) text += "token: " + access.token + "\n";
  return text + access.authority + access.certificate + access.key;
}

}  // namespace tuner
