// FragmentConsumer: processes built fragments (software ROD paper, section VI.C; slides "ROBFragmentConsumer
// interface").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rodeo/fragment.h"
#include "rodeo/input.h"

namespace rodeo {

/// One member of the singly linked list of consumers. The application links the list before start(); the builder
/// pushes to the first, each pushes to the next.
class FragmentConsumer {
 public:
  virtual ~FragmentConsumer() = default;

  /// Takes a fragment. Called by any builder or consumer thread; may block while this consumer's queue is full. This
  /// back-pressure reaches the builder, the input and at last the trigger. A consumer that may change fragments forwards
  /// them after its work; one that only reads forwards them at insertion and keeps a shared reference.
  virtual void insert(FragmentPtr fragment) = 0;

  /// Throws std::exception with a complete sentence if it fails.
  virtual void start() {}

  /// Says that the run is about to end: fragments still come, but a consumer that waits for other processes must not wait
  /// without limit. Any thread, also repeatedly; not called if the input ends by itself.
  virtual void run_ends() {}

  /// Ends the run now: the consumer drops queued or kept fragments, counts them as `given_up` or under its own name, and
  /// stop() returns soon. Called by another thread while stop() works.
  virtual void give_up() {}

  /// Processes the queue, then ends its threads. All fragments were inserted before; called in list order. A std::exception
  /// ends the run as ABORTED.
  virtual void stop() {}

  /// The next consumer, or nullptr at the end of the list; set before start().
  virtual void link(FragmentConsumer* next) { next_ = next; }

  /// A file that was written and closed.
  struct File {
    std::string path;
    std::uint64_t bytes = 0;
    std::uint64_t events = 0;
    std::uint32_t adler32 = 1;  ///< checksum of the whole file
  };

  /// Values for the live view and the report.
  struct Status {
    std::string name;            ///< name in the configuration
    double queue_fill = 0;       ///< 0 to 1
    std::uint64_t consumed = 0;  ///< fragments
    std::uint64_t stalls = 0;    ///< how often insert() found the queue full
    double cpu_seconds = 0;      ///< CPU time of its own threads
    std::vector<NamedCounter> counters;
    std::vector<File> files;
    std::string failure;  ///< why the run must stop; empty: no failure
  };
  virtual Status status() const = 0;

 protected:
  /// Passes a fragment to the next consumer; at the end of the list it is dropped.
  void forward(FragmentPtr fragment) {
    if (next_ != nullptr) next_->insert(std::move(fragment));
  }

  FragmentConsumer* next_ = nullptr;
};

/// A user's work on every fragment. May change the bytes of the payload, not its structure (chunk headers stay); may change
/// its size within the configured limit with resize(). One object serves one thread.
class FragmentWork {
 public:
  virtual ~FragmentWork() = default;

  /// The payload is one contiguous piece if wants_contiguous(), else the fragment's parts.
  virtual bool wants_contiguous() const { return false; }

  /// The work only reads the payload (it may still set the fragment's status). Otherwise a fragment with memory that must
  /// not be written (Fragment::writable == false) is copied before the work.
  virtual bool read_only() const { return false; }

  /// Works on one fragment. An exception is caught, flags the fragment as corrupt and is counted.
  virtual void process(Fragment& fragment) = 0;

  /// Totals for the report, for example "verified_chunks" and "mismatches". Any thread, while process() runs.
  virtual std::vector<NamedCounter> counters() const { return {}; }

  /// Set by the owner of the work, before the first fragment: the size limit of a contiguous payload.
  void set_max_payload(std::size_t bytes) { max_payload_ = bytes; }

 protected:
  /// Cuts or grows the payload of the fragment that process() got; new bytes are undefined. Only for works that want a
  /// contiguous payload and are not read_only(). False, without any change, if `bytes` is not a multiple of 4 or above the
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
