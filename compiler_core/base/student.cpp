// The only file that knows Boost.Math: whoever links base needs no Boost.
#include <boost/math/distributions/students_t.hpp>

#include "compiler_core/base/statistics.h"
#include "compiler_core/base/status.h"

namespace tuner {

double student_quantile(double probability, double degrees) {
  CHECK(probability > 0 && probability < 1) << "a quantile of probability " << probability;
  CHECK(degrees > 0) << "Student's t with " << degrees << " degrees of freedom";
  namespace policies = boost::math::policies;
  // Doubles throughout: a long double is another type on every architecture.
  using Policy = policies::policy<policies::promote_double<false>>;
  const boost::math::students_t_distribution<double, Policy> t(degrees);
  return boost::math::quantile(t, probability);
}

}  // namespace tuner
