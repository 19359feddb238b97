#include "compiler_core/codegen/machine.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "compiler_core/codegen/cpu_features.h"
#include "compiler_core/codegen/lane_operands.h"
#include "compiler_core/codegen/near_addresses.h"
#include "compiler_core/codegen/offset_sums.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Scalar.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SROA.h"

namespace tuner::codegen {
namespace {

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    // The emitter computes addresses where they change (addresses.cpp); looking for better ones takes 15 % of
    // the time to compile. LLVM has no other switch for it. Its initial value, as every link resets options
    // to theirs (LLD): set otherwise, the second kernel of a process would be compiled otherwise than the
    // first.
    auto& options = llvm::cl::getRegisteredOptions();
    if (const auto it = options.find("disable-lsr"); it != options.end())
      static_cast<llvm::cl::opt<bool>*>(it->second)->setInitialValue(true);
  });
}

// Machine passes that are left out: each costs 0.5 to 5 % of the time to compile and changes nothing that
// could be measured. Kernels are loops over straight vector code without calls, whose schedule is decided in
// the Program; out of order execution makes up for the rest.
const llvm::AnalysisID kIdlePasses[] = {
    &llvm::EarlyTailDuplicateLegacyID,
    &llvm::OptimizePHIsLegacyID,
    &llvm::StackColoringLegacyID,
    &llvm::LocalStackSlotAllocationID,
    &llvm::EarlyIfConverterLegacyID,
    &llvm::MachineCombinerID,
    &llvm::LiveRangeShrinkID,
    &llvm::PostRASchedulerID,
    &llvm::ShrinkWrapID,
    &llvm::PostRAMachineSinkingID,
    &llvm::StackSlotColoringID,
    &llvm::MachineLateInstrsCleanupID,
    &llvm::MachineLICMID,
    &llvm::TailDuplicateLegacyID,
    // Of features that no kernel has.
    &llvm::GCMachineCodeAnalysisID,
    &llvm::ImplicitNullChecksID,
    &llvm::XRayInstrumentationID,
    &llvm::FEntryInserterID,
    &llvm::PatchableFunctionID,
    &llvm::StackMapLivenessID,
    &llvm::LiveDebugValuesID,
    &llvm::RemoveRedundantDebugValuesID,
    &llvm::RemoveLoadsIntoFakeUsesID,
    &llvm::MachineSanitizerBinaryMetadataID,
    &llvm::FixupStatepointCallerSavedID,
    &llvm::StackFrameLayoutAnalysisPassID,
    &llvm::FuncletLayoutID,
};

// What stands before instruction selection, and it. On x86 only what our IR needs: masked accesses and lane
// reductions where the CPU has none. LLVM's own list looks for atomics, exceptions, stack protectors, AMX...
bool add_selection(llvm::CodeGenTargetMachineImpl& machine, llvm::TargetPassConfig& config,
                   llvm::legacy::PassManager& passes) {
  if (!machine.getTargetTriple().isX86()) return !config.addISelPasses();
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes.add(llvm::createPreISelIntrinsicLoweringPass());
  passes.add(llvm::createScalarizeMaskedMemIntrinLegacyPass());
  passes.add(llvm::createExpandReductionsPass());
  passes.add(llvm::createUnreachableBlockEliminationPass());
  passes.add(llvm::createBasicAAWrapperPass());
  if (config.addInstSelector()) return false;
  passes.add(llvm::Pass::createPass(&llvm::FinalizeISelID));
  return true;
}

bool rounds(const llvm::Instruction& i) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  if (call == nullptr) return false;
  const llvm::Intrinsic::ID id = call->getIntrinsicID();
  return id == llvm::Intrinsic::x86_sse2_cvtps2dq || id == llvm::Intrinsic::x86_avx_cvt_ps2dq_256 ||
         id == llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512;
}

