// Built where oneDNN's headers are not.
#include "tests/bench/model/onednn_chain.h"

namespace tuner {

struct OnednnChain::Parts {};

OnednnChain::OnednnChain() = default;
OnednnChain::~OnednnChain() = default;

Result<std::unique_ptr<OnednnChain>> OnednnChain::make(const Onednn&, const ModelSteps&, bool) {
  return not_found("built without oneDNN's headers (libdnnl-dev)");
}

void* OnednnChain::input(size_t) const { return nullptr; }
const void* OnednnChain::output(size_t) const { return nullptr; }
void OnednnChain::run() const {}

}  // namespace tuner
