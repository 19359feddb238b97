// Namespaces for candidates, made once: making a network takes milliseconds, entering one microseconds. A
// keeper process, the first of its process namespace, holds them. When it dies, which it does with the
// runner, the kernel kills everything inside.
#pragma once

#include <sys/types.h>

#include <memory>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

class Namespaces {
 public:
  // `flags`: CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS. A mount
  // namespace has one empty, read-only folder and nothing else. In a user namespace user 0 is `outside_uid`
  // of this host. Failed: which step the system refused.
  static Result<std::unique_ptr<Namespaces>> make(int flags, uid_t outside_uid);
  ~Namespaces();  // ends the keeper, and with it whatever is inside
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  // Forks a process into the user and process namespaces. Returns as fork() does. The child is a child of the
  // caller, which must be a child subreaper (PR_SET_CHILD_SUBREAPER) and have one thread.
  pid_t fork_inside(int without = 0) const;
  // Enters the others, in the child, but not those in `without`. Returns 0 or errno.
  int enter_rest(int without = 0) const;

  pid_t keeper() const { return keeper_; }
  // False once the keeper has ended, which it has when nothing could be forked inside. Reaps it.
  bool is_kept();
  int flags() const { return flags_; }

 private:
  Namespaces() = default;

  int enter(int flags) const;
  void end_keeper();

  int flags_ = 0;
  pid_t keeper_ = -1;
  mutable bool lost_ = false;               // the latest fork_inside() failed: the keeper is about to end
  std::vector<std::pair<int, int>> files_;  // flag, descriptor
};

}  // namespace tuner
