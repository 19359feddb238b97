#include "tuner/judge/kernel_verdict.h"

namespace tuner {

std::string_view verdict_word(KernelVerdict verdict) {
  switch (verdict) {
    case KernelVerdict::kRight:
      return "right";
    case KernelVerdict::kWrong:
      return "wrong";
    case KernelVerdict::kCrashed:
      return "crashed";
    case KernelVerdict::kTimedOut:
      return "timed out";
    case KernelVerdict::kNotCompiled:
      return "not compiled";
    case KernelVerdict::kRefused:
      return "refused";
    case KernelVerdict::kRightNotTimed:
      return "right, not timed";
    case KernelVerdict::kCannotTell:
      return "cannot tell";
  }
  return "cannot tell";
}

KernelJudgement judgement_of(Outcome outcome, const std::string& message, const Difference& difference,
                             bool doubted) {
  KernelJudgement j{.why = message};
  switch (outcome) {
    case Outcome::kWrongAnswer:
      j.verdict = KernelVerdict::kWrong;
      j.difference = difference;
      break;
    case Outcome::kRunTimeout:
    case Outcome::kBuildTimeout:
      j.verdict = KernelVerdict::kTimedOut;
      break;
    case Outcome::kBuildError:
    case Outcome::kInvalidConfig:
      j.verdict = KernelVerdict::kNotCompiled;
      break;
    case Outcome::kDeviceLost:
      j.verdict = KernelVerdict::kCannotTell;
      break;
    default:
      j.verdict = doubted ? KernelVerdict::kRefused : KernelVerdict::kCrashed;
  }
  return j;
}

}  // namespace tuner
