#include "tuner/model/constant_packer.h"

#include <cstring>

#include "compiler_core/codegen/compile.h"
#include "compiler_core/runtime/tuner_kernel.h"

namespace tuner {
namespace {

constexpr char kPackingName[] = "packing";

std::byte* at(const AlignedBuffer& buffer, int64_t offset) { return buffer.as<std::byte>() + offset; }

// The constant itself where it is aligned, else a copy in `copies`.
void* aligned(std::string_view bytes, std::vector<AlignedBuffer>& copies) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 64 == 0) return const_cast<char*>(bytes.data());
  copies.emplace_back(static_cast<int64_t>(bytes.size()));
  std::memcpy(copies.back().data(), bytes.data(), bytes.size());
  return copies.back().data();
}

}  // namespace

Result<const Kernel*> ConstantPacker::packing_of(size_t kernel) {
  std::optional<Kernel>& loaded = packing_[kernel];
  if (!loaded) {
    const BundleKernel& k = kernels_[kernel];
    CHECK(k.packing != nullptr) << k.function << " packs constants by nothing";
    // Its arguments are those of the kernel's packing entry, constants first.
    const bool is_here = !k.stands_alone() && runs_here(k.task.target).is_ok();
    const Target target = is_here ? k.task.target : host_target();
    ASSIGN_OR_RETURN(const Artifact artifact, compile(under_name(*k.packing, kPackingName), target));
    ASSIGN_OR_RETURN(loaded, Kernel::load(artifact));
  }
  return &*loaded;
}

Result<std::vector<AlignedBuffer>> ConstantPacker::pack(size_t kernel,
                                                        const std::vector<std::string_view>& constants) {
  const CSignature& s = signatures_[kernel];
  const size_t count = s.pack_args.size() / 2;
  CHECK(constants.size() == count) << kernels_[kernel].function << " takes " << count << " constants, not "
                                   << constants.size();
  std::vector<AlignedBuffer> packed, copies;
  for (size_t c = 0; c < count; ++c) {
    CHECK(static_cast<int64_t>(constants[c].size()) == s.pack_args[c].bytes)
        << kernels_[kernel].function << ": " << s.pack_args[c].name << " has " << constants[c].size()
        << " bytes";
    packed.emplace_back(s.pack_args[count + c].bytes);
  }
  for (const CSignature::Copy& copy : s.copies)
    std::memcpy(at(packed[copy.to.arg - count], copy.to.offset), constants[copy.from].data(),
                constants[copy.from].size());
  if (s.pack.empty()) return packed;
  std::vector<void*> args;
  for (const ArgPlace& place : s.pack)
    args.push_back(place.arg < count ? aligned(constants[place.arg], copies)
                                     : at(packed[place.arg - count], place.offset));
  ASSIGN_OR_RETURN(const Kernel* const packing, packing_of(kernel));
  const AlignedBuffer workspace(packing->workspace_bytes(1));
  RETURN_IF_ERROR(packing->call(args.data(), tuner_serial_runtime(workspace.data())));
  return packed;
}

}  // namespace tuner
