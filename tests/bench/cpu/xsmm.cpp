#include "tests/bench/cpu/xsmm.h"

#include "tests/bench/cpu/plain_matmul.h"

#ifdef BENCH_HAS_XSMM
#include <libxsmm.h>
#endif

namespace tuner {

#ifdef BENCH_HAS_XSMM
void add_xsmm(const BenchCase& bench_case, int threads, int sets, std::vector<Contestant>& contestants,
              std::vector<MissingPeer>& missing) {
  if (!is_plain_matmul(bench_case.workload()) || threads > 1) return;
  const MatmulWorkload& w = *bench_case.workload().get_if<MatmulWorkload>();
  if (w.transpose_a || w.transpose_b) return;
  // Column-major: out^T = b^T a^T.
  const auto m = static_cast<libxsmm_blasint>(w.m), n = static_cast<libxsmm_blasint>(w.n),
             k = static_cast<libxsmm_blasint>(w.k);
  const float one = 1, zero = 0;
  const int flags = LIBXSMM_GEMM_FLAG_NONE, prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
  const libxsmm_smmfunction kernel = libxsmm_smmdispatch(n, m, k, &n, &k, &n, &one, &zero, &flags, &prefetch);
  if (kernel == nullptr) {
    missing.push_back({"libxsmm", "it generates no kernel for this shape"});
    return;
  }
  const auto multiply = [kernel](const PlainMatmul& x, int set, int64_t i) {
    kernel(x.b(set, i), x.a(set, i), x.out(set, i));
  };
  contestants.push_back(plain_matmul_contestant(bench_case, sets, "libxsmm", ContestantKind::kPeer,
                                                libxsmm_get_target_arch(), multiply));
}
#else
void add_xsmm(const BenchCase& bench_case, int, int, std::vector<Contestant>&,
              std::vector<MissingPeer>& missing) {
  if (is_plain_matmul(bench_case.workload()))
    missing.push_back({"libxsmm", "built without it (libxsmm-dev)"});
}
#endif

}  // namespace tuner
