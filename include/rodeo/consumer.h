// FragmentConsumer: what happens to built fragments (software ROD paper, section VI.C; slides "ROBFragmentConsumer
// interface").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rodeo/fragment.h"
#include "rodeo/input.h"

namespace rodeo {

/// One member of the singly linked list of consumers. The list is linked by the application before start(); the builder
/// pushes to the first, each pushes to the next.
class FragmentConsumer {
 public:
  virtual ~FragmentConsumer() = default;

  /// Takes a fragment. Any builder or consumer thread; may block while this consumer's queue is full, which is the
  /// back-pressure that the builder, the input and at last the trigger feel. A consumer that may change fragments forwards
  /// after its work, one that only looks forwards at insertion and keeps a shared reference.
  virtual void insert(FragmentPtr fragment) = 0;

  /// Throws std::exception with a complete sentence if it cannot.
  virtual void start() {}

  /// The run is to end: what is under way still comes, and one that waits for others must not do so for ever. Any thread, also again; not called
  /// where the input ends by itself.
  virtual void run_ends() {}

  /// The run has to end now: what is queued or kept is let go, counted as `given_up` or by a name of its own, and stop() returns soon. While stop() works
  /// things off, by another thread.
  virtual void give_up() {}

  /// Works off what is queued, then ends its threads. Everything was inserted before; called in list order. A std::exception ends the run as ABORTED.
  virtual void stop() {}

  /// The next consumer, or nullptr at the end of the list; set before start().
  virtual void link(FragmentConsumer* next) { next_ = next; }

  /// A file that was written and closed.
  struct File {
    std::string path;
    std::uint64_t bytes = 0;
    std::uint64_t events = 0;
    std::uint32_t adler32 = 1;  ///< of the whole file
  };

  /// For the live view and the report.
  struct Status {
    std::string name;            ///< as in the configuration
    double queue_fill = 0;       ///< 0 to 1
    std::uint64_t consumed = 0;  ///< fragments
    std::uint64_t stalls = 0;    ///< times that insert() found the queue full
    double cpu_seconds = 0;      ///< of its own threads
    std::vector<NamedCounter> counters;
    std::vector<File> files;
    std::string failure;  ///< why the run must stop; empty while all is well
  };
  virtual Status status() const = 0;

 protected:
  /// Hands a fragment on; the end of the list drops it.
  void forward(FragmentPtr fragment) {
    if (next_ != nullptr) next_->insert(std::move(fragment));
  }

  FragmentConsumer* next_ = nullptr;
};

/// A user's work on every fragment. May change the payload's bytes, not the structure (chunk headers stay); may resize it
/// within the configured limit through `resize`. One object serves one thread.
class FragmentWork {
 public:
  virtual ~FragmentWork() = default;

  /// The payload is one contiguous piece if wants_contiguous(), else the fragment's parts.
  virtual bool wants_contiguous() const { return false; }

  /// The payload is only looked at (the fragment's status may still be set). Otherwise a fragment whose memory must not be
  /// written (Fragment::writable == false) is copied before it is worked on.
  virtual bool read_only() const { return false; }

  /// Works on one fragment. What it throws is caught, flags the fragment as corrupt and is counted.
  virtual void process(Fragment& fragment) = 0;

  /// Totals for the report, for example "verified_chunks" and "mismatches". Any thread, while process() runs.
  virtual std::vector<NamedCounter> counters() const { return {}; }

  /// Set by whoever owns the work, before the first fragment: the most bytes that a contiguous payload may have.
  void set_max_payload(std::size_t bytes) { max_payload_ = bytes; }

 protected:
  /// Cuts or grows the payload of the fragment that process() was given; new bytes are undefined. For works that want a
  /// contiguous payload and are not read_only(). False, and nothing changes, if `bytes` is no multiple of 4 or beyond the
  /// limit.
  bool resize(Fragment& fragment, std::size_t bytes) const {
    if (!wants_contiguous() || read_only() || fragment.part_count != 1 || bytes % 4 != 0 || bytes > max_payload_)
      return false;
    fragment.parts[0].size = bytes;
    return true;
  }

 private:
  std::size_t max_payload_ = 0;
};

}  // namespace rodeo
