#include "compiler_core/graph/fragment.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler_core/graph/families.h"
#include "compiler_core/graph/fragment_tables.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/te/wide_floats.h"

namespace tuner::graph {
namespace {

// Elements of a constant that text holds in any case, and at most.
constexpr int64_t kFewElements = 16, kMostElements = 1024;

// Makes the fragment node by node, from its result back, so that its order follows from what is read alone.
class Collector {
 public:
  Collector(Graph& source, std::span<const size_t> nodes) : source_(source), nodes_(nodes) {
    for (const size_t n : nodes)
      for (const ValueId out : source.nodes[n].outputs)
        if (out != kNoValue) makers_[out] = n;
  }

  Result<Fragment> collect(ValueId result) {
    RETURN_IF_ERROR(visit(result));
    // A number for each input first, then for each node: values move to their places.
    out_.graph.name = "fragment";
    out_.graph.inputs = inputs_;
    out_.graph.outputs = {known_.at(result)};
    out_.graph.output_names = {"out"};
    return std::move(out_);
  }

 private:
  ValueId add(const Value& value) {
    out_.graph.values.push_back(value);
    return out_.graph.values.size() - 1;
  }

  // The value and what it is made of.
  Status visit(ValueId id) {
    if (id == kNoValue || known_.contains(id)) return Status::ok();
    const auto maker = makers_.find(id);
    if (maker == makers_.end()) {
      const Value& value = source_[id];
      const bool inside = value.constant && value.type.elements() <= kFewElements;
      known_[id] = add({"", value.type, inside ? value.constant : std::nullopt});
      if (!inside) take_input(id);
      return Status::ok();
    }
    const Node node = source_.nodes[maker->second];
    for (const ValueId in : node.inputs) RETURN_IF_ERROR(visit(in));
    const auto made = [&](ValueId v) { return v == kNoValue ? kNoValue : known_.at(v); };
    Node copy{.name = "", .op = node.op, .operator_set = node.operator_set, .attributes = node.attributes};
    for (const ValueId in : node.inputs) copy.inputs.push_back(made(in));
    copy.outputs.assign(node.outputs.size(), kNoValue);
    RETURN_IF_ERROR(settle(node, copy));
    known_[id] = add({"", source_[id].type, std::nullopt});
    copy.outputs[static_cast<size_t>(std::ranges::find(node.outputs, id) - node.outputs.begin())] =
        known_[id];
    out_.graph.nodes.push_back(std::move(copy));
    return Status::ok();
  }

  void take_input(ValueId id) {
    inputs_.push_back(known_[id]);
    out_.inputs.push_back(id);
  }

  // Constants that types depend on become part of the fragment, however many elements they have.
  Status settle(const Node& node, const Node& copy) {
    if (infer(out_.graph, copy)) return Status::ok();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || !source_[node.inputs[i]].constant) continue;
      Value& value = out_.graph.values[copy.inputs[i]];
      if (value.constant || value.type.elements() > kMostElements) continue;
      value.constant = source_[node.inputs[i]].constant;
      std::erase(inputs_, copy.inputs[i]);
      std::erase(out_.inputs, node.inputs[i]);
      if (infer(out_.graph, copy)) return Status::ok();
    }
    return infer(out_.graph, copy).status();
  }

  Graph& source_;
  std::span<const size_t> nodes_;
  std::map<ValueId, size_t> makers_;
  std::map<ValueId, ValueId> known_;  // of the source, here
  std::vector<ValueId> inputs_;
  Fragment out_;
};

// A constant of few numbers as a stage, which schedules put where it is read.
Buffer written_out(te::Builder& builder, const std::string& name, const Value& value) {
  const std::vector<double> numbers = value.constant->numbers(value.type.dtype);
  return builder.compute(
      name, value.type.shape,
      [&](const te::Indices& i) {
        const Expr at = flat_index(i, value.type.shape);
        Expr element = number(value.type.dtype, numbers.back());
        for (size_t k = numbers.size() - 1; k-- > 0;)
          element = select(equals(at, Expr(static_cast<int64_t>(k))), number(value.type.dtype, numbers[k]),
                           element);
        return element;
      },
      BufferRole::kIntermediate, {}, value.type.dtype);
}

