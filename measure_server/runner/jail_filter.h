// The system calls of a candidate: a list of what it may do, as data, and the seccomp filter made from it.
//
// Everything that is not listed is refused with EPERM. No file can be opened: the loader's openat() of the
// candidate itself is trapped, and our handler gives it the descriptor that is there already.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace tuner {

// The path under which the jailed process opens the candidate, and the descriptor it then gets.
inline constexpr const char* kCandidatePath = "/proc/self/fd/3";
inline constexpr int kCandidateFd = 3;

struct JailRule {
  enum Kind : uint8_t {
    kAllowed,
    kAllowedIf,  // only with the argument checked below
    kTrapped,    // answered by our own handler, see handle_traps()
    kUnknown,    // as on a kernel that does not have it
  };
  const char* name;  // of the system call
  unsigned number;
  Kind kind;
  const char* needed_for;
  // kAllowedIf: (argument & mask) must be one of `values`; with `self`, it must be this process.
  int argument = 0;
  uint32_t mask = ~0u;
  std::vector<uint32_t> values = {};
  bool self = false;
  bool trapped_otherwise = false;  // another argument is answered by our handler, not refused
  bool for_threads = false;        // only of candidates that start threads of their own
};

// Every rule of the jail.
const std::vector<JailRule>& jail_rules();

// A filter, made once by the runner. `without` and `unchecked` are for tests alone: the name of a rule that
// is left out, and of one whose argument is not checked; empty: none.
class JailFilter {
 public:
  // `own_threads`: for a candidate that may start threads.
  explicit JailFilter(std::string_view without = "", std::string_view unchecked = "",
                      bool own_threads = false);
  // Installs it for all threads of this process, for good. Sets no_new_privs, which it needs. SPEC_ALLOW is
  // set: the default turns on a mitigation (SSBD) that slows the code being timed. Returns 0 or errno.
  int install();
  size_t size() const { return code_.size(); }

 private:
  void add(unsigned short op, uint32_t k, uint8_t yes = 0, uint8_t no = 0);
  void add_rule(const JailRule& rule, bool checked);

  std::vector<sock_filter> code_;
  std::vector<size_t> self_;  // instructions that hold the process's own number
};

// Answers trapped calls from now on (SIGSYS): openat() of kCandidatePath gives kCandidateFd, a stat by
// descriptor is an fstat(), everything else is refused. A mapping that is not private gets ENOMEM, and sets
// `*asked_for_shared` to 1 where that is given. Call it before install().
void handle_traps(uint32_t* asked_for_shared = nullptr);

}  // namespace tuner
