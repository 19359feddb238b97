// Orders and what became of them <-> messages (proto/build.proto). What a builder says passes through
// from_proto(), which refuses what no builder of ours would say.
#pragma once

#include <string>
#include <vector>

#include "build.pb.h"
#include "compiler_core/base/status.h"
#include "measure.pb.h"
#include "tuner/daemon/tables/builds.h"
#include "tuner/daemon/tables/lease_table.h"

namespace tuner {

inline constexpr int kMaxBuildsPerSync = 256;  // orders that a builder holds, gives back, or takes at once
inline constexpr int kMaxBuiltPerSync = 64;

// What a lease needs made: its artifact, of a race those of its finalists; and last its task's data.
// `cuda_driver`: of its runner's GPU, if it has one.
std::vector<BuildNeed> needs_to_build(const LeaseTable::Trial& trial, int cuda_driver);
// InvalidArgument: the field, what was found and what is expected.
Result<Made> from_proto(const v1::Built& built, std::string_view field);
Result<BlobName> from_proto(const v1::Blob& blob, std::string_view field);
std::vector<Builds::Held> held_of(const google::protobuf::RepeatedPtrField<v1::HeldBuild>& builds);

void to_proto(const BlobName& name, v1::Blob* out);
// Without the document.
void to_proto(const Builds::Order& order, v1::BuildOrder* out);
void to_proto(const Made& made, v1::Built* out);
// `answers`: of needs_to_build(), in that order.
void to_proto(const LeaseTable::Trial& trial, const std::vector<const Made*>& answers, v1::LeaseBuilt* out);

}  // namespace tuner
