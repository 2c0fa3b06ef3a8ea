// One connection to a vfio-user server: sends requests and receives their answers, each before a deadline.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd_socket.h"
#include "card/pci/owner_process.h"
#include "card/pci/vfio_user_client.h"
#include "formats/vfio_user.h"

namespace rodeo::card::pci {

/// Not thread-safe: the owner serialises calls. An error of the stream (hang-up, time-out, an answer without a request)
/// breaks the connection for good; an error reply of the server does not.
class VfioUserConnection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  VfioUserConnection(base::UniqueFd socket, std::string name, const VfioUserSettings& settings);

  struct Answer {
    std::span<const std::byte> payload;  // valid until the next call
    std::vector<base::UniqueFd> fds;
  };

  /// The deadline for the answer to a request that is sent now.
  Deadline from_now() const { return std::chrono::steady_clock::now() + limit(); }
  /// The card is open: from now on it may be silent for longer.
  void opened() { opened_ = true; }
  /// For any thread: from now on a wait for a silent card lasts at most `patience`.
  void hurry() { hurried_->store(true, std::memory_order_relaxed); }
  /// Sends a request and waits for its whole answer. Error card.refused if the server refuses it.
  Result<Answer> ask(const formats::vfio_user::Request& request, std::span<const int> fds = {}) {
    return ask(request, from_now(), fds);
  }
  Result<Answer> ask(const formats::vfio_user::Request& request, Deadline deadline, std::span<const int> fds = {});
  /// Sends reads and writes without waits between them, in as few messages as the server accepts, then receives the answers
  /// to the reads (writes have none). Each batch has one deadline.
  Result<void> exchange(std::span<RegionOperation> operations);

  const formats::vfio_user::Capabilities& server() const { return server_; }
  /// Exchanges versions; call it first.
  Result<void> negotiate(Deadline deadline);
  /// The error that broke the connection.
  std::unexpected<Error> broken_error() const { return std::unexpected(broken_); }

 private:
  std::chrono::milliseconds limit() const {
    return opened_ && !hurried_->load(std::memory_order_relaxed) ? settings_.silence : settings_.patience;
  }
  /// True if a wait that began at this time has exceeded the present limit.
  bool too_long(Deadline began) const { return std::chrono::steady_clock::now() - began >= limit(); }
  /// Waits for the answer to one request.
  Result<Answer> receive_answer(std::uint16_t id, std::uint16_t command, Deadline deadline);
  std::unexpected<Error> broken(std::string code, std::string what, const char* next = nullptr);
  Result<void> send(std::span<const std::byte> bytes, std::span<const int> fds);
  Result<formats::vfio_user::Header> receive(Deadline deadline, std::vector<base::UniqueFd>& fds);
  Result<void> fill(std::size_t bytes, Deadline deadline, base::ReceivedFds& fds);

  OwnDescriptor socket_;
  std::string name_;
  VfioUserSettings settings_;
  bool opened_ = false;
  std::unique_ptr<std::atomic<bool>> hurried_ = std::make_unique<std::atomic<bool>>(false);
  formats::vfio_user::Capabilities server_;
  formats::vfio_user::MessageWriter out_;
  std::vector<formats::vfio_user::SmallWrite> writes_;
  std::vector<std::uint16_t> read_ids_;  // ids of the reads of a batch
  std::vector<std::byte> in_;            // received, not yet passed on: in_[begin_, end_)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint16_t next_id_ = 0;
  Error broken_;
};

}  // namespace rodeo::card::pci
