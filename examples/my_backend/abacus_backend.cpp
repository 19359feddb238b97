// The back end of the device: scheduled Programs become its instructions, as text.
//
// After lower() a Program that it takes consists of serial loops around vectorized ones of exactly LANES
// iterations, each over one store. Register buffers are the machine's registers; a vector of one is a
// register. Everything else is refused with InvalidConfig, as a real compiler refuses what its device cannot
// do.
#include "compiler_core/backend.h"

#include <algorithm>
#include <map>
#include <optional>

#include "abacus.h"
#include "abacus_device_text.h"  // generated: kDeviceText is abacus_device.h
#include "compiler_core/lower/lower.h"
#include "compiler_core/runtime/cpu_hardware.h"

namespace abacus {
namespace {

using namespace tuner;

constexpr int kRegisters = 32;
constexpr int64_t kMostStores = 4096;      // of an unrolled Program
constexpr char kToolchain[] = "abacus 1";  // grows when generated code changes

// base + sum of coefficient * variable.
struct Affine {
  int64_t base = 0;
  std::map<const VarNode*, int64_t> coefficients;

  void add(const Affine& other, int64_t factor) {
    base += factor * other.base;
    for (const auto& [var, coefficient] : other.coefficients) coefficients[var] += factor * coefficient;
  }
};

std::optional<Affine> affine_of(const Expr& e) {
  Affine out;
  if (is_const_int(e, &out.base)) return out;
  if (e->kind == ExprKind::kVar) {
    out.coefficients[e->var.get()] = 1;
    return out;
  }
  if (e->kind != ExprKind::kBinary) return std::nullopt;
  const std::optional<Affine> a = affine_of(e->operands[0]), b = affine_of(e->operands[1]);
  if (!a || !b) return std::nullopt;
  if (e->binary_op == BinaryOp::kAdd || e->binary_op == BinaryOp::kSub) {
    out.add(*a, 1);
    out.add(*b, e->binary_op == BinaryOp::kAdd ? 1 : -1);
    return out;
  }
  if (e->binary_op != BinaryOp::kMul || (!a->coefficients.empty() && !b->coefficients.empty()))
    return std::nullopt;
  if (a->coefficients.empty())
    out.add(*b, a->base);
  else
    out.add(*a, b->base);
  return out;
}

// An element of a row-major buffer.
Result<Affine> place(const Buffer& buffer, const std::vector<Expr>& indices) {
  Affine at;
  for (size_t d = 0; d < indices.size(); ++d) {
    const std::optional<Affine> index = affine_of(indices[d]);
    if (!index) return invalid_config("abacus: ", buffer->name, "[", to_text(indices[d]), "]: not affine");
    for (auto& [var, coefficient] : at.coefficients) coefficient *= buffer->shape[d];
    at.base *= buffer->shape[d];
    at.add(*index, 1);
  }
  return at;
}

class Emitter {
 public:
  Emitter(const Program& program, int64_t lanes) : lanes_(lanes) {
    for (size_t i = 0; i < program.args.size(); ++i) args_[program.args[i].get()] = static_cast<int>(i);
    text_ = str("abacus 1 lanes ", lanes, " args ", program.args.size(), "\n");
  }

  Result<std::string> emit(const Stmt& body) && {
    if (body != nullptr) RETURN_IF_ERROR(statement(body));
    return std::move(text_);
  }

 private:
  Status statement(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kSeq:
        for (const Stmt& each : s->stmts) RETURN_IF_ERROR(statement(each));
        return Status::ok();
      case StmtKind::kAllocate:
        return allocate(*s);
      case StmtKind::kFor:
        return s->loop == LoopKind::kVectorized ? vector(*s) : loop(*s);
      default:
        return invalid_config("abacus: only loops and vector stores, found \"",
                              to_text(s).substr(0, to_text(s).find('\n')), "\"");
    }
  }

  Status loop(const StmtNode& s) {
    if (s.loop != LoopKind::kSerial)
      return invalid_config("abacus: a ", loop_kind_name(s.loop), " loop over ", s.var->name);
    loops_.push_back(s.var.get());
    if (loops_.size() > 16) return invalid_config("abacus: more than 16 loops in one another");
    line(str("loop ", s.extent));
    RETURN_IF_ERROR(statement(s.body));
    line("end");
    loops_.pop_back();
    return Status::ok();
  }

  Status allocate(const StmtNode& s) {
    const int first = next_;
    if (s.buffer->scope != MemoryScope::kRegister || s.buffer->elements() % lanes_ != 0)
      return invalid_config("abacus: ", s.buffer->name, " of ", s.buffer->elements(),
                            " elements: the device has registers of ", lanes_, " and no memory of its own");
    registers_[s.buffer.get()] = first;
    next_ += static_cast<int>(s.buffer->elements() / lanes_);
    RETURN_IF_ERROR(statement(s.body));
    next_ = first;
    return Status::ok();
  }

