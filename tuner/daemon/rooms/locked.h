// Guarded, Locked: a value that is reached only under its lock. What forgets the lock does not compile.
//
//   Guarded<FarmState> farm_;      keeps the value and its lock, and gives neither away
//   const Locked farm(farm_);      takes the lock until the end of the scope
//   farm->leases.expire(now);      uses the value
//   look_after(*farm);             hands it on: who takes a FarmState& runs under the lock of his caller
//
// A reference must not outlive the Locked that it came from. The lock is not recursive.
#pragma once

#include <condition_variable>
#include <mutex>
#include <type_traits>
#include <utility>

namespace tuner {

template <typename T>
class Guarded {
 public:
  template <typename... Args>
  explicit Guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

 private:
  template <typename U>
  friend class Locked;
  mutable std::mutex mutex_;
  T value_;
};

template <typename T>
class Locked {
 public:
  using Of = std::conditional_t<std::is_const_v<T>, const Guarded<std::remove_const_t<T>>, Guarded<T>>;
  explicit Locked(Of& guarded) : lock_(guarded.mutex_), value_(guarded.value_) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  T& operator*() const { return value_; }
  T* operator->() const { return &value_; }

  // Gives the lock away until `news` is notified, at most for `limit`; the second until `until()` is true,
  // which is asked under the lock. Both return under the lock. False: the limit is over, and `until()` is not
  // true.
  template <typename Duration>
  void wait_for(std::condition_variable& news, Duration limit) {
    news.wait_for(lock_, limit);
  }
  template <typename Duration, typename Until>
  bool wait_for(std::condition_variable& news, Duration limit, Until until) {
    return news.wait_for(lock_, limit, std::move(until));
  }

 private:
  std::unique_lock<std::mutex> lock_;
  T& value_;
};

template <typename T>
Locked(Guarded<T>&) -> Locked<T>;
template <typename T>
Locked(const Guarded<T>&) -> Locked<const T>;

}  // namespace tuner
