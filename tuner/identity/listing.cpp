#include "tuner/identity/listing.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tuner/text/terminal.h"

namespace tuner::identity {
namespace {

std::string kind_name(Entry::Kind kind) { return kind == Entry::Kind::kWorker ? "worker" : "token"; }

Result<std::string> end_of_daemon(const IdentityFolder& folder) {
  ASSIGN_OR_RETURN(const KeyAndCertificate daemon, folder.daemon());
  ASSIGN_OR_RETURN(const int64_t end_s, end_of_certificate(daemon.certificate));
  return date_text(end_s);
}

}  // namespace

std::string state_of(const Entry& entry, int64_t now_s) {
  if (entry.revoked) return "revoked";
  return now_s >= entry.until_s ? "ended" : "good";
}

std::string share_text(const std::string& tenant, const Share& share) {
  return str("tenant ", tenant, ": weight ", share.weight,
             share.most_leases > 0 ? str(", at most ", share.most_leases, " leases at once") : "",
             share.most_jobs > 0 ? str(", at most ", share.most_jobs, " unfinished jobs") : "",
             share.most_source_mib > 0 ? str(", at most ", share.most_source_mib, " MiB of sources") : "");
}

Result<std::string> listing(const IdentityFolder& folder, int64_t now_s, int width) {
  ASSIGN_OR_RETURN(const Register known, folder.entries());
  ASSIGN_OR_RETURN(const std::string end, end_of_daemon(folder));
  std::string text = str(folder.path(), ": the daemon's certificate ends ", end, "\n");
  for (const auto& [tenant, share] : known.shares) text += share_text(tenant, share) + "\n";
  if (known.entries.empty()) return text;
  TextTable table({{"name", 5}, {"kind", 3}, {"roles", 4}, {"tenant", 1}, {"until", 2}, {"state", 5}});
  for (const Entry& e : known.entries)
    table.add(
        {e.name, kind_name(e.kind), roles_text(e.roles), e.tenant, date_text(e.until_s), state_of(e, now_s)});
  return text + table.text(width);
}

Result<std::string> listing_json(const IdentityFolder& folder, int64_t now_s) {
  ASSIGN_OR_RETURN(const Register known, folder.entries());
  ASSIGN_OR_RETURN(const std::string end, end_of_daemon(folder));
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Entry& e : known.entries)
    rows.push_back({{"kind", kind_name(e.kind)},
                    {"name", e.name},
                    {"roles", roles_text(e.roles)},
                    {"tenant", e.tenant},
                    {"until", date_text(e.until_s)},
                    {"state", state_of(e, now_s)}});
  nlohmann::ordered_json shares = nlohmann::ordered_json::array();
  for (const auto& [tenant, share] : known.shares)
    shares.push_back({{"tenant", tenant},
                      {"weight", share.weight},
                      {"most_leases", share.most_leases},
                      {"most_jobs", share.most_jobs},
                      {"most_source_mib", share.most_source_mib}});
  const nlohmann::ordered_json all{{"identity", folder.path()},
                                   {"daemon_until", end},
                                   {"let_in", std::move(rows)},
                                   {"tenants", std::move(shares)}};
  return all.dump(2) + "\n";
}

}  // namespace tuner::identity
