// Restricts what a candidate's process may do. The forked child enters the jail before it loads the first
// byte of the candidate.
#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "measure_server/runner/isolation.h"
#include "measure_server/runner/jail_filter.h"
#include "measure_server/runner/namespaces.h"

namespace tuner {

// What a process goes through besides the filter, in this order. Every name can be left out by a test.
// Before them, asking_signals() become the candidate's own: from others they do nothing.
//   session        leads a session of its own: no terminal, and its group is its own
//   oom            is the kernel's first choice when memory runs out
//   net, ipc, uts, mount   namespaces (user and pid are entered by fork())
//   descriptors    0..2 are /dev/null, 3 is the candidate, there is no other
//   core, file_size, open_files   limits: no core dump, no file grows, 64 descriptors
//   own_uid        where the runner is root: a user that nobody else is
//   capabilities   has none, and can get none back
//   no_new_privs   no program it starts has more rights than it
//   not_dumpable   other processes of its user cannot look into it
//   parent_death   dies with the runner
//   processes      can start neither processes nor threads; entered after its own threads were started
//   seccomp        the filter, see jail_filter.h; last
const std::vector<std::string>& jail_steps();

class Jail {
 public:
  // Tries what this host offers, at most up to `at_most`, and prepares it: takes some milliseconds. The
  // process becomes a child subreaper. `without` is for tests: names of steps, namespaces (also user and pid)
  // and rules that are left out; `unchecked`: the rule whose argument is not checked.
  static std::unique_ptr<Jail> make(Isolation at_most = Isolation::kStrict,
                                    std::set<std::string> without = {}, const std::string& unchecked = "");

  const IsolationFound& found() const { return found_; }  // what the host has
  Isolation level() const { return level_; }              // what candidates get: at most what was asked for
  pid_t keeper() const { return namespaces_ ? namespaces_->keeper() : -1; }

  // Makes the namespaces anew if somebody has killed their keeper, and with it whatever was inside. Call it
  // before each candidate, and ask for keeper() afterwards. Failed: the host refuses them now.
  Status mend();

  // Forks the process of a candidate; returns as fork() does.
  pid_t fork_child() const;
  // In the child. Becomes restricted, but may still start threads and choose their CPUs. `keep_fd`, the
  // candidate's binary, becomes kCandidateFd. False: setting this up failed.
  bool enter(pid_t runner, int keep_fd) const;
  // In the child, once its threads run: from here on no process or thread is started, no thread moves to
  // another CPU, and (from level process on) only listed system calls are made. False: the filter is refused.
  // `asked_for_shared`: becomes 1 when it asks for memory that the limit of memory does not see.
  // `own_threads`: it may start threads (no processes), which the limit of memory bounds.
  bool shut(uint32_t* asked_for_shared = nullptr, bool own_threads = false);

 private:
  Jail() = default;
  bool has(const char* step) const { return without_.count(step) == 0; }
  int left_out() const;  // CLONE_NEW* flags of namespaces that are left out
  bool become_nobody() const;

  IsolationFound found_;
  Isolation level_ = Isolation::kNone;
  uid_t uid_ = 0;  // of candidates; 0: that of the runner, which is not root
  std::unique_ptr<Namespaces> namespaces_;
  JailFilter filter_, filter_with_threads_;
  std::set<std::string> without_;
};

// True if descriptors 0..2 are still the /dev/null of enter().
bool descriptors_untouched();

}  // namespace tuner
