// Rows of leases that were given, of results in quarantine, and of the poison ledger.
#include <charconv>

#include "db/sqlite/row_codec.h"

namespace tuner::db {

// One line for each: attempt, worker and incarnation, which are names without spaces.
std::string grants_text(const std::vector<Grant>& grants) {
  std::string text;
  for (const Grant& g : grants) text += str(g.attempt, " ", g.worker_id, " ", g.incarnation, "\n");
  return text;
}

std::vector<Grant> grants_from(std::string_view text, RowReader& reader) {
  std::vector<Grant> grants;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const size_t first = line.find(' '), second = first == line.npos ? line.npos : line.find(' ', first + 1);
    Grant& g = grants.emplace_back();
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), g.attempt);
    if (end == text.npos || second == line.npos || error != std::errc() || rest != line.data() + first) {
      reader.mark_wrong();
      return {};
    }
    g.worker_id = line.substr(first + 1, second - first - 1);
    g.incarnation = line.substr(second + 1);
    text.remove_prefix(end + 1);
  }
  return grants;
}

void add_grant(std::vector<Grant>& grants, Grant grant) {
  // A name that would not come back is none: its results cannot be recognised, and are refused.
  if (grant.worker_id.find_first_of(" \n") != std::string::npos ||
      grant.incarnation.find_first_of(" \n") != std::string::npos)
    return;
  if (grants.size() >= kMostGrants) grants.erase(grants.begin());
  grants.push_back(std::move(grant));
}

SqlRow to_row(const QuarantineRow& q) {
  return sealed({q.id, q.lease_id, int64_t{q.attempt}, q.worker_id, q.worker_incarnation, q.host,
                 q.claimed_ns, q.why, q.received_at_us});
}

SqlRow to_row(const DeathRow& d) {
  return sealed({d.id, d.workload_key, d.target, d.template_name, int64_t{d.template_version}, d.config,
                 std::string(death_phase_name(d.phase)), d.worker_id, d.worker_incarnation, int64_t{d.alone},
                 d.happened_at_us});
}

Result<QuarantineRow> quarantine_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "quarantine"));
  RowReader in(row);
  QuarantineRow out;
  out.id = in.integer();
  out.lease_id = in.text();
  out.attempt = in.integer32();
  out.worker_id = in.text();
  out.worker_incarnation = in.text();
  out.host = in.text();
  out.claimed_ns = in.real();
  out.why = in.text();
  out.received_at_us = in.integer();
  if (in.wrong()) return unreadable_row(row, "quarantine");
  return out;
}

Result<DeathRow> death_from_row(const SqlRow& row) {
  RETURN_IF_ERROR(check_row(row, "poison"));
  RowReader in(row);
  DeathRow out;
  out.id = in.integer();
  out.workload_key = in.text();
  out.target = in.text();
  out.template_name = in.text();
  out.template_version = in.integer32();
  out.config = in.text();
  out.phase = in.named(death_phase_from_name);
  out.worker_id = in.text();
  out.worker_incarnation = in.text();
  out.alone = in.integer() != 0;
  out.happened_at_us = in.integer();
  if (in.wrong()) return unreadable_row(row, "poison");
  return out;
}

}  // namespace tuner::db