  // One store, for all lanes at once.
  Status vector(const StmtNode& s) {
    if (s.extent != lanes_ || s.body->kind != StmtKind::kStore)
      return invalid_config("abacus: a vectorized loop of ", s.extent, " over ", s.var->name, ", expected ",
                            lanes_, " around one store");
    lane_ = s.var.get();
    const StmtNode& store = *s.body;
    ASSIGN_OR_RETURN(Affine at, place(store.buffer, store.indices));
    if (at.coefficients[lane_] != 1)
      return invalid_config("abacus: ", store.buffer->name, " is stored with gaps");
    at.coefficients.erase(lane_);
    if (registers_.contains(store.buffer.get())) {
      ASSIGN_OR_RETURN(const int into, register_of(store.buffer, at));
      return assign(into, store.value);
    }
    ASSIGN_OR_RETURN(const std::string where, address(at));
    ASSIGN_OR_RETURN(const int value, evaluate(store.value, next_));
    line(str("store r", value, " arg", args_.at(store.buffer.get()), " ", where));
    return Status::ok();
  }

  // A multiply-add where the sum is the register itself; else the value, moved.
  Status assign(int into, const Expr& value) {
    if (value->kind == ExprKind::kBinary && value->binary_op == BinaryOp::kAdd) {
      const Expr &sum = value->operands[0], &product = value->operands[1];
      if (product->kind == ExprKind::kBinary && product->binary_op == BinaryOp::kMul) {
        ASSIGN_OR_RETURN(const int old, evaluate(sum, next_));
        if (old == into) {
          ASSIGN_OR_RETURN(const int a, evaluate(product->operands[0], next_));
          ASSIGN_OR_RETURN(const int b, evaluate(product->operands[1], std::max(next_, a + 1)));
          line(str("fma r", into, " r", a, " r", b));
          return Status::ok();
        }
      }
    }
    if (value->kind == ExprKind::kFloatImm) {
      line(str("set r", into, " ", value->float_value));
      return Status::ok();
    }
    ASSIGN_OR_RETURN(const int from, evaluate(value, next_));
    if (from != into) line(str("move r", into, " r", from));
    return Status::ok();
  }

  // The register that has the value; new ones are taken from `free` on.
  Result<int> evaluate(const Expr& e, int free) {
    if (free >= kRegisters) return invalid_config("abacus: needs more than ", kRegisters, " registers");
    if (e->kind == ExprKind::kFloatImm) {
      line(str("set r", free, " ", e->float_value));
      return free;
    }
    if (e->kind == ExprKind::kLoad) return load(e, free);
    if (e->kind != ExprKind::kBinary || e->dtype != DType::kFloat32)
      return invalid_config("abacus: has no instruction for ", to_text(e));
    static const std::map<BinaryOp, std::string_view> kNames = {{BinaryOp::kAdd, "add"},
                                                                {BinaryOp::kSub, "sub"},
                                                                {BinaryOp::kMul, "mul"},
                                                                {BinaryOp::kMin, "min"},
                                                                {BinaryOp::kMax, "max"}};
    const auto name = kNames.find(e->binary_op);
    if (name == kNames.end()) return invalid_config("abacus: has no instruction for ", to_text(e));
    ASSIGN_OR_RETURN(const int a, evaluate(e->operands[0], free));
    ASSIGN_OR_RETURN(const int b, evaluate(e->operands[1], std::max(free, a + 1)));
    line(str(name->second, " r", free, " r", a, " r", b));
    return free;
  }

  Result<int> load(const Expr& e, int free) {
    ASSIGN_OR_RETURN(Affine at, place(e->buffer, e->operands));
    const int64_t stride = at.coefficients[lane_];
    at.coefficients.erase(lane_);
    if (registers_.contains(e->buffer.get())) {
      if (stride != 1) return invalid_config("abacus: ", e->buffer->name, " is read across its registers");
      return register_of(e->buffer, at);
    }
    const auto arg = args_.find(e->buffer.get());
    if (arg == args_.end())
      return Status(StatusCode::kInternal, str("abacus: ", e->buffer->name, " is nowhere"));
    ASSIGN_OR_RETURN(const std::string where, address(at));
    line(str("load r", free, " arg", arg->second, " ", stride, " ", where));
    return free;
  }

  Result<int> register_of(const Buffer& buffer, const Affine& at) const {
    const bool constant = std::all_of(at.coefficients.begin(), at.coefficients.end(),
                                      [](const auto& each) { return each.second == 0; });
    if (!constant || at.base % lanes_ != 0)
      return invalid_config("abacus: ", buffer->name, " is a register, and its index changes in a loop");
    const int found = registers_.at(buffer.get()) + static_cast<int>(at.base / lanes_);
    if (found >= kRegisters) return invalid_config("abacus: needs more than ", kRegisters, " registers");
    return found;
  }

