// What a warpgroup does together: wgmma. Descriptors are read by the words of the PTX manual ("Matrix
// descriptor", "Strides", "Swizzling modes"), a second time beside ir/intrinsics/wgmma.cpp, and who holds
// which sum too.
#include <math.h>

#include <deque>
#include <vector>

#include "state.h"
#include "units.h"

namespace host_cuda {

namespace {
// A product of 64 x columns x 16 under way: done when it is waited for, so that sums are not there before,
// and operands must still be.
struct GroupProduct {
  float* sums;
  int columns;
  unsigned long long a, b;
  Type type;
  bool a_across_k, b_across_k;
};
struct GroupProducts {
  std::vector<GroupProduct> open;
  std::deque<std::vector<GroupProduct>> groups;
  bool begun = false;
};
GroupProducts products[kMostThreads];
}  // namespace

void forget_products() {
  for (const Fiber& f : fibers) products[f.linear] = {};
}

void fence_async() { unfenced[running->linear] = false; }
void begin_products() { products[running->linear].begun = true; }

void multiply_group(float* sums, int columns, unsigned long long a, unsigned long long b, Type type,
                    bool a_across_k, bool b_across_k, const char* file, int line) {
  GroupProducts& own = products[running->linear];
  for (const Fiber& f : fibers)
    if (unfenced[f.linear]) report_unit("wgmma may read what no fence.proxy.async shows it", file, line);
  if (!own.begun) report_unit("wgmma stands before its wgmma.fence", file, line);
  own.open.push_back({sums, columns, a, b, type, a_across_k, b_across_k});
}
void commit_products() {
  GroupProducts& own = products[running->linear];
  own.groups.push_back(std::move(own.open));
  own.open.clear();
  own.begun = false;
}

// Element (line, term) of an operand, line of m or n. 128-byte swizzle: bits 4 to 6 of an address exclusive
// or its bits 7 to 9.
static double fetched(unsigned long long descriptor, Type type, size_t line, size_t term, bool across_k) {
  const auto field = [&](int first) { return (size_t)(descriptor >> first & 0x3fff) << 4; };
  const size_t start = field(0), leading = field(16), stride = field(32);
  size_t at = start;
  if (across_k)  // lines along the rows of 64: "leading" to the next 64; "stride" to the next 8 terms
    at += line / 64 * leading + line % 64 * 2 + term / 8 * stride + term % 8 * 128;
  else  // terms along the rows: "stride" to the next 8 lines
    at += line / 8 * stride + line % 8 * 128 + term * 2;
  at ^= (at >> 7 & 7) << 4;
  if (descriptor >> 62 == 1 && (descriptor >> 49 & 7) == 0 && at + 2 <= kMostShared)
    return element(host_cuda_dynamic + at, type, 0);
  report_unit("a descriptor of wgmma means no matrix of 128-byte rows in shared memory", "", 0);
  return NAN;
}

static void run_product(const GroupProduct& p, int lane) {
  for (int r = 0; r < p.columns / 2; ++r) {
    const int row = lane / 32 * 16 + lane % 32 / 4 + (r & 2) * 4, column = r / 4 * 8 + lane % 4 * 2 + r % 2;
    double sum = p.sums[r];
    for (int k = 0; k < 16; ++k)
      sum += fetched(p.a, p.type, row, k, p.a_across_k) * fetched(p.b, p.type, column, k, p.b_across_k);
    p.sums[r] = (float)sum;
  }
}
void wait_products(size_t in_flight) {
  GroupProducts& own = products[running->linear];
  for (; own.groups.size() > in_flight; own.groups.pop_front())
    for (const GroupProduct& p : own.groups.front()) run_product(p, (int)running->linear % 128);
}

}  // namespace host_cuda
