// A judgement for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/judge/kernel_verdict.h"

namespace tuner {

// Lines for people; the first begins with the verdict. `rival`: what it raced with, in words.
std::vector<std::string> judgement_text(const KernelJudgement& judgement, const std::string& rival);
// docs/json.md lists the keys.
nlohmann::ordered_json judgement_json(const KernelJudgement& judgement, const std::string& rival);

}  // namespace tuner
