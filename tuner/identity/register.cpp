#include "tuner/identity/register.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "compiler_core/base/json_reader.h"

namespace tuner::identity {
namespace {

constexpr int kVersion = 1;
constexpr size_t kTokenBytes = 32;
constexpr size_t kMostName = 64;
constexpr double kMostWeight = 1e6;
constexpr int kMostLimit = 1'000'000;

std::string hex(const unsigned char* bytes, size_t count) {
  std::string text;
  char digits[3];
  for (size_t i = 0; i < count; ++i) {
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    text += digits;
  }
  return text;
}

}  // namespace

std::string to_json(const Register& entries) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Entry& e : entries.entries) {
    nlohmann::ordered_json one{{"kind", e.kind == Entry::Kind::kToken ? "token" : "worker"},
                               {"name", e.name},
                               {e.kind == Entry::Kind::kToken ? "sha256" : "serial", e.mark},
                               {"made_s", e.made_s},
                               {"until_s", e.until_s},
                               {"revoked", e.revoked}};
    if (e.kind == Entry::Kind::kToken) {
      one["roles"] = roles_text(e.roles);
      one["tenant"] = e.tenant;
    }
    list.push_back(std::move(one));
  }
  nlohmann::ordered_json shares = nlohmann::ordered_json::array();
  for (const auto& [tenant, share] : entries.shares)
    shares.push_back({{"tenant", tenant},
                      {"weight", share.weight},
                      {"most_leases", share.most_leases},
                      {"most_jobs", share.most_jobs},
                      {"most_source_mib", share.most_source_mib}});
  const nlohmann::ordered_json all{
      {"version", kVersion}, {"entries", std::move(list)}, {"shares", std::move(shares)}};
  return all.dump(1) + "\n";
}

Result<Register> parse_register(std::string_view text) {
  ASSIGN_OR_RETURN(const nlohmann::json document, json_input::parse(text));
  json_input::Reader in(document, "");
  Register found;
  int version = 0;
  in.read("version", version, kVersion, kVersion, json_input::kRequired);
  Status wrong;
  in.read_objects(
      "entries",
      [&](json_input::Reader& one) {
        Entry e;
        std::string kind, roles;
        one.read("kind", kind, json_input::kRequired);
        e.kind = kind == "worker" ? Entry::Kind::kWorker : Entry::Kind::kToken;
        one.read("name", e.name, json_input::kRequired);
        one.read(e.kind == Entry::Kind::kToken ? "sha256" : "serial", e.mark, json_input::kRequired);
        one.read("made_s", e.made_s, json_input::kRequired);
        one.read("until_s", e.until_s, json_input::kRequired);
        one.read("revoked", e.revoked, json_input::kRequired);
        e.roles = Role::kWork;
        if (e.kind == Entry::Kind::kToken) {
          one.read("roles", roles, json_input::kRequired);
          one.read("tenant", e.tenant, json_input::kRequired);
          Result<Roles> parsed = parse_roles(roles);
          if (!parsed && wrong) wrong = parsed.status();
          if (parsed) e.roles = *parsed;
        }
        if (wrong && kind != "worker" && kind != "token")
          wrong = invalid_argument("kind: expected \"token\" or \"worker\", found ",
                                   json_input::found(nlohmann::json(kind)));
        found.entries.push_back(std::move(e));
      },
      json_input::kRequired);
  in.read_objects(
      "shares",
      [&](json_input::Reader& one) {
        std::string tenant;
        Share share;
        one.read("tenant", tenant, json_input::kRequired);
        one.read("weight", share.weight, 0, kMostWeight, json_input::kRequired);
        one.read("most_leases", share.most_leases, 0, kMostLimit, json_input::kRequired);
        one.read("most_jobs", share.most_jobs, 0, kMostLimit, json_input::kRequired);
        // Releases before sources did not write it.
        one.read("most_source_mib", share.most_source_mib, 0, kMostLimit);
        found.shares[tenant] = share;
      },
      json_input::kRequired);
  RETURN_IF_ERROR(in.finish());
  RETURN_IF_ERROR(wrong);
  return found;
}

Status check_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  bool all = !name.empty() && name.size() <= kMostName;
  for (const char c : name) all = all && good(c);
  if (all) return Status::ok();
  return invalid_argument("name: expected 1 to ", kMostName, " letters, digits, - and _, found ",
                          json_input::found(nlohmann::json(std::string(name))));
}

std::string make_token() {
  std::array<unsigned char, kTokenBytes> bytes;
  CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1) << "the system gives no random numbers";
  return "tuner_" + hex(bytes.data(), bytes.size());
}

std::string mark_of(std::string_view token) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  CHECK(EVP_Digest(token.data(), token.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
  return hex(digest.data(), size);
}

std::string date_text(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm t{};
  char text[32];
  if (gmtime_r(&time, &t) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &t) == 0)
    return str(seconds, " s after 1970");
  return text;
}

}  // namespace tuner::identity
