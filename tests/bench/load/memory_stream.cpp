// memory_stream: a neighbour who keeps the memory busy. Adds up two arrays of 64 MiB into a third, over and
// over, until the process that started it is gone or it is told to end. For experiments beside load
// (verify_times.sh).
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <vector>

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == 1) return 1;  // it is gone already
  constexpr size_t kFloats = size_t{16} << 20;
  std::vector<float> a(kFloats, 1), b(kFloats, 2), sum(kFloats);
  for (float round = 0;; round += 1) {
    for (size_t i = 0; i < kFloats; ++i) sum[i] = a[i] + round * b[i];
    if (sum[kFloats / 2] < 0)
      std::printf("%g\n", static_cast<double>(sum[kFloats / 2]));  // nobody may leave it out
  }
}
