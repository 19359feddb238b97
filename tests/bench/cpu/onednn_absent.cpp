// Built where oneDNN's headers are not.
#include "tests/bench/cpu/onednn.h"

namespace tuner {

class OnednnApi {};

Onednn::~Onednn() = default;

Result<std::unique_ptr<Onednn>> Onednn::open(int) {
  return not_found("built without oneDNN's headers (libdnnl-dev)");
}

std::string Onednn::version() const { return {}; }

void Onednn::add(const BenchCase&, int, std::vector<Contestant>&, std::vector<MissingPeer>&) const {}

}  // namespace tuner
