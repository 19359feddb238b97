#include "deploy/runtime/function.h"

#include <algorithm>
#include <cstring>

#include "compiler_core/ir/stmt.h"

namespace tuner::runtime {

namespace {

constexpr uintptr_t kAlignment = 64;

bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kAlignment == 0; }

}  // namespace

Result<std::shared_ptr<const Function>> Function::make(const Workload& workload, Choice choice,
                                                       std::shared_ptr<Pool> pool) {
  std::shared_ptr<Function> f(new Function());
  f->key_ = workload.key();
  f->choice_ = std::move(choice);
  f->pool_ = std::move(pool);
  for (const Buffer& b : workload.compute().args) {
    f->operands_.push_back({b->name, b->role, b->dtype, b->shape, b->bytes()});
    f->has_constants_ = f->has_constants_ || b->role == BufferRole::kConstant;
  }
  RETURN_IF_ERROR(f->map_arguments());
  return std::shared_ptr<const Function>(std::move(f));
}

Result<std::shared_ptr<const Function>> Function::make(std::string key, Choice choice,
                                                       std::shared_ptr<Pool> pool) {
  std::shared_ptr<Function> f(new Function());
  f->key_ = std::move(key);
  f->choice_ = std::move(choice);
  f->pool_ = std::move(pool);
  for (const ArgInfo& arg : f->choice_.kernel.manifest().args) {
    if (arg.role == BufferRole::kPacked)
      return failed(f->key_, ": its argument ", arg.name, " is packed, and nobody here knows of what");
    f->operands_.push_back({arg.name, arg.role, arg.dtype, arg.shape, arg.bytes});
  }
  RETURN_IF_ERROR(f->map_arguments());
  return std::shared_ptr<const Function>(std::move(f));
}

int Function::operand_named(const std::string& name) const {
  const auto found = std::ranges::find(operands_, name, &Operand::name);
  return found == operands_.end() ? -1 : static_cast<int>(found - operands_.begin());
}

Status Function::map_arguments() {
  const Manifest& m = choice_.kernel.manifest();
  const auto refuse = [&](const ArgInfo& arg, std::string_view why) {
    return failed(m.entry, ": its argument ", arg.name, " ", why, " of ", key_,
                  "; the kernel is of another release, build it again");
  };
  const auto check = [&](const ArgInfo& arg, int operand) {
    if (operand < 0) return refuse(arg, "is no operand");
    const Operand& o = operands_[static_cast<size_t>(operand)];
    if (o.bytes != arg.bytes || o.dtype != arg.dtype ||
        ((is_result(o.role) || arg.is_result()) && o.role != arg.role))
      return refuse(arg, "is not that operand");
    return Status::ok();
  };
  for (const ArgInfo& arg : m.args) {
    arg_operand_.push_back(arg.role == BufferRole::kPacked ? -1 : operand_named(arg.name));
    if (arg.role != BufferRole::kPacked) RETURN_IF_ERROR(check(arg, arg_operand_.back()));
  }
  for (const ArgInfo& arg : m.pack_args) {
    const bool packed = arg.role == BufferRole::kPacked;
    const auto of_kernel = std::ranges::find(m.args, arg.name, &ArgInfo::name);
    if (packed && (of_kernel == m.args.end() || of_kernel->bytes != arg.bytes))
      return refuse(arg, "is packed for no argument");
    packed_arg_.push_back(packed ? static_cast<int>(of_kernel - m.args.begin()) : -1);
    pack_operand_.push_back(packed ? -1 : operand_named(arg.name));
    if (!packed) RETURN_IF_ERROR(check(arg, pack_operand_.back()));
  }
  for (size_t i = 0; i < m.args.size(); ++i)
    if (m.args[i].role == BufferRole::kPacked &&
        std::ranges::find(packed_arg_, static_cast<int>(i)) == packed_arg_.end())
      return refuse(m.args[i], "is packed by no entry");
  return Status::ok();
}