// Takes out of innermost loops where sums become bytes what all elements share: zero points, and what follows
// from them, take as long as the arithmetic of a short vector. Not out of others: what leaves a loop keeps a
// register in those around it, where sums are added up.
class HoistFromRounding : public llvm::PassInfoMixin<HoistFromRounding> {
 public:
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater) {
    const bool some = loop.isInnermost() && std::ranges::any_of(loop.blocks(), [](const auto* block) {
                        return std::ranges::any_of(*block, rounds);
                      });
    return some ? licm_.run(loop, analyses, results, updater) : llvm::PreservedAnalyses::all();
  }

 private:
  llvm::LICMPass licm_{llvm::LICMOptions()};
};

std::string triple_text(const Target& target) {
  return llvm::Triple::normalize(target.mtriple.empty() ? "x86_64-linux-gnu" : target.mtriple);
}

Result<const llvm::Target*> llvm_target_of(const Target& target) {
  initialize_llvm();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple_text(target)), error);
  if (found == nullptr) return invalid_argument("target ", target.name(), ": ", error);
  return found;
}

std::string features_text(const Target& target) {
  std::string features;
  for (const std::string& attribute : target.mattr) features += (features.empty() ? "" : ",") + attribute;
  return features;
}

}  // namespace

Result<std::unique_ptr<llvm::MCSubtargetInfo>> subtarget_of(const Target& target, bool named) {
  ASSIGN_OR_RETURN(const llvm::Target* const found, llvm_target_of(target));
  std::unique_ptr<llvm::MCSubtargetInfo> info(found->createMCSubtargetInfo(
      llvm::Triple(triple_text(target)), named ? target.mcpu : "", named ? features_text(target) : ""));
  if (info == nullptr)
    return invalid_argument("target ", target.name(), ": LLVM has no code generator for it");
  return info;
}

Result<Machine*> Machine::of(const Target& target) {
  if (!target.is_cpu()) return invalid_argument("target ", target.name(), ": expected a CPU, found a GPU");
  thread_local std::map<std::string, Machine> machines;
  const std::string features = features_text(target);
  const std::string key = str(target.mtriple, " ", target.mcpu, " ", features, " ", target.vector_bits);
  if (const auto it = machines.find(key); it != machines.end()) return &it->second;

  if (const Status known = check_cpu_words(target); !known)
    return known.with_context(str("target ", target.name(), ": "));
  ASSIGN_OR_RETURN(const llvm::Target* const llvm_target, llvm_target_of(target));
  const llvm::Triple triple(triple_text(target));
  Machine m;
  m.machine_.reset(llvm_target->createTargetMachine(triple, target.mcpu, features, llvm::TargetOptions(),
                                                    llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                    llvm::CodeGenOptLevel::Less));
  if (m.machine_ == nullptr)
    return invalid_argument("target ", target.name(), ": LLVM has no code generator for it");
  const llvm::MCSubtargetInfo* sub = m.machine_->getMCSubtargetInfo();
  const auto has = [&](const char* feature) { return triple.isX86() && sub->checkFeatures(feature); };
  const auto has_neon = [&](const char* feature) {
    return triple.isAArch64() && sub->checkFeatures(feature);
  };
  const bool wide = target.vector_bits == 512, any_width = has("+avx512vl");
  m.traits_ = {.has_fma = triple.isAArch64() || has("+fma"),
               .has_bf16_dot = has("+avx512bf16") && any_width,
               .has_byte_dot = (has("+avx512vnni") && any_width) || (!wide && has("+avxvnni")),
               .has_float16 = triple.isAArch64() || has("+f16c") || has("+avx512f"),
               .has_scale = has("+avx512f") && any_width,
               .has_nearest_int = triple.isX86(),
               .has_saturation = has("+avx512f") && any_width,
               .has_byte_packs = wide && has("+avx512bw"),
               .has_byte_permute = wide && has("+avx512vbmi"),
               .has_scatter = wide && has("+avx512f"),
               .has_pair_sums = wide                        ? has("+avx512bw")
                                : target.vector_bits == 256 ? has("+avx2")
                                                            : has("+sse2"),
               .has_neon = triple.isAArch64(),
               .has_neon_dot = has_neon("+dotprod"),
               .has_neon_mixed_dot = has_neon("+i8mm"),
               .has_neon_bf16_dot = has_neon("+bf16"),
               .cpu = target.mcpu,
               .features = features,
               .vector_bits = target.vector_bits};
  return &machines.emplace(key, std::move(m)).first->second;
}