  // In the order of the loops: the same Program is the same text in every process, or nobody could tell
  // whether what is shipped is what was measured.
  Result<std::string> address(const Affine& at) const {
    for (const auto& [var, coefficient] : at.coefficients)
      if (coefficient != 0 && std::find(loops_.begin(), loops_.end(), var) == loops_.end())
        return Status(StatusCode::kInternal, str("abacus: no loop over ", var->name, " is around"));
    std::string text = str(at.base);
    for (size_t depth = 0; depth < loops_.size(); ++depth)
      if (const auto found = at.coefficients.find(loops_[depth]);
          found != at.coefficients.end() && found->second != 0)
        text += str(" ", found->second, "*c", depth);
    return text;
  }

  void line(const std::string& instruction) { text_ += instruction + "\n"; }

  const int64_t lanes_;
  std::map<const BufferNode*, int> args_, registers_;  // number of an argument; first register of a buffer
  std::vector<const VarNode*> loops_;
  const VarNode* lane_ = nullptr;
  int next_ = 0;  // free registers begin here
  std::string text_;
};

Result<std::string> assemble(const Program& program, const Target& target) {
  if (program.packing != nullptr) return invalid_config("abacus: constants cannot be packed ahead");
  for (const Buffer& arg : program.args)
    if (arg->dtype != DType::kFloat32) return invalid_config("abacus: ", arg->name, " is not float32");
  ASSIGN_OR_RETURN(const Program lowered, lower(program, kMostStores));
  return Emitter(program, lanes_of(target)).emit(lowered.body);
}

// A string literal of C, a line of the text a line.
std::string c_string(const std::string& text) {
  std::string out = "    \"";
  for (const char c : text) out += c == '\n' ? "\\n\"\n    \"" : std::string(1, c);
  return out + "\"";
}

// The kernel as a C function beside the device's interpreter.
std::string c_header(const std::string& function, const std::string& about, const std::string& text) {
  return str("/* ", about, " */\n#pragma once\n#include \"abacus_device.h\"\n\n",
             "/* 0, or the number of the line that the device does not take. */\n", "static inline int64_t ",
             function, "(void* const* args) {\n  static const char text[] =\n", c_string(text),
             ";\n  abacus_program program;\n",
             "  const int64_t wrong = abacus_parse(text, &program);\n  if (wrong != 0) return wrong;\n",
             "  abacus_run(&program, args);\n  abacus_free(&program);\n  return 0;\n}\n");
}

class AbacusBackend final : public Backend {
 public:
  const TargetFamily& family() const override { return abacus::family(); }

  Status available() const override { return Status::ok(); }
  std::string toolchain() const override { return kToolchain; }
  // The device is an interpreter, so every host has it, with as many lanes as somebody wants; one is offered.
  std::vector<std::string> targets_of_host(std::string_view /*device*/) const override {
    return {"abacus -lanes=8"};
  }
  std::string hardware_here(const Target& target) const override {
    return runs_here(target) ? hardware_fingerprint() : std::string();
  }
  Status runs_here(const Target& target) const override {
    if (lanes_of(target) == 8) return Status::ok();
    return invalid_argument("the device here has 8 lanes");
  }

  Result<Artifact> compile(const Program& program, const Target& target,
                           const std::string& /*cache*/) const override {
    Artifact artifact;
    ASSIGN_OR_RETURN(artifact.binary, assemble(program, target));
    Manifest& m = artifact.manifest;
    m.kind = kKind;
    m.entry = program.name;
    m.args = argument_infos(program.args);
    m.target = target.name();
    m.toolchain = kToolchain;
    m.digest = artifact_digest(artifact);
    return artifact;
  }
  std::span<const CodeForm> forms() const override {
    static constexpr CodeForm kForms[] = {{"abacus", "#", ""}};
    return kForms;
  }
  Result<std::string> text(std::string_view /*form*/, const Program& program,
                           const Target& target) const override {
    return assemble(program, target);
  }

  Result<ShippedKernel> ship(const Program& program, const Target& target,
                             const ShipRequest& request) const override {
    ASSIGN_OR_RETURN(Artifact artifact,
                     compile(under_name(program, "tuner_" + request.function), target, {}));
    ShippedKernel shipped{.manifest = std::move(artifact.manifest), .alignment_bytes = 4};
    const std::string base = "abacus/" + request.function;
    shipped.files = {{"header", base + ".h", c_header(request.function, request.about, artifact.binary)},
                     {"program", base + ".abacus", artifact.binary},
                     {"device", "abacus/abacus_device.h", kDeviceText}};
    return shipped;
  }
  std::span<const std::string_view> identifier_endings() const override {
    static constexpr std::string_view kEndings[] = {""};
    return kEndings;
  }
};

const AbacusBackend backend;
const RegisterBackend registered(backend);

}  // namespace
}  // namespace abacus