Result<std::unique_ptr<Packed>> Function::pack(const void* const* operands) const {
  const Manifest& m = choice_.kernel.manifest();
  for (size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i].role == BufferRole::kConstant && operands[i] == nullptr)
      return invalid_argument("operand ", i, " (", operands_[i].name, "): expected the constant's ",
                              operands_[i].bytes, " bytes, found NULL");
  auto packed = std::make_unique<Packed>(*this);
  packed->of_args_.resize(m.args.size());
  const auto copy = [&](int operand) {
    const auto i = static_cast<size_t>(operand);
    AlignedBuffer buffer(operands_[i].bytes);
    std::memcpy(buffer.data(), operands[i], static_cast<size_t>(operands_[i].bytes));
    return buffer;
  };
  for (size_t i = 0; i < m.args.size(); ++i)
    if (arg_operand_[i] >= 0 && operands_[static_cast<size_t>(arg_operand_[i])].role == BufferRole::kConstant)
      packed->of_args_[i] = copy(arg_operand_[i]);
  if (m.pack_args.empty()) return packed;

  std::vector<AlignedBuffer> copies;  // of constants that lie where vectors cannot be loaded from
  std::vector<void*> args;
  for (size_t i = 0; i < m.pack_args.size(); ++i) {
    if (packed_arg_[i] >= 0) {
      AlignedBuffer& out = packed->of_args_[static_cast<size_t>(packed_arg_[i])];
      out = AlignedBuffer(m.pack_args[i].bytes);
      args.push_back(out.data());
    } else if (const void* given = operands[pack_operand_[i]]; aligned(given)) {
      args.push_back(const_cast<void*>(given));  // packing only reads it
    } else {
      copies.push_back(copy(pack_operand_[i]));
      args.push_back(copies.back().data());
    }
  }
  RETURN_IF_ERROR(pool_->call(choice_.kernel, /*packing=*/true, args.data()));
  return packed;
}

Status Function::check(void* const* operands) const {
  const auto begin = [&](size_t i) { return reinterpret_cast<uintptr_t>(operands[i]); };
  const auto end = [&](size_t i) { return begin(i) + static_cast<uintptr_t>(operands_[i].bytes); };
  for (size_t i = 0; i < operands_.size(); ++i) {
    const Operand& o = operands_[i];
    if (o.role == BufferRole::kConstant) continue;
    if (operands[i] == nullptr)
      return invalid_argument("operand ", i, " (", o.name, "): expected ", o.bytes, " bytes, found NULL");
    if (!aligned(operands[i]))
      return invalid_argument("operand ", i, " (", o.name, "): expected an address that is a multiple of ",
                              kAlignment, " (tuner_allocate gives such), found ", operands[i]);
    if (!is_result(o.role)) continue;
    for (size_t j = 0; j < operands_.size(); ++j)
      if (j != i && operands_[j].role != BufferRole::kConstant && begin(i) < end(j) && begin(j) < end(i))
        return invalid_argument("operand ", i, " (", o.name, ") overlaps operand ", j, " (",
                                operands_[j].name, "): an output needs memory of its own");
  }
  return Status::ok();
}

Status Function::run(const Packed* packed, void* const* operands) const {
  if (has_constants_ && packed == nullptr)
    return invalid_argument(key_, " has constant operands: give them to tuner_pack first");
  if (packed != nullptr && !packed->is_of(*this))
    return invalid_argument("these constants were packed for another function than that of ", key_);
  RETURN_IF_ERROR(check(operands));
  const std::vector<ArgInfo>& of_kernel = choice_.kernel.manifest().args;
  constexpr size_t kUsual = 8;
  void* few[kUsual];
  std::vector<void*> many(of_kernel.size() > kUsual ? of_kernel.size() : 0);
  void** const args = many.empty() ? few : many.data();
  for (size_t i = 0; i < of_kernel.size(); ++i) {
    void* const own = packed == nullptr ? nullptr : packed->of_args_[i].data();
    args[i] = own != nullptr ? own : operands[arg_operand_[i]];
  }
  RETURN_IF_ERROR(pool_->call(choice_.kernel, /*packing=*/false, args));
  calls_->fetch_add(1, std::memory_order_relaxed);
  return Status::ok();
}

}  // namespace tuner::runtime