bool Machine::has_feature(std::string_view name) const {
  const llvm::MCSubtargetInfo* sub = machine_->getMCSubtargetInfo();
  // checkFeatures() complains of words that it does not know.
  return std::ranges::any_of(sub->getAllProcessorFeatures(), [&](const llvm::SubtargetFeatureKV& f) {
    return name == f.Key && sub->getFeatureBits().test(f.Value);
  });
}

void Machine::prepare(llvm::Module& module) const {
  module.setTargetTriple(machine_->getTargetTriple());
  module.setDataLayout(machine_->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
}

Status Machine::optimize(llvm::Module& module) const {
  std::string found;
  llvm::raw_string_ostream out(found);
  if (llvm::verifyModule(module, &out)) {
    // LLVM prints every instruction that it refuses: the first line says what is wrong.
    const std::string first = found.substr(0, found.find('\n'));
    return {StatusCode::kInternal,
            str("code generation made a module that LLVM refuses: ", first,
                ". This is a fault of ours; please report it with the model or the job file")};
  }
  // SROA turns register tiles into values; CSE merges the loads and addresses that unrolled copies share.
  // Nothing else made a kernel faster, and code generation is 90 % of the time; but where sums become bytes,
  // what all elements share leaves the loops.
  llvm::LoopAnalysisManager loops;  // outlives what `functions` keeps of it
  llvm::FunctionAnalysisManager functions;
  llvm::PassBuilder builder(machine_.get());
  builder.registerFunctionAnalyses(functions);
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  builder.registerLoopAnalyses(loops);
  builder.registerCGSCCAnalyses(graph);
  builder.registerModuleAnalyses(modules);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  llvm::FunctionPassManager hoisting;
  hoisting.addPass(llvm::createFunctionToLoopPassAdaptor(HoistFromRounding(), /*UseMemorySSA=*/true));
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    passes.run(f, functions);
    if (std::ranges::any_of(llvm::instructions(f), rounds)) hoisting.run(f, functions);
  }
  constexpr int kNeonRegisters = 32;
  if (machine_->getTargetTriple().isAArch64())
    for (llvm::Function& f : module) {
      add_offsets_behind_loops(f);
      broadcast_from_lanes(f, kNeonRegisters);
      bring_pointers_near(f);
    }
  return Status::ok();
}

Result<std::string> Machine::emit(llvm::Module& module, llvm::CodeGenFileType type,
                                  bool machine_scheduler) const {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  auto& machine = static_cast<llvm::CodeGenTargetMachineImpl&>(*machine_);
  // The pipeline of addPassesToEmitFile, less what finds nothing in code like this.
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  auto* info = new llvm::MachineModuleInfoWrapperPass(&machine);
  config->setDisableVerify(true);
  if (machine.getTargetTriple().isX86())
    for (const llvm::AnalysisID pass : kIdlePasses) config->disablePass(pass);
  if (!machine_scheduler) config->disablePass(&llvm::MachineSchedulerID);
  passes.add(config);
  passes.add(info);
  if (!add_selection(machine, *config, passes))
    return Status(StatusCode::kInternal, "LLVM cannot select instructions for the target");
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, out, nullptr, type, info->getMMI().getContext()))
    return Status(StatusCode::kInternal, "LLVM cannot write this kind of file for the target");
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace tuner::codegen
