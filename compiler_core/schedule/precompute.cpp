// precompute: stages that read nothing but constants run once, ahead, in the packing entry.
#include <algorithm>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

// The root of a Program: whole nests one after the other, and the buffers they share.
struct Root {
  std::vector<Buffer> shared;  // in the order they are allocated
  std::vector<Stmt> nests;

  static Root of(const Stmt& body) {
    Root root;
    root.add(body);
    return root;
  }
  Stmt body() const {
    Stmt s = make_seq(nests);
    for (auto b = shared.rbegin(); b != shared.rend(); ++b) s = make_allocate(*b, std::move(s));
    return s;
  }
  bool has(const Buffer& buffer) const {
    return std::find(shared.begin(), shared.end(), buffer) != shared.end();
  }

 private:
  void add(const Stmt& s) {
    if (s->kind == StmtKind::kAllocate) {
      shared.push_back(s->buffer);
      add(s->body);
    } else if (s->kind == StmtKind::kSeq) {
      for (const Stmt& child : s->stmts) add(child);
    } else {
      nests.push_back(s);
    }
  }
};

bool contains(const std::vector<Buffer>& buffers, const Buffer& b) {
  return std::find(buffers.begin(), buffers.end(), b) != buffers.end();
}

// What goes to the packing entry for one tensor, and what stays.
struct Parting {
  std::vector<Buffer> moved;  // the tensor first, then what only it needs
  std::vector<Stmt> ahead, left;
  Buffer constant;  // what all of it is made of

  Status find(const Program& program, const Root& root, const Buffer& tensor) {
    moved = {tensor};
    std::vector<bool> goes(root.nests.size(), false);
    for (size_t next = 0; next < moved.size(); ++next) {
      for (size_t n = 0; n < root.nests.size(); ++n) {
        if (goes[n] || !stores_to(root.nests[n], moved[next])) continue;
        goes[n] = true;
        RETURN_IF_ERROR(follow(program, root, root.nests[n]));
      }
    }
    for (size_t n = 0; n < root.nests.size(); ++n) (goes[n] ? ahead : left).push_back(root.nests[n]);
    for (const Buffer& b : moved)
      for (const Stmt& s : left)
        if (b != tensor && reads_from(s, b))
          return invalid_config("it reads ", b->name, ", which is read elsewhere too");
    if (constant == nullptr) return invalid_config("it reads no constant");
    return Status::ok();
  }

 private:
  Status follow(const Program& program, const Root& root, const Stmt& nest) {
    Status status;
    visit_exprs(nest, [&](const Expr& e) {
      if (e->kind != ExprKind::kLoad || !status.is_ok()) return;
      const Buffer& b = e->buffer;
      if (b->role == BufferRole::kConstant) {
        if (constant != nullptr && constant != b)
          status = invalid_config("it reads two constants, ", constant->name, " and ", b->name);
        constant = b;
      } else if (contains(program.args, b)) {
        status = invalid_config("it reads ", b->name, ", which is an argument (", buffer_role_name(b->role),
                                "), not a constant");
      } else if (root.has(b) && !contains(moved, b)) {
        moved.push_back(b);
      }
    });
    return status;
  }
};

}  // namespace

void Schedule::precompute(const Tensor& t) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call = str("precompute(", buffer == nullptr ? "(none)" : buffer->name, ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr) return invalid_config("the tensor handle is empty");
    if (buffer->role != BufferRole::kIntermediate)
      return invalid_config(buffer->name, " is an argument (", buffer_role_name(buffer->role), ")");
    const Root root = Root::of(program_.body);
    if (!root.has(buffer))
      return invalid_config(buffer->name,
                            " is computed inside the loops of its reader; precompute before compute_at");
    Parting parting;
    RETURN_IF_ERROR(parting.find(program_, root, buffer));
    if (parting.left.empty()) return invalid_config("nothing reads ", buffer->name);

    auto node = std::make_shared<BufferNode>(*buffer);
    node->scope = MemoryScope::kGlobal;
    node->role = BufferRole::kPacked;
    const Buffer packed = std::move(node);
    Root ahead{.nests = parting.ahead}, left{.nests = parting.left};
    for (const Buffer& b : root.shared) {
      if (b == buffer) continue;
      (contains(parting.moved, b) ? ahead : left).shared.push_back(b);
    }

    Program packing;
    if (program_.packing != nullptr)
      packing = *program_.packing;
    else
      packing.name = program_.name + "_pack";
    const auto first_packed = std::find_if(packing.args.begin(), packing.args.end(),
                                           [](const Buffer& b) { return b->role == BufferRole::kPacked; });
    if (!contains(packing.args, parting.constant)) packing.args.insert(first_packed, parting.constant);
    packing.args.push_back(packed);
    packing.body = make_seq({packing.body, replace_buffers(ahead.body(), {{buffer, packed}})});
    program_.packing = std::make_shared<const Program>(std::move(packing));

    program_.body = replace_buffers(left.body(), {{buffer, packed}});
    const auto place = std::find(program_.args.begin(), program_.args.end(), parting.constant);
    if (reads_from(program_.body, parting.constant))
      program_.args.insert(place + 1, packed);
    else
      *place = packed;
    moved(buffer, packed);
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
