// Memory for data paths: one mapping, allocated at start on the largest pages available.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace rodeo::base {

enum class PageKind : unsigned char { huge_1g, huge_2m, transparent };

/// A fixed piece of zeroed memory. Tries 1 GiB pages if it is large enough for them, then 2 MiB pages, then plain memory
/// with transparent huge pages; kind() returns the result. The constructor touches all of it, so there are no page faults
/// later.
class Arena {
 public:
  Arena() = default;
  /// Never over-commits: fails for sizes above the memory that the machine has available; the error has both figures.
  static Result<Arena> create(std::size_t bytes);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  PageKind kind() const { return kind_; }
  /// Text for logs: "512 MiB on 2 MiB huge pages".
  std::string description() const;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;    // the requested size
  std::size_t mapped_ = 0;  // rounded up to whole pages
  PageKind kind_ = PageKind::transparent;
};

/// Bytes that can be allocated now without swapping (MemAvailable).
std::size_t available_memory_bytes();

/// Bytes of free huge pages of all sizes. They are not part of MemAvailable.
std::size_t free_huge_page_bytes();

}  // namespace rodeo::base
