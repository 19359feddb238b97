// How well a candidate is kept apart from the machine it runs on. The runner finds out once what this host
// has, uses all of it, and says with each run what was reached.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuner {

// Each level holds all of the one before it.
enum class Isolation : uint8_t {
  kNone,     // limits (files, processes, memory), no privileges; no filter of system calls
  kProcess,  // and a filter that allows only listed system calls: no files, no network, no other process
  kStrict,   // and namespaces of its own: an empty file system, no network, none of this host's processes
};
std::string_view isolation_name(Isolation level);  // none, process, strict
std::optional<Isolation> isolation_from_name(std::string_view name);

// One capability of the host that a level rests on.
struct IsolationPiece {
  std::string name;     // seccomp, user, pid, mount, net, ipc, uts, own_uid, cgroup_kill, nproc
  std::string missing;  // why it is not to be had; empty: it is
};

// What this host offers.
struct IsolationFound {
  Isolation level = Isolation::kNone;  // the highest to be had
  std::vector<IsolationPiece> pieces;

  const IsolationPiece* piece(std::string_view name) const;
  // One line for people: why no higher level is to be had, or which pieces are missing beside it; empty:
  // everything is there.
  std::string why_not_more() const;
};

// The highest level that these pieces make.
Isolation level_of(const std::vector<IsolationPiece>& pieces);

}  // namespace tuner
