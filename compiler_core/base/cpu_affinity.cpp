#include "compiler_core/base/cpu_affinity.h"

#include <sched.h>
#include <unistd.h>

namespace tuner {
namespace {

// `thread`: 0 is the calling one; the process's number is its first one.
std::vector<int> cpus_of(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(thread, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

std::vector<int> usable_cpus() {
  const std::vector<int> cpus = cpus_of(getpid());
  return cpus.empty() ? std::vector<int>{0} : cpus;
}

std::vector<int> cpus_beside_runs() {
  std::vector<int> cpus = usable_cpus();
  if (cpus.size() > 1) cpus.pop_back();
  return cpus;
}

std::vector<int> cpus_of_this_thread() { return cpus_of(0); }

void use_cpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus)
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  static_cast<void>(sched_setaffinity(0, sizeof set, &set));
}

OnCpus::OnCpus(const std::vector<int>& cpus) : before_(cpus_of_this_thread()) { use_cpus(cpus); }
OnCpus::~OnCpus() { use_cpus(before_); }

}  // namespace tuner
