// Tile intrinsics on tile registers: each is a call of one LLVM intrinsic, which the registry names
// (ir/intrinsic.h). Those on vectors: emit_vector_intrinsic.cpp.
//
//   ldtilecfg                               at the head of what a thread executes: once a call of the kernel
//   for k
//     tileloadd 4, A  tileloadd 6, B        fragments are tile registers, by numbers given ahead
//     tdpbf16ps 0, 4, 6
//   tilestored 0, C
//   tilerelease
//
// Every fragment of the Program has registers of its own, so that one configuration serves all. What the
// target has no instruction for is loops before it comes here (compile.cpp).
#include <functional>
#include <numeric>

#include "compiler_core/arith/meaning.h"
#include "compiler_core/codegen/emitter.h"
#include "compiler_core/ir/visitor.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace tuner::codegen {
namespace {

// Intel's manual, "palette 1": eight registers of up to 16 rows of 64 bytes; bytes a row from byte 16, rows
// from byte 48.
constexpr int64_t kTileRegisters = 8, kMostRows = 16, kMostRowBytes = 64;
constexpr size_t kConfigBytes = 64, kRowBytesAt = 16, kRowsAt = 48;

int64_t product(const std::vector<int64_t>& extents, size_t first) {
  return std::accumulate(extents.begin() + static_cast<std::ptrdiff_t>(first), extents.end(), int64_t{1},
                         std::multiplies<>());
}

bool is_on_vectors(const Intrinsic& i) { return i.fragments == Intrinsic::Fragments::kVectors; }

// True if what runs `s` uses tile registers by itself, not in the tasks of a parallel loop.
bool uses_tiles(const Stmt& s) {
  if (s == nullptr) return false;
  if (is_tile_intrinsic(*s) && !is_on_vectors(*find_intrinsic(s->name))) return true;
  if (s->kind == StmtKind::kFor && s->loop == LoopKind::kParallel) return false;
  bool found = uses_tiles(s->body) || uses_tiles(s->else_body);
  for (const Stmt& child : s->stmts) found = found || uses_tiles(child);
  return found;
}

}  // namespace

// Gives fragments their tile registers, and writes the configuration.
void Emitter::plan_tiles(const Stmt& body) {
  int64_t next = 0;
  bool configures = false;
  std::vector<uint8_t> config(kConfigBytes);
  config[0] = 1;  // palette
  visit(body, [&](const Stmt& s) {
    if (!is_tile_intrinsic(*s)) return;
    const Intrinsic& intrinsic = *find_intrinsic(s->name);
    for (size_t o = 0; o < s->operands.size(); ++o) {
      const IntrinsicOperand& operand = intrinsic.operands[o];
      if (operand.place != IntrinsicOperand::Place::kFragment) continue;
      const Buffer& fragment = s->operands[o]->buffer;
      const int64_t count = fragment->elements() / product(operand.shape, 0);
      if (is_on_vectors(intrinsic)) {
        const auto [at, is_new] =
            tiles_.try_emplace(fragment.get(), Tiles{.first = 0, .rows = 0, .row_bytes = 0, .count = count});
        if (at->second.rows != 0)
          return refuse("fragment ", fragment->name, " is used as tile registers and as vectors");
        continue;
      }
      configures = true;
      const int64_t rows = operand.shape[0],
                    row_bytes = product(operand.shape, 1) * dtype_bytes(operand.dtype);
      const auto [at, is_new] = tiles_.try_emplace(fragment.get(), Tiles{next, rows, row_bytes, count});
      if (at->second.rows != rows || at->second.row_bytes != row_bytes)
        return refuse("fragment ", fragment->name, " is used as tiles of ", at->second.rows, " rows of ",
                      at->second.row_bytes, " bytes and of ", rows, " rows of ", row_bytes);
      if (!is_new) continue;
      if (next + count > kTileRegisters || rows > kMostRows || row_bytes > kMostRowBytes)
        return refuse("fragment ", fragment->name, " takes ", count, " tiles of ", rows, " rows of ",
                      row_bytes, " bytes, and ", next, " are taken; there are ", kTileRegisters, " of ",
                      kMostRows, " rows of ", kMostRowBytes);
      for (; next < at->second.first + count; ++next) {
        config[kRowBytesAt + 2 * static_cast<size_t>(next)] = static_cast<uint8_t>(row_bytes);
        config[kRowsAt + static_cast<size_t>(next)] = static_cast<uint8_t>(rows);
      }
    }
  });
  if (!configures) return;
  llvm::Constant* bytes = llvm::ConstantDataArray::get(module_.getContext(), config);
  tile_config_ = new llvm::GlobalVariable(module_, bytes->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, bytes, "tiles");
  tile_config_->setAlignment(llvm::Align(kConfigBytes));
}

