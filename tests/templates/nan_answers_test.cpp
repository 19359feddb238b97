// A NaN in an input is one in every result that it reaches, through every activation, maximum and minimum:
// every template, alone and fused, as machine code of several CPUs and as emulated GPU kernels. Which results
// it reaches follows from the operator's definition.
#include <gtest/gtest.h>

#include "compiler_core/graph/fragment.h"
#include "templates/registry/registry.h"
#include "tests/templates/compiled_template_check.h"
#include "tests/templates/gpu_template_check.h"

namespace tuner {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Activations made of minima, maxima or choices; one made of others.
constexpr Activation kActivations[] = {Activation::kRelu, Activation::clip(-0.25F, 0.5F),
                                       Activation::leaky(0.1F), Activation::kHardSwish, Activation::kSilu};

// A workload, the place of the NaN in its first input, and which results are NaN. A template that transforms
// tiles may spread it further.
struct Case {
  Workload w;
  size_t place;
  std::function<bool(size_t)> reached;
};

void expect_reached(const std::vector<double>& found, const Case& c, bool spreads) {
  ASSERT_FALSE(found.empty());
  size_t wrong = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool is = std::isnan(found[i]), should = c.reached(i);
    if (is == should || (is && spreads)) continue;
    if (++wrong <= 3)
      ADD_FAILURE() << "out[" << i << "] is " << found[i] << (should ? ", expected a NaN" : "");
  }
  EXPECT_EQ(wrong, 0U);
}

bool spreads(std::string_view name) { return name.find("winograd") != std::string_view::npos; }

void expect_code_passes(const Case& c, const Target& target) {
  const auto serving = templates_for(c.w, target);
  ASSERT_TRUE(serving.is_ok()) << serving.message();
  for (const AnyTemplate* t : *serving) {
    if (t->name().ends_with("_tile_cpu")) continue;  // AMX
    SCOPED_TRACE(str(t->name(), " ", c.w.key(), " on ", target.name()));
    const auto instance = t->apply(c.w, target);
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    std::mt19937_64 rng(1);
    for (int i = 0; i <= 1; ++i) {
      const Config config = space.at(i == 0 ? space.default_index() : space.sample(rng));
      SCOPED_TRACE(config.to_text());
      const auto program = (*instance)->instantiate(config);
      ASSERT_TRUE(program.is_ok()) << program.message();
      auto args = testing::random_args(*program, 1);
      args[0].at(c.place) = kNan;
      const Status ran = testing::run_compiled(*program, args, target, target.threads);
      ASSERT_TRUE(ran.is_ok()) << ran.message();
      ASSERT_NO_FATAL_FAILURE(expect_reached(args.back(), c, spreads(t->name())));
    }
  }
}

void expect_oracle_passes(const Case& c) {
  SCOPED_TRACE(str("oracle ", c.w.key()));
  const Program math = c.w.compute();
  auto args = testing::random_args(math, 1);
  args[0].at(c.place) = kNan;
  ASSERT_TRUE(interpret(math, args).is_ok());
  expect_reached(args.back(), c, false);
}

void expect_kernels_pass(const Case& c) {
  const auto serving = templates_for(c.w, gpu());
  ASSERT_TRUE(serving.is_ok()) << serving.message();
  for (const AnyTemplate* t : *serving) {
    SCOPED_TRACE(str(t->name(), " ", c.w.key()));
    const auto instance = t->apply(c.w, gpu());
    ASSERT_TRUE(instance.is_ok()) << instance.message();
    const ConfigSpace& space = (*instance)->space();
    const Result<Program> program = (*instance)->instantiate(space.at(space.default_index()));
    ASSERT_TRUE(program.is_ok()) << program.message();
    const Result<GpuProgram> lowered = lower_gpu(*program);
    ASSERT_TRUE(lowered.is_ok()) << lowered.message();
    GpuTaskData data = gpu_task_data(c.w.compute(), 1);
    data.inputs[0].at(c.place) = std::numeric_limits<float>::quiet_NaN();
    const Result<EmulatedRun> run = run_emulated(*lowered, data.inputs);
    ASSERT_TRUE(run.is_ok()) << run.message();
    ASSERT_NO_FATAL_FAILURE(
        expect_reached({run->outputs[0].begin(), run->outputs[0].end()}, c, spreads(t->name())));
  }
}

void expect_passes(const Case& c, bool on_gpus = true) {
  ASSERT_NO_FATAL_FAILURE(expect_oracle_passes(c));
  for (const Target& target : hosts(/*threads=*/1)) ASSERT_NO_FATAL_FAILURE(expect_code_passes(c, target));
  if (on_gpus) {
    ASSERT_NO_FATAL_FAILURE(expect_kernels_pass(c));
  }
}

