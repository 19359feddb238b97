#include "compiler_core/artifact/artifact.h"

#include <openssl/evp.h>
#include <unistd.h>

#include "compiler_core/base/input_file.h"

namespace tuner {
std::string sha256_hex(std::string_view bytes) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), hash, &length, EVP_sha256(), nullptr);
  CHECK(ok == 1 && length == 32) << "SHA-256 is always available";
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[hash[i] >> 4];
    hex += kDigits[hash[i] & 15];
  }
  return hex;
}

std::string binary_ending(std::string_view kind) {
  return kind == binary_kind::kSharedObject ? ".so" : str(".", kind);
}

std::string artifact_digest(const Artifact& artifact) {
  if (artifact.manifest.kind == binary_kind::kSharedObject) return sha256_hex(artifact.binary);
  Manifest launched = artifact.manifest;
  launched.digest.clear();
  return sha256_hex(str(artifact.binary, "\n", launched.to_json()));
}

Result<std::string> save_artifact(const Artifact& artifact, const std::string& directory,
                                  Durability durability) {
  Manifest manifest = artifact.manifest;
  manifest.digest = artifact_digest(artifact);
  RETURN_IF_ERROR(make_folders(directory));
  const std::string base = directory + "/" + manifest.digest;
  // The manifest comes last: who sees it finds the binary complete.
  const std::string binary = str(base, binary_ending(manifest.kind));
  // In a cache what is there may be a torso that nobody has looked at yet.
  const bool anew = durability == Durability::kCached;
  if (anew || access(binary.c_str(), R_OK) != 0)
    RETURN_IF_ERROR(replace_file(binary, artifact.binary, durability));
  if (anew || access((base + ".json").c_str(), R_OK) != 0)
    RETURN_IF_ERROR(replace_file(base + ".json", manifest.to_json() + "\n", durability));
  return manifest.digest;
}

Result<Artifact> load_artifact(const std::string& directory, const std::string& digest) {
  const bool is_digest =
      digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_digest) return invalid_argument("artifact: expected 64 hex digits, found '", digest, "'");
  const std::string base = directory + "/" + digest;
  Artifact artifact;
  ASSIGN_OR_RETURN(const std::string json, read_whole(base + ".json"));
  Result<Manifest> manifest = parse_manifest(json);
  if (!manifest) return manifest.status().with_context(base + ".json: ");
  artifact.manifest = *std::move(manifest);
  const std::string binary = str(base, binary_ending(artifact.manifest.kind));
  ASSIGN_OR_RETURN(artifact.binary, read_whole(binary));
  const std::string found = artifact_digest(artifact);
  if (found != digest || artifact.manifest.digest != digest)
    return failed(binary, ": digest is ", found, ", manifest says ", artifact.manifest.digest, ", expected ",
                  digest, "; the artifact is damaged, remove both files and build it again");
  return artifact;
}

std::string artifact_blob(const Artifact& artifact) {
  Manifest manifest = artifact.manifest;
  manifest.digest = artifact_digest(artifact);
  return str(manifest.to_json(), "\n", artifact.binary);
}

Result<Artifact> parse_artifact_blob(std::string_view blob) {
  const size_t line = blob.find('\n');
  if (line == std::string_view::npos)
    return invalid_argument("artifact: expected a manifest, a newline and a binary, found ", blob.size(),
                            " bytes without a newline");
  Artifact artifact;
  Result<Manifest> manifest = parse_manifest(blob.substr(0, line));
  if (!manifest) return manifest.status().with_context("artifact: ");
  artifact.manifest = *std::move(manifest);
  artifact.binary = blob.substr(line + 1);
  if (const std::string found = artifact_digest(artifact); found != artifact.manifest.digest)
    return invalid_argument("artifact: digest is ", found, ", its manifest says ", artifact.manifest.digest);
  return artifact;
}

std::vector<std::string> artifact_files(const std::string& directory, const std::string& digest) {
  const std::string base = directory + "/" + digest;
  std::string ending = binary_ending(binary_kind::kSharedObject);
  if (const Result<std::string> json = read_whole(base + ".json"); json)
    if (const Result<Manifest> manifest = parse_manifest(*json); manifest)
      ending = binary_ending(manifest->kind);
  return {base + ending, base + ".json"};
}

void remove_artifact(const std::string& directory, const std::string& digest) {
  for (const std::string& file : artifact_files(directory, digest)) unlink(file.c_str());
}

}  // namespace tuner
