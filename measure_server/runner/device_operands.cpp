#include "measure_server/runner/device_operands.h"

#include <algorithm>

#include "measure_server/runner/candidate.h"

namespace tuner {

using cuda::CallStatus;

namespace {

constexpr int64_t kCanaryBytes = 4096;
constexpr int64_t kAlignment = 256;  // of what cuMemAlloc returns; kernels may rely on 16 of it
constexpr unsigned char kGuardByte = 0xA5;
constexpr int64_t kMostOperandBytes = int64_t{1} << 62;

int64_t align(int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

// guard, operand, guard, operand, ..., guard: the gap behind an operand also holds what alignment takes.
std::vector<DeviceOperands::Piece> DeviceOperands::layout(const Manifest& manifest, int64_t& set_bytes) {
  std::vector<Piece> pieces;
  int64_t at = kCanaryBytes;
  const auto add = [&](std::string name, int64_t bytes, int poison, bool touched = true) {
    if (at < 0 || bytes < 0 || bytes > kMostOperandBytes - at) {
      at = -1;
      return;
    }
    pieces.push_back({std::move(name), at, bytes, poison, touched});
    at = align(at + bytes) + kCanaryBytes;
  };
  for (const ArgInfo& a : manifest.args)
    add(a.name, a.bytes, a.role == BufferRole::kOutput ? int{poison_byte(a.dtype)} : -1);
  for (size_t i = 0; i < manifest.workspaces.size(); ++i)
    add(str("workspace ", i), manifest.workspaces[i], 0xFF);
  for (const ArgInfo& a : manifest.pack_args)
    if (a.role != BufferRole::kPacked) add(a.name, a.bytes, -1, /*touched=*/false);
  set_bytes = at;
  return pieces;
}

std::vector<DeviceOperands::Input> DeviceOperands::inputs_of(const Manifest& manifest) {
  std::vector<Input> inputs;
  for (size_t i = 0; i < manifest.args.size(); ++i) {
    const BufferRole role = manifest.args[i].role;
    if (is_given(role)) inputs.push_back({static_cast<int>(i), manifest.args[i]});
  }
  for (size_t i = 0; i < manifest.pack_args.size(); ++i)
    if (manifest.pack_args[i].role != BufferRole::kPacked)
      inputs.push_back({packing_operand(manifest, static_cast<int>(i)), manifest.pack_args[i]});
  return inputs;
}

int DeviceOperands::packing_operand(const Manifest& manifest, int place) {
  const ArgInfo& wanted = manifest.pack_args[place];
  if (wanted.role == BufferRole::kPacked) {
    const auto found = std::ranges::find(manifest.args, wanted.name, &ArgInfo::name);
    return static_cast<int>(found - manifest.args.begin());
  }
  const auto constants_before = std::count_if(manifest.pack_args.begin(), manifest.pack_args.begin() + place,
                                              [](const ArgInfo& a) { return a.role != BufferRole::kPacked; });
  return static_cast<int>(manifest.args.size() + manifest.workspaces.size() + constants_before);
}

int64_t DeviceOperands::bytes_of_set(const Manifest& manifest) {
  int64_t bytes = 0;
  layout(manifest, bytes);
  return bytes;
}

int DeviceOperands::sets_for_rotation(const Manifest& manifest, int64_t l2_bytes, int64_t limit_bytes) {
  constexpr int64_t kMostSets = 1024;
  int64_t set_bytes = 0, touched = 0;
  for (const Piece& piece : layout(manifest, set_bytes)) touched += piece.touched ? piece.bytes : 0;
  const int64_t wanted = 3 * l2_bytes;
  if (touched >= wanted) return 1;
  const int64_t fit = std::max<int64_t>(1, limit_bytes / set_bytes);
  return static_cast<int>(std::min({wanted / std::max<int64_t>(touched, 1) + 2, fit, kMostSets}));
}

int DeviceOperands::sets_for_inouts(const Manifest& manifest, int64_t l2_bytes, int64_t limit_bytes) {
  constexpr int64_t kMostSets = 64;
  if (std::ranges::find(manifest.args, BufferRole::kInOut, &ArgInfo::role) == manifest.args.end()) return 1;
  const int64_t set_bytes = std::max<int64_t>(bytes_of_set(manifest), 1);
  return static_cast<int>(std::clamp<int64_t>(std::min(l2_bytes / 4, limit_bytes) / set_bytes, 1, kMostSets));
}

template <class F>
void DeviceOperands::for_each_gap(const F& f) const {
  int64_t begin = 0;
  for (size_t i = 0; i <= pieces_.size(); ++i) {
    const int64_t end = i < pieces_.size() ? pieces_[i].offset : set_bytes_;
    f(static_cast<int>(i) - 1, begin, end);
    if (i < pieces_.size()) begin = pieces_[i].offset + pieces_[i].bytes;
  }
}

CallStatus DeviceOperands::create(const Manifest& manifest, int sets, const cuda::DeviceStream& stream,
                                  DeviceOperands& out) {
  out.pieces_ = layout(manifest, out.set_bytes_);
  out.sets_ = sets;
  CallStatus status = cuda::DeviceMemory::allocate(out.set_bytes_ * sets, out.memory_);
  for (int set = 0; set < sets; ++set)
    out.for_each_gap([&](int, int64_t begin, int64_t end) {
      if (status)
        status = cuda::fill_bytes(out.memory_.address() + set * out.set_bytes_ + begin, kGuardByte,
                                  end - begin, stream);
    });
  return status;
}

CallStatus DeviceOperands::upload(int operand, std::string_view bytes,
                                  const cuda::DeviceStream& stream) const {
  const auto size = static_cast<int64_t>(bytes.size());
  CallStatus status = cuda::copy_to_device(address(0, operand), bytes.data(), size);
  for (int set = 1; set < sets_ && status; ++set)
    status = cuda::copy_on_device(address(set, operand), address(0, operand), size, stream);
  return status;
}

CallStatus DeviceOperands::fill(int operand, cuda::DevicePtr from, const cuda::DeviceStream& stream) const {
  CallStatus status;
  for (int set = 0; set < sets_ && status; ++set)
    status = cuda::copy_on_device(address(set, operand), from, pieces_[operand].bytes, stream);
  return status;
}

CallStatus DeviceOperands::poison(const cuda::DeviceStream& stream) const {
  CallStatus status;
  for (int set = 0; set < sets_; ++set)
    for (size_t i = 0; i < pieces_.size(); ++i)
      if (pieces_[i].poison >= 0 && pieces_[i].bytes > 0 && status)
        status = cuda::fill_bytes(address(set, static_cast<int>(i)),
                                  static_cast<unsigned char>(pieces_[i].poison), pieces_[i].bytes, stream);
  return status;
}

CallStatus DeviceOperands::keep_inouts(const Manifest& manifest, const cuda::DeviceStream& stream) {
  inouts_.clear();
  CallStatus status;
  for (size_t i = 0; i < manifest.args.size() && status; ++i) {
    const ArgInfo& a = manifest.args[i];
    if (a.role != BufferRole::kInOut || a.bytes == 0) continue;
    Kept& kept = inouts_.emplace_back(Kept{.operand = static_cast<int>(i), .memory = {}});
    status = cuda::DeviceMemory::allocate(a.bytes, kept.memory);
    if (status)
      status = cuda::copy_on_device(kept.memory.address(), address(0, kept.operand), a.bytes, stream);
  }
  return status ? stream.synchronize() : status;
}

CallStatus DeviceOperands::restore_inouts(const cuda::DeviceStream& stream) const {
  CallStatus status;
  for (const Kept& kept : inouts_)
    for (int set = 0; set < sets_ && status; ++set)
      status = cuda::copy_on_device(address(set, kept.operand), kept.memory.address(),
                                    pieces_[kept.operand].bytes, stream);
  return status;
}

CallStatus DeviceOperands::download(int operand, std::string& bytes) const {
  bytes.resize(static_cast<size_t>(pieces_[operand].bytes));
  return cuda::copy_to_host(bytes.data(), address(0, operand), pieces_[operand].bytes);
}

CallStatus DeviceOperands::check_guards(std::string& damaged) const {
  CallStatus status;
  std::string gap;
  const auto is_guard = [](char c) { return static_cast<unsigned char>(c) == kGuardByte; };
  for (int set = 0; set < sets_; ++set)
    for_each_gap([&](int operand, int64_t begin, int64_t end) {
      if (!status || !damaged.empty()) return;
      gap.resize(static_cast<size_t>(end - begin));
      status = cuda::copy_to_host(gap.data(), memory_.address() + set * set_bytes_ + begin, end - begin);
      if (!status) return;
      const auto first = std::find_if_not(gap.begin(), gap.end(), is_guard);
      if (first == gap.end()) return;
      // In the second half of a gap it is more likely the operand behind it that was missed.
      const bool before_next = first - gap.begin() >= (end - begin) / 2;
      const size_t blamed = std::clamp<size_t>(operand + (before_next ? 1 : 0), 0, pieces_.size() - 1);
      damaged = pieces_[operand < 0 ? 0 : blamed].name;
    });
  return status;
}

}  // namespace tuner
