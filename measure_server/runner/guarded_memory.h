// Memory that a candidate may touch, with nothing around it: every operand ends at an unmapped page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "compiler_core/base/status.h"

namespace tuner {

inline constexpr int64_t kOperandAlignment = 64;

// One operand between two unmapped guards of 64 KiB. The data ends at the trailing guard, except for at most
// 63 bytes of alignment. The slack before and after the data holds a pattern, so intact() detects a stray
// write there.
class GuardedBuffer {
 public:
  enum class Sharing { kPrivate, kShared };  // kShared: a forked child's writes are seen by its parent

  GuardedBuffer() = default;
  // Allocates zeroed memory. Private memory of 2 MiB or more asks for large pages: a page of 4 KiB costs a
  // fault each, and what applications keep constants in has large pages, too. Failed: the system has none.
  // `where`: here and below, the address at which its mapping should begin, of mapped_bytes(); null:
  // anywhere. Where something is already, it comes to lie elsewhere.
  static Result<GuardedBuffer> create(int64_t bytes, Sharing sharing, void* where = nullptr);
  // Maps a SealedFile made with Placement::kAtPageEnd, read-only.
  static Result<GuardedBuffer> map_sealed(int fd, int64_t bytes, void* where = nullptr);
  // At most, with guards.
  static int64_t mapped_bytes(int64_t bytes);
  GuardedBuffer(GuardedBuffer&& other) noexcept { swap(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~GuardedBuffer();

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  void fill(unsigned char byte) const;  // fills the data, not the slack
  void make_read_only() const;
  void make_writable() const;
  void hide_from_children() const;  // hides it from children forked later
  // Ready for another use: children forked later have it, and the slack holds its pattern again. The data
  // stays.
  void renew() const;
  // Asks for all its pages in one system call: else each costs a fault when it is first written. Of shared
  // memory each process asks for itself. No effect on an old kernel.
  void populate() const;
  bool intact() const;
  // The pages behind a buffer move, its address does not. Failed: the system refuses.
  // Takes the pages of a buffer of equal size, whose data cannot be touched afterwards. Its own are gone.
  Status take_pages_of(const GuardedBuffer& other) const;
  // Moves all of it, with its guards: data() changes. It is writable then.
  Status move_to(void* where);
  // Moves its pages elsewhere and returns where; until it gets others its data cannot be touched.
  Result<void*> set_aside() const;
  // Takes back what set_aside() returned. Those it has are gone.
  Status put_back(void* pages) const;

 private:
  Status move_here(void* pages) const;
  void fill_slack() const;
  void swap(GuardedBuffer& other) {
    std::swap(base_, other.base_), std::swap(mapped_, other.mapped_);
    std::swap(lead_, other.lead_), std::swap(middle_, other.middle_);
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
  }
  char* base_ = nullptr;  // start of the mapping with its guards
  int64_t mapped_ = 0;    // size of the whole mapping
  int64_t lead_ = 0;      // bytes from there to the pages of the data
  int64_t middle_ = 0;    // size of these
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

// A copy of a file in memory that nobody can change any more (a sealed memfd).
class SealedFile {
 public:
  enum class Placement {
    kAtStart,    // the bytes as they are
    kAtPageEnd,  // zeros come first, so that a mapping ends where the data ends (rounded up to 64 bytes)
  };
  static Result<std::shared_ptr<SealedFile>> copy_of(const std::string& path, Placement placement);
  static Result<std::shared_ptr<SealedFile>> of_bytes(std::string_view bytes);
  ~SealedFile();

  int fd() const { return fd_; }
  int64_t bytes() const { return bytes_; }  // size of the data
  // Maps a kAtStart copy read-only; forked children do not have the mapping. Failed: it cannot be mapped.
  Result<std::string_view> map_hidden_from_children();
  // Whether its reader has found the content right once: it cannot change.
  bool is_verified() const { return verified_; }
  void set_verified() { verified_ = true; }

 private:
  bool verified_ = false;
  int fd_ = -1;
  int64_t bytes_ = 0;
  char* mapping_ = nullptr;
};

// A cache of sealed copies of recently used files, valid while path, size and modification time are
// unchanged.
class SealedFiles {
 public:
  explicit SealedFiles(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}
  Result<std::shared_ptr<SealedFile>> get(const std::string& path, SealedFile::Placement placement);
  // Changes when the file at this path does. Failed: there is none.
  static Result<std::string> identity_of(const std::string& path);

 private:
  struct Entry {
    std::string identity;
    std::shared_ptr<SealedFile> file;
    uint64_t used = 0;
  };
  int64_t capacity_bytes_;
  uint64_t clock_ = 0;
  std::map<std::pair<std::string, SealedFile::Placement>, Entry> entries_;
};

}  // namespace tuner
