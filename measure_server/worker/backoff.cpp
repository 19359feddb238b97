#include "measure_server/worker/backoff.h"

#include <memory>
#include <random>

namespace tuner {

std::function<double()> random_fraction() {
  const auto random = std::make_shared<std::mt19937_64>(std::random_device{}());
  return [random] { return std::uniform_real_distribution<double>(0, 1)(*random); };
}

}  // namespace tuner