TEST(NanAnswers, OfProductsAndWhatIsFusedBehindThem) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16})
    for (const Activation& activation : kActivations) {
      if (dtype != DType::kFloat32 && activation != Activation::kRelu &&
          activation != Activation::leaky(0.1F))
        continue;
      MatmulWorkload w{.m = 5, .n = 19, .k = 7, .dtype = dtype};
      w.activation = activation;
      if (dtype != DType::kFloat32) w.narrow_out = dtype;
      // a[2, 3]: row 2 of the product.
      expect_passes({w, 2 * 7 + 3, [](size_t i) { return i / 19 == 2; }}, activation == Activation::kRelu);
    }
}

TEST(NanAnswers, OfConvolutionsAndWhatIsFusedBehindThem) {
  for (const Activation& activation : kActivations) {
    Conv2dWorkload w{.in_channels = 3,
                     .in_height = 6,
                     .in_width = 7,
                     .out_channels = 4,
                     .kernel_height = 3,
                     .kernel_width = 3,
                     .padding = {1, 1, 1, 1}};
    w.activation = activation;
    // data[0, 1, 2, 4]: 3 x 3 pixels around it, in every channel.
    const auto near = [](size_t i) {
      const size_t row = i / 7 % 6, column = i % 7;
      return row >= 1 && row <= 3 && column >= 3 && column <= 5;
    };
    expect_passes({w, (1 * 6 + 2) * 7 + 4, near}, activation == Activation::kRelu);
  }
}

TEST(NanAnswers, OfPoolingsReductionsAndSoftmax) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    Pool2dWorkload pool{.channels = 3, .in_height = 7, .in_width = 9, .dtype = dtype};
    pool.kernel_height = pool.kernel_width = 3;
    pool.stride = {2, 2};
    pool.padding = {1, 1, 1, 1};
    // data[0, 1, 3, 4]: rows 1 and 2, columns 2 of 4 x 5.
    const auto windows = [](size_t i) {
      return i / 20 == 1 && (i / 5 % 4 == 1 || i / 5 % 4 == 2) && i % 5 == 2;
    };
    if (validate(pool)) expect_passes({pool, (1 * 7 + 3) * 9 + 4, windows}, /*on_gpus=*/false);
    for (const size_t place : {0, 1, 18, 36}) {
      for (const RowReduction reduction : {RowReduction::kMax, RowReduction::kMin}) {
        const ReduceWorkload reduce{.rows = 3, .columns = 37, .reduction = reduction, .dtype = dtype};
        if (validate(reduce))
          expect_passes({reduce, 37 + place, [](size_t i) { return i == 1; }}, dtype == DType::kFloat32);
      }
      const SoftmaxWorkload softmax{.rows = 3, .columns = 37, .dtype = dtype};
      if (validate(softmax))
        expect_passes({softmax, 37 + place, [](size_t i) { return i / 37 == 1; }}, dtype == DType::kFloat32);
    }
  }
}

TEST(NanAnswers, OfElementwiseKernels) {
  for (const Activation& activation : kActivations) {
    const ElementwiseWorkload w{.rows = 3, .columns = 37, .bias = true, .activation = activation};
    expect_passes({w, 50, [](size_t i) { return i == 50; }});
  }
}

// Operators of models, alone and one after the other, in a Program of their own. T stands for the type.
TEST(NanAnswers, OfFragmentsOfModels) {
  std::vector<std::string> fragments;
  for (const char* op :
       {"Relu(0)", "Sign(0)", "HardSigmoid(0)", "LeakyRelu(0)", "ThresholdedRelu(0)", "Shrink(0)",
        "PRelu(0,T[](0.5))", "Celu(0)", "Elu(0)", "Selu(0)", "HardSwish(0)", "Clip(0,T[](-0.25),T[](0.5))",
        "Max(0,T[](0.5))", "Max(T[](0.5),0)", "Min(0,T[](0.5))", "Neg(0) Relu(1) Neg(2)"})
    fragments.push_back(str("in=T[2,37] ", op));
  for (const char* op : {"Max(0,1)", "Max(1,0)", "Min(0,1)", "Min(1,0)", "Clip(0,1)",
                         "Add(0,1) Clip(2,T[](-0.25),T[](0.5)) Sign(3)"})
    fragments.push_back(
        str("in=T[2,37],T", std::string_view(op).starts_with("Clip") ? "[1] " : "[2,37] ", op));
  for (const std::string type : {"float32", "float16", "bfloat16"})
    for (std::string text : fragments) {
      for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T["))
        text.replace(at, 1, type);
      const auto w = program_from_text(text);
      ASSERT_TRUE(w.is_ok()) << text << ": " << w.message();
      expect_passes({*w, 41, [](size_t i) { return i == 41; }}, /*on_gpus=*/false);
    }
}

}  // namespace
}  // namespace tuner
