#include "compiler_core/codegen_cuda/names.h"

#include <cctype>

#include "compiler_core/base/status.h"

namespace tuner::cuda {
namespace {

// Words of C++ and names CUDA has everywhere; what a tensor or loop may well be called stands here too.
constexpr std::string_view kReserved[] = {
    "alignas",  "alignof",   "and",      "asm",      "auto",      "bool",      "break",         "case",
    "catch",    "char",      "class",    "const",    "continue",  "decltype",  "default",       "delete",
    "do",       "double",    "else",     "enum",     "explicit",  "export",    "extern",        "false",
    "float",    "for",       "friend",   "goto",     "if",        "inline",    "int",           "long",
    "mutable",  "namespace", "new",      "noexcept", "not",       "nullptr",   "operator",      "or",
    "private",  "protected", "public",   "register", "requires",  "return",    "short",         "signed",
    "sizeof",   "static",    "struct",   "switch",   "template",  "this",      "throw",         "true",
    "try",      "typedef",   "typeid",   "typename", "union",     "unsigned",  "using",         "virtual",
    "void",     "volatile",  "while",    "xor",      "threadIdx", "blockIdx",  "blockDim",      "gridDim",
    "warpSize", "min",       "max",      "fminf",    "fmaxf",     "expf",      "logf",          "tanhf",
    "erff",     "sqrtf",     "rsqrtf",   "fabsf",    "floorf",    "exp",       "log",           "tanh",
    "erf",      "sqrt",      "rsqrt",    "fabs",     "floor",     "abs",       "fmin",          "fmax",
    "float2",   "float4",    "int2",     "int4",     "index_div", "index_mod", "shared_memory", "rint",
    "rintf",    "sinf",      "cosf",     "tanf",     "asinf",     "acosf",     "atanf",         "sinhf",
    "coshf",    "asinhf",    "acoshf",   "atanhf",   "sin",       "cos",       "tan",           "asin",
    "acos",     "atan",      "sinh",     "cosh",     "asinh",     "acosh",     "atanh",         "pow",
    "powf",     "ieee_min",  "ieee_max",
};
// Of the helpers of bfloat16 and float16 (print.cpp).
constexpr std::string_view kHalfWords[] = {"bfloat16_value", "float16_value", "bfloat16_bits",
                                           "float16_bits"};
// Of dot products (dot_words.cpp).
constexpr std::string_view kDotWords[] = {"dot_uint8_uint8", "dot_uint8_int8", "dot_int8_uint8",
                                          "dot_int8_int8"};

}  // namespace

std::string identifier(std::string_view name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  // Two leading underscores belong to the compiler.
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0 || out[0] == '_') out = "v" + out;
  return out;
}

Names::Names() : scopes_(1) {
  for (const std::string_view word : kReserved) reserve(word);
  for (const std::string_view word : kHalfWords) reserve(word);
  for (const std::string_view word : kDotWords) reserve(word);
}

void Names::close() {
  for (const std::string& name : scopes_.back()) taken_.erase(name);
  scopes_.pop_back();
}

std::string Names::declare(std::string_view wanted) {
  const std::string base = identifier(wanted);
  std::string name = base;
  for (int i = 1; taken_.contains(name); ++i) name = str(base, "_", i);
  taken_.insert(name);
  scopes_.back().push_back(name);
  return name;
}

const std::string& Names::declare(const Var& var, std::string_view wanted) {
  return vars_[var.get()] = declare(wanted);
}

const std::string& Names::declare(const Buffer& buffer, std::string_view wanted) {
  return buffers_[buffer.get()] = declare(wanted);
}

const std::string& Names::of(const Var& var) const {
  const auto found = vars_.find(var.get());
  CHECK(found != vars_.end()) << "variable " << var->name << " is used outside its loop";
  return found->second;
}

const std::string& Names::of(const Buffer& buffer) const {
  const auto found = buffers_.find(buffer.get());
  CHECK(found != buffers_.end()) << "buffer " << buffer->name << " is used where it does not exist";
  return found->second;
}

}  // namespace tuner::cuda
