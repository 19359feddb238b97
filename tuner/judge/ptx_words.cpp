#include "tuner/judge/ptx_words.h"

#include <algorithm>
#include <array>

#include "tuner/judge/allowed_calls.h"

namespace tuner {

std::string_view ptx_opcode(std::string_view instruction) {
  return instruction.substr(0, instruction.find('.'));
}

bool may_have_ptx_instruction(std::string_view opcode) {
  static const NameSet kWords = names_in(
      "abs add addc and atom bar barrier bfe bfi bfind bmsk bra brev brx call clz cnot copysign cos cp "
      "createpolicy cvt cvta div dp2a dp4a elect ex2 exit fence fma fns isspacep ld ldmatrix ldu lg2 lop3 "
      "mad mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 neg not or popc "
      "prefetch "
      "prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf shfl shl shr sin slct "
      "sqrt "
      "st stmatrix sub subc szext tanh testp vote wgmma wmma xor activemask "
      "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 "
      "vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4");
  return kWords.contains(opcode);
}

bool may_read_ptx_register(std::string_view name) {
  static const NameSet kWords = names_in(
      "%tid %ntid %ctaid %nctaid %laneid %warpid %nwarpid %lanemask_eq %lanemask_le %lanemask_lt "
      "%lanemask_ge "
      "%lanemask_gt %total_smem_size %dynamic_smem_size %aggr_smem_size %clusterid %nclusterid "
      "%cluster_ctaid "
      "%cluster_nctaid %cluster_ctarank %cluster_nctarank %is_explicit_cluster");
  return kWords.contains(name.substr(0, name.find('.')));
}

bool is_special_ptx_register(std::string_view name) {
  static constexpr std::array kBeginnings = {"%clock",  "%globaltimer",   "%pm",
                                             "%envreg", "%reserved_smem", "%current_graph"};
  static const NameSet kWords = names_in("%smid %nsmid %gridid %gridid_hi");
  const std::string_view whole = name.substr(0, name.find('.'));
  return may_read_ptx_register(name) || kWords.contains(whole) ||
         std::ranges::any_of(kBeginnings, [&](const char* begin) { return name.starts_with(begin); });
}

bool may_have_ptx_directive(std::string_view word) {
  static const NameSet kWords = names_in(
      ".version .target .address_size .visible .weak .entry .func .extern .param .reg .shared .local .const "
      ".global .align .ptr .pred .b8 .b16 .b32 .b64 .b128 .u8 .u16 .u32 .u64 .s8 .s16 .s32 .s64 .f16 .f16x2 "
      ".bf16 .bf16x2 .f32 .f64 .v2 .v4 .maxntid .reqntid .minnctapersm .maxnreg .noreturn .pragma "
      ".branchtargets .reqnctapercluster .explicitcluster .maxclusterrank");
  return kWords.contains(word);
}

}  // namespace tuner