void Emitter::call(llvm::Intrinsic::ID id, const std::vector<llvm::Value*>& arguments) {
  b_.CreateCall(llvm::Intrinsic::getOrInsertDeclaration(&module_, id), arguments);
}

void Emitter::emit_region(const Stmt& body, const std::function<void()>& emit_body) {
  scope_.region.has_tiles = uses_tiles(body);
  configure_tiles();
  emit_body();
  if (scope_.region.has_tiles) call(llvm::Intrinsic::x86_tilerelease, {});
  b_.CreateRetVoid();
}

void Emitter::configure_tiles() {
  if (scope_.region.has_tiles) call(llvm::Intrinsic::x86_ldtilecfg, {tile_config_});
}

// Which tile of its fragment begins at `element`.
int64_t Emitter::tile_number(const IntrinsicOperand& operand, const ExprNode& element) {
  const std::vector<int64_t>& shape = element.buffer->shape;
  const size_t first = shape.size() - operand.shape.size();
  int64_t number = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t tile = d < first ? 1 : operand.shape[d - first];
    int64_t index = 0;
    if (!is_const_int(element.operands[d], &index))
      refuse("fragment ", element.buffer->name, " is indexed by ", to_text(element.operands[d]),
             ", which is not a constant; unroll the loops that index it");
    number = number * (shape[d] / tile) + index / tile;
  }
  return number;
}

void Emitter::emit_intrinsic(const StmtNode& s) {
  if (!is_tile_intrinsic(s)) return refuse("intrinsic ", s.name, " is a GPU statement");
  if (lanes_.var != nullptr) return refuse("intrinsic ", s.name, " stands inside a vectorized loop");
  const Intrinsic& intrinsic = *find_intrinsic(s.name);
  if (is_on_vectors(intrinsic)) return emit_vector_intrinsic(s, intrinsic);
  std::vector<llvm::Value*> arguments;
  for (size_t o = 0; o < s.operands.size(); ++o) {
    const ExprNode& element = *s.operands[o];
    if (intrinsic.operands[o].place == IntrinsicOperand::Place::kFragment) {
      const int64_t number =
          tiles_.at(element.buffer.get()).first + tile_number(intrinsic.operands[o], element);
      arguments.push_back(b_.getInt8(static_cast<uint8_t>(number)));
      continue;
    }
    const std::vector<int64_t>& shape = element.buffer->shape;
    const size_t first = shape.size() - intrinsic.operands[o].shape.size();
    arguments.push_back(
        addresses_.pointer(element.buffer, addresses_.analyze(element.buffer, element.operands)));
    arguments.push_back(int_of(product(shape, first + 1) * dtype_bytes(element.buffer->dtype)));
  }
  const llvm::Intrinsic::ID id = llvm::Intrinsic::lookupIntrinsicID(intrinsic.llvm);
  CHECK(id != llvm::Intrinsic::not_intrinsic) << intrinsic.name << ": LLVM has no " << intrinsic.llvm;
  call(id, arguments);
}

}  // namespace tuner::codegen
