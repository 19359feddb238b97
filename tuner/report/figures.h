// Figures as people read them on a page.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuner::page {

using Facts = nlohmann::ordered_json;

// Parts of the document; a part that is missing, or of another type, is empty: null, 0, "".
const Facts& part(const Facts& facts, const char* key);
double number(const Facts& facts, const char* key);
std::string text(const Facts& facts, const char* key);
bool is_set(const Facts& facts, const char* key);

std::string time(double ns);                          // "17.97 us"; "-" if it is not positive
std::string interval(double low_ns, double high_ns);  // "17.60 to 18.34 us"
std::string digits(double x);                         // four of them, without an exponent
std::string percent(double share, int places = 1);    // "12.3 %"
std::string grouped(int64_t n);                       // "12,345"
std::string count(int64_t n, std::string_view one, std::string_view many);  // "1 trial", "2,000 trials"
std::string factor(double x);                                               // "2.72x"
std::string duration(double ms);                                            // "812 ms", "4.5 s", "2.1 min"
std::string outcome(std::string name);                                      // "build error"
std::string tick(double x);                                                 // at most four digits

struct Unit {
  double ns = 1;
  const char* name = "ns";
};
Unit unit_of(double ns);
// Multiples of 1, 2, 2.5 or 5 times a power of ten from `low` to `high`, about `wanted` of them.
std::vector<double> ticks(double low, double high, double wanted);

}  // namespace tuner::page
