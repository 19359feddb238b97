#include "tuner/bundle/c_signature.h"

#include <algorithm>

#include "compiler_core/base/c_names.h"

namespace tuner {
namespace {

constexpr int64_t kAlignment = 64;

// A buffer's name as a C identifier that no function of the header uses for something else.
std::string identifier(const std::string& name) {
  const std::string c_name = as_c_name(name);
  return c_name == "runtime" || c_name == "workspace" || c_name == "pointers" ? c_name + "_" : c_name;
}

size_t index_of(const std::vector<ArgInfo>& args, const std::string& name) {
  const auto found = std::ranges::find(args, name, &ArgInfo::name);
  CHECK(found != args.end()) << "the kernel has an argument " << name << " that its workload has not";
  return static_cast<size_t>(found - args.begin());
}

// The packed bytes of the constants, in the order of the operands, filled one piece after the other.
class PackedBytes {
 public:
  explicit PackedBytes(const std::vector<ArgInfo>& operands) {
    for (const ArgInfo& o : operands)
      if (o.role == BufferRole::kConstant) areas_.push_back({o.name, 0});
  }
  // The constant whose bytes hold the buffer `name` of the compiled code: "b.packed" is of b. Others, as
  // "u.packed" of a transform, are of the first constant that has nothing yet. Any choice is right, since
  // packing and call make the same.
  size_t constant_of(const std::string& name) const {
    CHECK(!areas_.empty()) << name << " is packed of no constant";
    const auto named =
        std::ranges::find_if(areas_, [&](const Area& a) { return name.starts_with(a.constant + "."); });
    if (named != areas_.end()) return static_cast<size_t>(named - areas_.begin());
    const auto free = std::ranges::find(areas_, 0, &Area::bytes);
    return free == areas_.end() ? 0 : static_cast<size_t>(free - areas_.begin());
  }
  // Where so many more bytes of that constant begin.
  int64_t add(size_t constant, int64_t bytes) {
    Area& area = areas_[constant];
    const int64_t begin = (area.bytes + kAlignment - 1) / kAlignment * kAlignment;
    area.bytes = begin + bytes;
    return begin;
  }
  size_t count() const { return areas_.size(); }
  size_t index(const std::string& constant) const {
    return static_cast<size_t>(std::ranges::find(areas_, constant, &Area::constant) - areas_.begin());
  }
  // At least a byte: programs allocate it.
  int64_t bytes(size_t constant) const { return std::max<int64_t>(areas_[constant].bytes, 1); }

 private:
  struct Area {
    std::string constant;
    int64_t bytes;
  };
  std::vector<Area> areas_;
};

ArgInfo packed_arg(const std::string& constant, int64_t bytes) {
  return {.name = identifier(constant) + "_packed",
          .role = BufferRole::kPacked,
          .dtype = DType::kUInt8,
          .shape = {bytes},
          .layout = "",
          .bytes = bytes};
}

}  // namespace

CSignature c_signature(const Workload& workload, const Manifest& manifest) {
  CSignature s;
  for (const Buffer& b : workload.compute().args)
    s.operands.push_back({.name = b->name,
                          .role = b->role,
                          .dtype = b->dtype,
                          .shape = b->shape,
                          .layout = b->layout,
                          .bytes = b->bytes()});
  PackedBytes packed(s.operands);
  // Of each constant, by its place among them: the argument of the call that it is.
  std::vector<size_t> packed_at;
  for (size_t i = 0; i < s.operands.size(); ++i)
    if (s.operands[i].role == BufferRole::kConstant) packed_at.push_back(i);

  for (const ArgInfo& arg : manifest.args) {
    // A template that packs nothing may call a constant an input.
    const bool plain = arg.role != BufferRole::kPacked;
    if (plain) {
      const size_t operand = index_of(s.operands, arg.name);
      if (s.operands[operand].role != BufferRole::kConstant) {
        s.entry.push_back({operand, 0});
        continue;
      }
    }
    const size_t constant = plain ? packed.index(arg.name) : packed.constant_of(arg.name);
    const int64_t offset = packed.add(constant, arg.bytes);
    s.entry.push_back({packed_at[constant], offset});
    if (plain) s.copies.push_back({constant, {packed.count() + constant, offset}});
  }
  for (const ArgInfo& arg : manifest.pack_args) {
    if (arg.role != BufferRole::kPacked) {
      s.pack.push_back({packed.index(arg.name), 0});
      continue;
    }
    const ArgPlace& of_call = s.entry[index_of(manifest.args, arg.name)];
    const size_t constant =
        static_cast<size_t>(std::ranges::find(packed_at, of_call.arg) - packed_at.begin());
    s.pack.push_back({packed.count() + constant, of_call.offset});
  }

  s.args = s.operands;
  for (ArgInfo& operand : s.operands) operand.name = identifier(operand.name);
  for (ArgInfo& arg : s.args) arg.name = identifier(arg.name);
  for (size_t c = 0; c < packed.count(); ++c) {
    const ArgInfo& constant = s.operands[packed_at[c]];
    s.args[packed_at[c]] = packed_arg(constant.name, packed.bytes(c));
    s.pack_args.push_back(constant);
  }
  for (const size_t at : packed_at) s.pack_args.push_back(s.args[at]);
  return s;
}

}  // namespace tuner
