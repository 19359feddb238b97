#include "tests/bench/cpu/blas.h"

#include "tests/bench/cpu/library.h"
#include "tests/bench/cpu/plain_matmul.h"

namespace tuner {
namespace {

// cblas.h, of which nothing else is needed.
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;
using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);
using Sgemv = void (*)(int order, int trans, int m, int n, float alpha, const float* a, int lda,
                       const float* x, int incx, float beta, float* y, int incy);

struct Variant {
  std::string name;
  ContestantKind kind;
  std::vector<std::string> files;
  const char* variable;
  std::vector<std::pair<std::string, std::string>> settings;
};

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
#else
  return false;
#endif
}

std::vector<Variant> variants(int threads) {
  const std::string n = std::to_string(threads);
  const std::vector<std::string> openblas{"/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
                                          "libopenblas.so.0"};
  const std::vector<std::string> blis{"/usr/lib/x86_64-linux-gnu/blis-openmp/libblis.so.4", "libblis.so.4"};
  // Workers spin for 2^22 cycles, about 1 ms, instead of 2^26: far longer than the gap between two calls, and
  // short enough to be asleep when it is another's turn.
  const auto of_openblas = [&](const std::string& core) {
    return std::vector<std::pair<std::string, std::string>>{{"OPENBLAS_CORETYPE", core},
                                                            {"OPENBLAS_L2_SIZE", ""},
                                                            {"OPENBLAS_THREAD_TIMEOUT", "22"},
                                                            {"OPENBLAS_NUM_THREADS", n},
                                                            {"OMP_NUM_THREADS", n}};
  };
  const auto of_blis = [&](const std::string& arch) {
    return std::vector<std::pair<std::string, std::string>>{
        {"BLIS_ARCH_TYPE", arch}, {"BLIS_NUM_THREADS", n}, {"OMP_NUM_THREADS", n}};
  };
  std::vector<Variant> all;
  const auto add = [&](const char* name, ContestantKind kind, bool is_blis, const std::string& forced) {
    all.push_back({name, kind, is_blis ? blis : openblas, is_blis ? "BENCH_LIBBLIS" : "BENCH_LIBOPENBLAS",
                   is_blis ? of_blis(forced) : of_openblas(forced)});
  };
  if (has_avx512()) {
    add("OpenBLAS SkylakeX", ContestantKind::kPeer, false, "SkylakeX");
    add("OpenBLAS Cooperlake", ContestantKind::kPeer, false, "Cooperlake");
    add("BLIS skx", ContestantKind::kPeer, true, "0");
  } else {
    add("OpenBLAS Haswell", ContestantKind::kPeer, false, "Haswell");
    add("BLIS haswell", ContestantKind::kPeer, true, "3");
  }
  add("OpenBLAS default", ContestantKind::kReference, false, "");
  add("BLIS default", ContestantKind::kReference, true, "");
  return all;
}

void multiply(Sgemm sgemm, const PlainMatmul& x, int set, int64_t i) {
  const int m = static_cast<int>(x.w.m), n = static_cast<int>(x.w.n), k = static_cast<int>(x.w.k);
  sgemm(kRowMajor, x.w.transpose_a ? kTrans : kNoTrans, x.w.transpose_b ? kTrans : kNoTrans, m, n, k, 1,
        x.a(set, i), x.w.transpose_a ? m : k, x.b(set, i), x.w.transpose_b ? k : n, 0, x.out(set, i), n);
}

// One row times b: out = b^T a.
void multiply_row(Sgemv sgemv, const PlainMatmul& x, int set, int64_t i) {
  const int n = static_cast<int>(x.w.n), k = static_cast<int>(x.w.k);
  const bool transposed = x.w.transpose_b;
  sgemv(kRowMajor, transposed ? kNoTrans : kTrans, transposed ? n : k, transposed ? k : n, 1, x.b(set, i),
        transposed ? k : n, x.a(set, i), 1, 0, x.out(set, i), 1);
}

}  // namespace

struct Blas::Copy {
  std::string name;
  ContestantKind kind;
  Sgemm sgemm;
  Sgemv sgemv;
  std::string detail;
};

Blas::~Blas() = default;

std::unique_ptr<Blas> Blas::open(int threads, std::vector<MissingPeer>& missing) {
  auto blas = std::unique_ptr<Blas>(new Blas);
  for (const Variant& v : variants(threads)) {
    const Settings settings(v.settings);
    const Result<Library> library = Library::open_copy(v.files, v.variable);
    if (!library) {
      missing.push_back({v.name, library.message()});
      continue;
    }
    auto copy = std::make_unique<Copy>(
        Copy{v.name, v.kind, library->find<Sgemm>("cblas_sgemm"), library->find<Sgemv>("cblas_sgemv"), ""});
    if (copy->sgemm == nullptr || copy->sgemv == nullptr) {
      missing.push_back({v.name, "the library has no cblas_sgemm or cblas_sgemv"});
      continue;
    }
    // BLIS reads its settings when it initialises itself, else in its first call.
    if (const auto initialise = library->find<void (*)()>("bli_init")) initialise();
    // What it really chose.
    if (const auto core = library->find<char* (*)()>("openblas_get_corename")) copy->detail = core();
    if (const auto id = library->find<int (*)()>("bli_arch_query_id"))
      if (const auto text = library->find<const char* (*)(int)>("bli_arch_string")) copy->detail = text(id());
    blas->copies_.push_back(std::move(copy));
  }
  return blas;
}

void Blas::add(const BenchCase& bench_case, int sets, std::vector<Contestant>& contestants) const {
  if (!is_plain_matmul(bench_case.workload())) return;
  const bool one_row = bench_case.workload().get_if<MatmulWorkload>()->m == 1;
  for (const auto& copy : copies_) {
    const auto add = [&](const std::string& name, auto call) {
      contestants.push_back(plain_matmul_contestant(bench_case, sets, name, copy->kind, copy->detail, call));
    };
    add(copy->name, [f = copy->sgemm](const PlainMatmul& x, int set, int64_t i) { multiply(f, x, set, i); });
    if (one_row)
      add(copy->name + " sgemv",
          [f = copy->sgemv](const PlainMatmul& x, int set, int64_t i) { multiply_row(f, x, set, i); });
  }
}

}  // namespace tuner
