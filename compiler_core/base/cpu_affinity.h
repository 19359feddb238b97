// Which CPUs this process and its threads may run on.
#pragma once

#include <vector>

namespace tuner {

// The CPUs of the process (of its first thread), ascending; never empty. A thread that was moved elsewhere
// gets the same answer.
std::vector<int> usable_cpus();

// All of them but the last, which workers of this host leave to the kernel that they time; the only one if
// there is no other.
std::vector<int> cpus_beside_runs();

// Those of the calling thread.
std::vector<int> cpus_of_this_thread();

// Moves the calling thread, and the threads and processes that it starts from now on, to these CPUs. Empty,
// or refused by the system: it stays where it was.
void use_cpus(const std::vector<int>& cpus);

// Moves the calling thread while this lives.
class OnCpus {
 public:
  explicit OnCpus(const std::vector<int>& cpus);
  ~OnCpus();
  OnCpus(const OnCpus&) = delete;
  OnCpus& operator=(const OnCpus&) = delete;

 private:
  std::vector<int> before_;
};

}  // namespace tuner