// Stages that nobody reads go: of operands that only decided shapes.
Stmt without_unread(const Stmt& body, const Buffer& out) {
  std::set<Buffer> read{out};
  for (size_t before = 0; before != read.size();) {
    before = read.size();
    visit(body, [&](const Stmt& s) {
      if (s->kind != StmtKind::kStore || !read.contains(s->buffer)) return;
      visit_exprs(s, [&](const Expr& e) {
        if (e->kind == ExprKind::kLoad) read.insert(e->buffer);
      });
    });
  }
  const std::function<Stmt(const Stmt&)> kept = [&](const Stmt& s) -> Stmt {
    if (s == nullptr || (s->kind == StmtKind::kStore && !read.contains(s->buffer))) return nullptr;
    if (s->kind == StmtKind::kAllocate && !read.contains(s->buffer)) return kept(s->body);
    return map_children(
        s, [](const Expr& e) { return e; }, kept);
  };
  return kept(body);
}

struct Tables {
  std::vector<MathWriter::Table> all;
};

// Operands that are the same in every run, so that a template may pack them ahead: weights of steps.
std::set<ValueId> packed_operands(const Graph& fragment) {
  std::set<ValueId> packed;
  for (const Node& node : fragment.nodes)
    if (node.op == "tuner.Recurrence" && Use(fragment, node).integer("packed", 0) != 0)
      packed.insert(node.inputs[1]);
  return packed;
}

Program written(const Graph& fragment, Tables& tables) {
  te::Builder builder("program", fragment[fragment.outputs[0]].type.dtype);
  const std::set<ValueId> packed = packed_operands(fragment);
  std::map<ValueId, Buffer> buffers;
  std::vector<Buffer> inputs;
  for (size_t k = 0; k < fragment.inputs.size(); ++k) {
    const TensorType& type = fragment[fragment.inputs[k]].type;
    const std::string name = str("in", k);
    buffers[fragment.inputs[k]] = packed.contains(fragment.inputs[k])
                                      ? builder.constant(name, type.shape, type.dtype)
                                      : builder.input(name, type.shape, type.dtype);
    inputs.push_back(buffers[fragment.inputs[k]]);
  }
  for (size_t n = 0; n < fragment.nodes.size(); ++n) {
    const Node& node = fragment.nodes[n];
    const Operator& row = *find_operator(node.op);
    std::vector<Buffer> in;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue || row.kind == OperatorKind::kShape) {
        in.push_back(nullptr);
        continue;
      }
      Buffer& buffer = buffers[id];
      if (buffer == nullptr) buffer = written_out(builder, str("c", id), fragment[id]);
      in.push_back(buffer);
    }
    const bool is_last = n + 1 == fragment.nodes.size();
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (const ValueId id : node.outputs) {
      names.push_back(id == kNoValue ? "" : is_last ? "out" : str("v", n));
      types.push_back(id == kNoValue ? TensorType() : fragment[id].type);
    }
    MathWriter writer(builder, std::move(in), std::move(names), std::move(types),
                      is_last ? BufferRole::kOutput : BufferRole::kIntermediate);
    writer.make_tables_inputs();
    row.math(Use(fragment, node), writer);
    for (size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != kNoValue) buffers[node.outputs[o]] = writer.results()[o];
    for (const MathWriter::Table& table : writer.tables()) {
      inputs.push_back(table.buffer);
      tables.all.push_back(table);
    }
  }
  Program program = builder.finish();
  program.body = without_unread(program.body, program.args.back());
  // In the order of the fragment's inputs, whenever they were declared.
  inputs.push_back(program.args.back());
  program.args = std::move(inputs);
  return te::with_wide_floats(program);
}

}  // namespace

Result<Fragment> fragment_of(Graph& graph, std::span<const size_t> nodes, ValueId result) {
  ASSIGN_OR_RETURN(Fragment fragment, Collector(graph, nodes).collect(result));
  // Text must say all of it: a word with odd characters, or a constant of too many numbers, is found here.
  const std::string text = fragment_text(fragment.graph);
  ASSIGN_OR_RETURN(const Graph again, fragment_from_text(text));
  if (fragment_text(again) != text) return failed("fragment: its text does not read back: ", text);
  for (const ValueId table : add_tables(fragment.graph, graph)) fragment.inputs.push_back(table);
  return fragment;
}

std::vector<ValueId> add_tables(const Graph& fragment, Graph& graph) {
  Tables tables;
  written(fragment, tables);
  std::vector<ValueId> added;
  for (const MathWriter::Table& table : tables.all) {
    graph.values.push_back({table.buffer->name, {table.buffer->dtype, table.buffer->shape}, table.constant});
    added.push_back(graph.values.size() - 1);
  }
  return added;
}

Program program_of(const Graph& fragment) {
  Tables tables;
  return written(fragment, tables);
}

}  // namespace tuner::graph
