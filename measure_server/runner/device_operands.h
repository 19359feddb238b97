// The operands of a candidate in a GPU's memory: one piece, each operand between guards of 4 KiB, so that a
// kernel that writes beside an operand shows. (A GPU has no unmapped page to put there: a stray write of the
// same process usually succeeds.)
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
  // Bytes of all arguments and workspaces of one set, guards included; -1: more than 2^62, or negative.
  static int64_t bytes_of_set(const Manifest& manifest);
  // How many sets are together over three times as large as `l2_bytes`, counting what a kernel can touch; 1
  // when one is. At most what fits `limit_bytes`, and 1024: operands of a few kilobytes stay warm in a large
  // L2.
  static int sets_for_rotation(const Manifest& manifest, int64_t l2_bytes, int64_t limit_bytes);

  // Memory for `sets` sets of operands (more than one: for calls that take turns), guards written. Then every
  // argument must be given its bytes. `manifest` outlives this.
  static cuda::CallStatus create(const Manifest& manifest, int sets, const cuda::DeviceStream& stream,
                                 DeviceOperands& out);

  int sets() const { return sets_; }
  // Of arguments, then workspaces: what LaunchInfo::params counts.
  cuda::DevicePtr address(int set, int operand) const { return memory_.address() + offset(set, operand); }

  // Input `operand` of every set.
  cuda::CallStatus upload(int operand, std::string_view bytes, const cuda::DeviceStream& stream) const;
  // Every output of every set is filled with poison_byte(), every workspace with 0xFF: what a kernel reads
  // there without having written it is NaN.
  cuda::CallStatus poison(const cuda::DeviceStream& stream) const;
  // Output or input of the first set.
  cuda::CallStatus download(int operand, std::string& bytes) const;

  // Looks at every guard. `damaged` names the operand beside which something was written, else is empty.
  cuda::CallStatus check_guards(std::string& damaged) const;

 private:
  struct Piece {
    std::string name;
    int64_t offset = 0, bytes = 0;  // within a set
    int poison = -1;                // byte to fill with; -1: an input
  };
  int64_t offset(int set, int operand) const { return set * set_bytes_ + pieces_[operand].offset; }
  static std::vector<Piece> layout(const Manifest& manifest, int64_t& set_bytes);
  // Calls f(operand before the gap or -1, begin, end) for every gap of one set.
  template <class F>
  void for_each_gap(const F& f) const;

  cuda::DeviceMemory memory_;
  std::vector<Piece> pieces_;
  int64_t set_bytes_ = 0;
  int sets_ = 0;
};

}  // namespace tuner
