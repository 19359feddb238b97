// TargetFamily: what the targets of one back end have in common, known without any compiler.
//
// A program that only reads records (a database, a report, an application's runtime) must understand names of
// targets, so this half of a back end needs neither LLVM nor a driver. The other half is Backend (backend.h).
// Each family lives in the folder of its back end and is listed in target_families.cpp; one that is made
// outside the tree registers itself (RegisterTargetFamily).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"

namespace tuner {

struct Target;

// What no device of a target exceeds: bounds for judging whether a time can be, not estimates of speed. They
// are above every device on the market, with room, and finite.
struct DeviceLimits {
  double ops_per_ns = 0;    // multiplications and additions, each counts as one: GFLOP/s, of all threads
  double bytes_per_ns = 0;  // from the fastest cache into registers, or back: GB/s, of all threads
  double call_ns = 0;       // no call of a kernel takes less
};

class TargetFamily {
 public:
  virtual ~TargetFamily() = default;

  // --- names ---
  // The first word of its targets' names: "llvm", "cuda".
  virtual std::string_view word() const = 0;
  // What a name looks like, for messages: "\"cuda -arch=sm_NN\"".
  virtual std::string_view usage() const = 0;
  // The options of a name. One that takes a value ends with '=': {"-arch=", "-emulated"}.
  virtual std::span<const std::string_view> options() const = 0;
  // Sets one of them: `key` is "-arch", and `value` is not empty where the option takes one.
  virtual Status set_option(std::string_view key, std::string_view value, Target& target) const = 0;
  // Called after the last option: checks that nothing is missing, and fills in what follows from the name.
  virtual Status complete(Target& target) const = 0;
  // The canonical name: one spelling for one device. It is a key in the database.
  virtual std::string name(const Target& target) const = 0;
  // What a user who named this target should know about the name itself: one line, empty for nearly all.
  virtual std::string advice(const Target&) const { return {}; }

  // --- what measurements on its devices mean ---
  // The first word of its compiler's fingerprint: "llvm", "nvrtc". By it a record tells its family.
  virtual std::string_view toolchain_word() const = 0;
  // The part of a hardware fingerprint that two records must share to be compared. Default: all of it.
  virtual std::string device_of(std::string_view hardware) const { return std::string(hardware); }
  // Finalists of a task are raced against each other; else the medians of the trials stand.
  virtual bool races() const { return false; }
  // Kernels are functions of a shared object, which an application calls in its own process.
  virtual bool in_process() const { return false; }
  // The peaks and bandwidths that the runner measures of the host are those of its devices.
  virtual bool bound_by_host() const { return false; }
  // MeasureRecord::device_state is a sentence for people, not readings of sensors.
  virtual bool explains_device_state() const { return false; }
  // What a peak in GFLOP/s is the peak of: "vector unit's", "data sheet's".
  virtual std::string_view peak_owner() const { return "device's"; }

  // What no device of the target exceeds in this type; nothing if the family does not know its units.
  virtual std::optional<DeviceLimits> limits(const Target&, DType) const { return std::nullopt; }

  // --- classes of devices: targets that say which, and targets that leave it open (db/device_records.h) ---
  // The name of the target that is this one for any device: "cuda -arch=sm_90a" of one with "-device=h200".
  // Empty if this one names no class.
  virtual std::string any_device(const Target&) const { return {}; }
  // The class of the device that a hardware fingerprint was taken on: "h200". Empty: it tells of none.
  virtual std::string device_class(std::string_view /*hardware*/) const { return {}; }

  // --- how far a config travels (db/resolve). Both targets are of this family. ---
  // Configs of one device are worth trying on the other.
  virtual bool near(const Target& a, const Target& b) const = 0;
  // The names differ in how many threads a kernel has, if at all.
  virtual bool same_processor(const Target& a, const Target& b) const = 0;
  // "tuned for znver4, 2 threads there"; empty when they are alike.
  virtual std::string difference(const Target& asked, const Target& there) const = 0;
  // A newer compiler may call the same machine by another name, so answers stay under the old one.
  virtual bool name_depends_on_compiler() const { return false; }
};

// The listed families, then those that were registered.
const std::vector<const TargetFamily*>& target_families();
// Null when no family has the word.
const TargetFamily* find_target_family(std::string_view word);
// The family whose compiler made this toolchain fingerprint; null for a text of somebody else's.
const TargetFamily* family_of_toolchain(std::string_view toolchain);

// Static objects of it add a family that is made outside the tree, before main(). `family` lives for ever.
class RegisterTargetFamily {
 public:
  explicit RegisterTargetFamily(const TargetFamily& family);
};

}  // namespace tuner
