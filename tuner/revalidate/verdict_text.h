// Verdicts told to people and to programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tuner/revalidate/verdict.h"

namespace tuner {

// Some lines, each with its end.
std::string verdict_text(const RevalidateItem& item, const RevalidateVerdict& verdict);
nlohmann::ordered_json verdict_json(const RevalidateItem& item, const RevalidateVerdict& verdict);

}  // namespace tuner
