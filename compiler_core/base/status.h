// Status and Result<T>: errors are values. CHECK stops the process on our own bugs and says what was
// believed.
//
// There are four kinds of errors, never mixed. A message is one line: the thing, what was found, what was
// expected, and the next step.
#pragma once

#include <cstdint>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace tuner {

enum class StatusCode : uint8_t {
  kOk,
  kInvalidArgument,   // the user's mistake: bad file, option, shape; exit code 2
  kInvalidConfig,     // this config cannot be scheduled or built: normal in a search
  kNotFound,          // asked for something that is not there
  kUnavailable,       // a peer or device is not there right now; trying again may work
  kDeadlineExceeded,  // a wait reached its limit
  kAborted,           // cancelled, or lost a race for a lease or a lock
  kFailed,            // the environment failed us: disk, compiler, process
  kInternal,          // our bug, reported as an error where a service must go on
};

// Returns the name of the code, for messages.
std::string_view status_code_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status ok() { return {}; }

  bool is_ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // Returns the same error with `context` before the message: "conv2d.json: " + message.
  Status with_context(std::string_view context) const {
    return is_ok() ? *this : Status(code_, std::string(context) + message_);
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// Joins values for messages and keys: "a", 3, " b" -> "a3 b". Numbers look as in C everywhere: a program that
// our libraries are linked into may have set a locale that writes 1024 as "1.024".
template <class... Args>
std::string str(const Args&... args) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << args);
  return out.str();
}

template <class... Args>
Status invalid_argument(const Args&... args) {
  return {StatusCode::kInvalidArgument, str(args...)};
}
template <class... Args>
Status invalid_config(const Args&... args) {
  return {StatusCode::kInvalidConfig, str(args...)};
}
template <class... Args>
Status not_found(const Args&... args) {
  return {StatusCode::kNotFound, str(args...)};
}
template <class... Args>
Status unavailable(const Args&... args) {
  return {StatusCode::kUnavailable, str(args...)};
}
template <class... Args>
Status failed(const Args&... args) {
  return {StatusCode::kFailed, str(args...)};
}

namespace internal {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
struct CheckMessage {
  const char* file;
  int line;
  const char* condition;
  std::ostringstream out;
  template <class T>
  CheckMessage& operator<<(const T& value) {
    out << value;
    return *this;
  }
  [[noreturn]] ~CheckMessage() { check_failed(file, line, condition, out.str()); }
};
}  // namespace internal

// CHECK(believed) << "what that means": if it does not hold, prints file, line, condition and message, and
// aborts.
#define CHECK(condition)                 \
  if (condition) [[likely]] {            \
  } else                                 \
    ::tuner::internal::CheckMessage {    \
      __FILE__, __LINE__, #condition, {} \
    }

// A T, or the reason why there is none. Reading the value of an error is our bug.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    CHECK(!status_.is_ok()) << "a Result without a value needs an error";
  }

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }
  const std::string& message() const { return status_.message(); }

  const T& value() const& {
    CHECK(is_ok()) << status_.message();
    return *value_;
  }
  T& value() & {
    CHECK(is_ok()) << status_.message();
    return *value_;
  }
  T&& value() && {
    CHECK(is_ok()) << status_.message();
    return *std::move(value_);
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};
// NOLINTBEGIN(*-macro-parentheses): a declaration takes none
#define TUNER_JOIN2(a, b) a##b
#define TUNER_JOIN(a, b) TUNER_JOIN2(a, b)
// RETURN_IF_ERROR(status_expression): leaves the function with the error.
#define RETURN_IF_ERROR(expr)                                                                    \
  do {                                                                                           \
    if (::tuner::Status status_of_expr = (expr); !status_of_expr.is_ok()) return status_of_expr; \
  } while (0)
// ASSIGN_OR_RETURN(auto x, result_expression): defines x, or leaves the function with the error.
#define ASSIGN_OR_RETURN(decl, expr) ASSIGN_OR_RETURN_IMPL(TUNER_JOIN(result_, __LINE__), decl, expr)
#define ASSIGN_OR_RETURN_IMPL(result, decl, expr) \
  auto result = (expr);                           \
  if (!result.is_ok()) return result.status();    \
  decl = *std::move(result)
// NOLINTEND(*-macro-parentheses)
}  // namespace tuner
