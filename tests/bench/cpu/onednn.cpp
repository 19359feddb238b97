#include "tests/bench/cpu/onednn.h"

#include "tests/bench/cpu/library.h"
#include "tests/bench/cpu/onednn_call.h"

namespace tuner {

Onednn::~Onednn() = default;

Result<std::unique_ptr<Onednn>> Onednn::open(int threads) {
  const Settings settings({{"OMP_NUM_THREADS", std::to_string(threads)}});
  ASSIGN_OR_RETURN(const Library library, Library::open({"libdnnl.so.2"}, "BENCH_LIBDNNL"));
  auto api = std::make_unique<OnednnApi>();
#define BENCH_DNNL_FIND(name)                                      \
  api->name = library.find<decltype(&dnnl_##name)>("dnnl_" #name); \
  if (api->name == nullptr) return not_found("the library has no dnnl_" #name);
  BENCH_DNNL_SYMBOLS(BENCH_DNNL_FIND)
#undef BENCH_DNNL_FIND
  // The environment counts when the OpenMP runtime is loaded, which BLIS may have done before.
  if (const Result<Library> openmp = Library::open({"libgomp.so.1"}, "BENCH_LIBGOMP"); openmp.is_ok())
    if (const auto set_threads = openmp->find<void (*)(int)>("omp_set_num_threads")) set_threads(threads);
  RETURN_IF_ERROR(dnnl_ok(api->engine_create(&api->engine, dnnl_cpu, 0), "CPU engine"));
  RETURN_IF_ERROR(
      dnnl_ok(api->stream_create(&api->stream, api->engine, dnnl_stream_default_flags), "stream"));
  auto onednn = std::unique_ptr<Onednn>(new Onednn);
  onednn->api_ = std::move(api);
  return onednn;
}

std::string Onednn::version() const {
  const dnnl_version_t& v = *api_->version();
  return str(v.major, ".", v.minor, ".", v.patch);
}

void Onednn::add(const BenchCase& bench_case, int sets, std::vector<Contestant>& contestants,
                 std::vector<MissingPeer>& missing) const {
  const DnnlWays ways{*api_, bench_case, sets, contestants, missing};
  if (const auto* conv = bench_case.workload().get_if<Conv2dWorkload>())
    add_dnnl_conv2d(ways, *conv);
  else if (const auto* matmul = bench_case.workload().get_if<MatmulWorkload>())
    add_dnnl_matmul(ways, *matmul);
  else
    add_dnnl_rows(ways);
}

}  // namespace tuner
