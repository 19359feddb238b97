// What libfakecuda.so offers to libraries that stand on it in tests (tests/bench/fake_cublas, fake_cudnn),
// beside the driver's own functions.
#pragma once

#include <cstddef>
#include <functional>

extern "C" {

// Queues work, as a launch does: runs it now, or keeps it for the graph that is being recorded. Returns what
// the work answers, and 0 for what is recorded. The work may not look at the caller's variables.
int fake_cuda_queue(const std::function<int()>& work);
// True while a graph is being recorded.
bool fake_cuda_records();
// The work that runs takes so long on the device's clock.
void fake_cuda_advance(double ns);
// True if all of these bytes lie in one allocation of the device.
bool fake_cuda_owns(const void* begin, size_t bytes);
}
