#include "measure_server/runner/isolation.h"

#include <algorithm>

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

bool has(const std::vector<IsolationPiece>& pieces, std::string_view name) {
  return std::any_of(pieces.begin(), pieces.end(),
                     [&](const IsolationPiece& p) { return p.name == name && p.missing.empty(); });
}

}  // namespace

std::string_view isolation_name(Isolation level) {
  switch (level) {
    case Isolation::kNone:
      return "none";
    case Isolation::kProcess:
      return "process";
    case Isolation::kStrict:
      return "strict";
  }
  return "none";
}

std::optional<Isolation> isolation_from_name(std::string_view name) {
  for (const Isolation level : {Isolation::kNone, Isolation::kProcess, Isolation::kStrict})
    if (isolation_name(level) == name) return level;
  return std::nullopt;
}

const IsolationPiece* IsolationFound::piece(std::string_view name) const {
  for (const IsolationPiece& p : pieces)
    if (p.name == name) return &p;
  return nullptr;
}

std::string IsolationFound::why_not_more() const {
  std::string text;
  for (const IsolationPiece& p : pieces)
    if (!p.missing.empty()) text += str(text.empty() ? "" : "; ", p.name, ": ", p.missing);
  return text;
}

// A user namespace may be missing where the runner is root: it makes the others without one, and the
// candidate has an id of its own instead.
Isolation level_of(const std::vector<IsolationPiece>& pieces) {
  if (!has(pieces, "seccomp")) return Isolation::kNone;
  for (const char* name : {"pid", "mount", "net", "ipc", "uts"})
    if (!has(pieces, name)) return Isolation::kProcess;
  return has(pieces, "user") || has(pieces, "own_uid") ? Isolation::kStrict : Isolation::kProcess;
}

}  // namespace tuner
