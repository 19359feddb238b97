// The operands of a candidate in a GPU's memory: one allocation with guards of 4 KiB around each operand, so
// that a write beside an operand is detected. (A GPU offers no unmapped page for this: a stray write within
// one process usually succeeds.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/runtime/cuda_objects.h"

namespace tuner {

class DeviceOperands {
 public:
  // Returns the bytes of all arguments and workspaces of one set with guards; -1 if over 2^62 or negative.
  static int64_t bytes_of_set(const Manifest& manifest);
  // Returns how many sets are together over three times as large as `l2_bytes`, counting what a kernel can
  // touch; 1 if one set is. The result is limited by `limit_bytes` and to 1024, so operands of a few
  // kilobytes stay warm in a large L2.
  static int sets_for_rotation(const Manifest& manifest, int64_t l2_bytes, int64_t limit_bytes);

  // The same for operands that a call changes and that must be as they were before the next one: few enough
  // to stay warm in a quarter of L2. 1: there are no such operands, or one set is more.
  static int sets_for_inouts(const Manifest& manifest, int64_t l2_bytes, int64_t limit_bytes);

  // Allocates `sets` sets of operands and writes their guards. Several sets are for calls that take turns.
  // The caller must then fill every argument: upload(), poison(). `manifest` must outlive this.
  static cuda::CallStatus create(const Manifest& manifest, int sets, const cuda::DeviceStream& stream,
                                 DeviceOperands& out);

  // What the caller fills: inputs, constants and inouts; constants that are packed ahead among them.
  struct Input {
    int operand = 0;
    ArgInfo info;
  };
  static std::vector<Input> inputs_of(const Manifest& manifest);
  // The operand that is argument `place` of the packing kernels.
  static int packing_operand(const Manifest& manifest, int place);

  int sets() const { return sets_; }
  // `operand` counts arguments, then workspaces, like LaunchInfo::params; then the constants that are packed.
  cuda::DevicePtr address(int set, int operand) const { return memory_.address() + offset(set, operand); }

  // Fills input `operand` of every set.
  cuda::CallStatus upload(int operand, std::string_view bytes, const cuda::DeviceStream& stream) const;
  // The same from a copy on the device.
  cuda::CallStatus fill(int operand, cuda::DevicePtr from, const cuda::DeviceStream& stream) const;
  // Fills every output with poison_byte() and every workspace with 0xFF, in all sets. A kernel that reads
  // there before it writes gets NaN.
  cuda::CallStatus poison(const cuda::DeviceStream& stream) const;
  // Remembers what the inouts of the first set hold, and queues it into those of all sets.
  cuda::CallStatus keep_inouts(const Manifest& manifest, const cuda::DeviceStream& stream);
  cuda::CallStatus restore_inouts(const cuda::DeviceStream& stream) const;
  bool has_inouts() const { return !inouts_.empty(); }
  // Reads an output or input of the first set.
  cuda::CallStatus download(int operand, std::string& bytes) const;

  // Checks every guard. `damaged` names the operand beside a damaged guard, or is empty.
  cuda::CallStatus check_guards(std::string& damaged) const;

 private:
  struct Piece {
    std::string name;
    int64_t offset = 0, bytes = 0;  // offset within a set
    int poison = -1;                // byte to fill with; -1: an input
    bool touched = true;            // by a call: a constant that is packed is not
  };
  int64_t offset(int set, int operand) const { return set * set_bytes_ + pieces_[operand].offset; }
  static std::vector<Piece> layout(const Manifest& manifest, int64_t& set_bytes);
  // Calls f(operand before the gap or -1, begin, end) for every gap of one set.
  template <class F>
  void for_each_gap(const F& f) const;

  struct Kept {
    int operand = 0;
    cuda::DeviceMemory memory;
  };

  cuda::DeviceMemory memory_;
  std::vector<Kept> inouts_;  // as they are before a call
  std::vector<Piece> pieces_;
  int64_t set_bytes_ = 0;
  int sets_ = 0;
};

}  // namespace tuner
